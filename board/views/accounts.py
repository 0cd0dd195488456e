"""Coming in and going out: sign-in, sign-out, the first owner, invitations."""

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from board.actions import accounts, invitations, projects, signins
from board.errors import BoardError
from board.forms import PersonForm, sent
from board.views.people import known

BACKEND = settings.AUTHENTICATION_BACKENDS[0]


@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Show the form, or let a person in."""
    following = next_page(request)
    if request.user.is_authenticated:
        return HttpResponseRedirect(following)
    context = {"next": following, "email": sent(request, "email")}
    if request.method != "POST":
        return render(request, "accounts/signin.html", context)
    try:
        user = signins.check_password(
            email=sent(request, "email"),
            password=sent(request, "password"),
            place=place_of(request),
        )
    except BoardError as error:
        context["error"] = error.message
        return render(request, "accounts/signin.html", context, status=error.status)
    login(request, user)
    return HttpResponseRedirect(following)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    user_id = request.user.pk
    logout(request)
    if user_id is not None:
        accounts.tell_open_pages(user_id)
    return redirect("signin")


@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def set_up(request: HttpRequest, token: str) -> HttpResponse:
    """Let the first person in, by the link that the first start prints."""
    if accounts.find_owner_link(token) is None:
        raise Http404
    form = PersonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = accounts.claim_ownership(token, **form.cleaned_data)
        except BoardError as error:
            form.refuse(error)
        else:
            login(request, user, backend=BACKEND)
            return redirect("welcome")
    return render(
        request, "accounts/setup.html", {"form": form}, status=422 if form.errors else 200
    )


@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """Make somebody with an invitation a member: as who is signed in, or as a new person."""
    invitation = invitations.find_invitation(token)
    if invitation is None:
        raise Http404
    someone = known(request)
    form = PersonForm(request.POST or None, initial={"email": invitation.email})
    del form.fields["email"]
    if request.method == "POST" and someone is not None:
        projects.accept_invitation(invitation, user=someone)
        return redirect(f"/p/{invitation.project.key}/")
    if request.method == "POST" and form.is_valid():
        try:
            user = invitations.join_as_new_person(invitation, **form.cleaned_data)
        except BoardError as error:
            form.refuse(error)
        else:
            login(request, user, backend=BACKEND)
            return redirect(f"/p/{invitation.project.key}/")
    context = {"invitation": invitation, "form": form, "known": someone}
    return render(request, "accounts/join.html", context, status=422 if form.errors else 200)


def next_page(request: HttpRequest) -> str:
    """Return the address in `next` if it is one of ours, else the list of projects."""
    following = sent(request, "next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(
        following, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return following if ours else settings.LOGIN_REDIRECT_URL


def place_of(request: HttpRequest) -> str:
    """Return the network address that asks, as a trusted proxy or the connection says."""
    if settings.TRUST_PROXY:
        forwarded = request.headers.get("X-Forwarded-For", "")
        if forwarded:
            return forwarded.rpartition(",")[2].strip()
    return str(request.META.get("REMOTE_ADDR", ""))
