"""The installation's settings, and the first steps after the first start. For owners of the installation."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from board.actions import credentials
from board.errors import BoardError, NotAllowedError
from board.forms import CredentialForm
from board.models import Credential, User
from board.views.accounts import next_page
from board.views.people import person


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the installation's settings."""
    _owner(request)
    return _page(request, CredentialForm(initial=_stored()))


@require_safe
def welcome(request: HttpRequest) -> HttpResponse:
    """Show the steps that are left after the first owner has come in."""
    _owner(request)
    context = {"form": CredentialForm(initial=_stored()), **_context()}
    return render(request, "settings/welcome.html", context)


@require_POST
@sensitive_post_parameters("api_key")
@sensitive_variables("form")
def set_credential(request: HttpRequest) -> HttpResponse:
    """Store the model key."""
    user = _owner(request)
    form = CredentialForm(request.POST)
    if form.is_valid():
        try:
            credentials.set_credential(by=user, **form.cleaned_data)
        except BoardError as error:
            form.refuse(error)
        else:
            messages.success(request, "The key is stored. Workers use it from now on.")
            return redirect(next_page(request) if request.POST.get("next") else "settings")
    return _page(request, form)


@require_POST
def remove_credential(request: HttpRequest) -> HttpResponse:
    """Forget the stored key."""
    credentials.remove_credential(by=_owner(request))
    messages.success(request, "The key is forgotten. Cards wait until there is another.")
    return redirect("settings")


def _owner(request: HttpRequest) -> User:
    user = person(request)
    if not user.is_owner:
        raise NotAllowedError("Only an owner of this installation may see and change its settings.")
    return user


def _stored() -> dict[str, str]:
    """Return what may be shown again of the stored credential: all but the key."""
    row = Credential.objects.order_by("-pk").first()
    return {"base_url": row.base_url, "header": row.header} if row else {}


def _context() -> dict[str, object]:
    access = credentials.model_access()
    return {
        "place": "settings",
        "access": {"source": access.source, "base_url": access.base_url} if access else None,
        "stored": Credential.objects.select_related("entered_by").order_by("-pk").first(),
        "default_model": settings.DEFAULT_MODEL,
        "public_url": settings.PUBLIC_URL,
        "data": settings.DATA,
        "slots": settings.WORKER_SLOTS,
    }


def _page(request: HttpRequest, form: CredentialForm) -> HttpResponse:
    status = 422 if form.errors else 200
    return render(request, "settings/show.html", {"form": form, **_context()}, status=status)
