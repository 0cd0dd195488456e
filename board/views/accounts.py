"""Coming in and going out: sign-in, sign-out, the first owner, invitations."""

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from board.actions import signins
from board.errors import BoardError


@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Show the form, or let a person in."""
    following = next_page(request)
    if request.user.is_authenticated:
        return HttpResponseRedirect(following)
    context = {"next": following, "email": request.POST.get("email", "")}
    if request.method == "GET":
        return render(request, "accounts/signin.html", context)
    try:
        user = signins.check_password(
            email=request.POST.get("email", ""),
            password=request.POST.get("password", ""),
            place=place_of(request),
        )
    except BoardError as error:
        return render(
            request, "accounts/signin.html", {**context, "error": error}, status=error.status
        )
    login(request, user)
    return HttpResponseRedirect(following)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    logout(request)
    return redirect("signin")


def next_page(request: HttpRequest) -> str:
    """Return the address in `next` if it is one of ours, else the list of projects."""
    following = request.POST.get("next") or request.GET.get("next") or ""
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
