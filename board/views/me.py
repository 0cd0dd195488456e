"""What a person sets for themselves: looks, password, API tokens."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from board.actions import accounts
from board.errors import BoardError
from board.forms import PasswordForm, sent
from board.views.errors import wants_page
from board.views.people import person


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the person's own settings."""
    return _page(request)


@require_POST
def set_appearance(request: HttpRequest) -> HttpResponse:
    """Store how the pages look for this person."""
    accounts.set_appearance(
        person(request), theme=sent(request, "theme"), density=sent(request, "density")
    )
    if not wants_page(request):
        return JsonResponse({"theme": sent(request, "theme"), "density": sent(request, "density")})
    return redirect("me")


@require_POST
def set_notices(request: HttpRequest) -> HttpResponse:
    """Store whether this person wants mails about questions."""
    accounts.set_notices(person(request), mails=sent(request, "mails") == "on")
    messages.success(request, "Saved: how you are told about questions.")
    return redirect("me")


@require_POST
@sensitive_post_parameters("current", "new")
def change_password(request: HttpRequest) -> HttpResponse:
    """Change the password; this session stays, all others end."""
    user = person(request)
    form = PasswordForm(request.POST)
    if form.is_valid():
        try:
            accounts.change_password(user, **form.cleaned_data)
        except BoardError as error:
            form.refuse(error)
        else:
            update_session_auth_hash(request, user)
            accounts.tell_open_pages(user.pk)
            messages.success(request, "Your password is changed. Your other sessions have ended.")
            return redirect("me")
    return _page(request, form=form)


@require_POST
@sensitive_variables("token")
def create_token(request: HttpRequest) -> HttpResponse:
    """Make an API token and show it, this once."""
    name = sent(request, "name").strip()
    token = accounts.create_token(person(request), name=name)
    return _page(request, token=token)


@require_POST
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    """End a token at once."""
    accounts.revoke_token(person(request), token_id)
    messages.success(request, "The token is revoked. Whoever uses it is refused from now on.")
    return redirect("me")


def _page(
    request: HttpRequest, *, form: PasswordForm | None = None, token: str = ""
) -> HttpResponse:
    user = person(request)
    context = {
        "place": "me",
        "can_mail": bool(settings.EMAIL_HOST),
        "me": user,
        "form": form or PasswordForm(),
        "tokens": user.api_tokens.filter(revoked_at__isnull=True).order_by("-pk"),
        "token": token,
        "memberships": user.memberships.select_related("project")
        .filter(project__archived_at__isnull=True)
        .order_by("project__name"),
    }
    status = 422 if form is not None and form.errors else 201 if token else 200
    return render(request, "me/show.html", context, status=status)
