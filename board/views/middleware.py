"""What holds for every address: sign-in by default, safe headers, and errors as answers to people."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme

from board.errors import BoardError, NotAllowedError
from board.views.errors import error_answer, wants_page

Handler = Callable[[HttpRequest], HttpResponseBase]

HEADERS = {
    # Django's own middleware adds it too late for a request with a forged Host.
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class HeadersMiddleware:
    """Adds what Django and django-csp do not: permissions, and no copies of pages kept by browsers."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if not request.path.startswith("/static/"):
            # After signing out, "back" must not show a board.
            response.headers.setdefault("Cache-Control", "no-store, private")
        return response


class SignInMiddleware(LoginRequiredMiddleware):
    """Asks for a sign-in at every address that does not say `login_not_required`.

    The API looks for its tokens itself.
    """

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., HttpResponseBase],
        view_args: tuple[object, ...],
        view_kwargs: dict[str, object],
    ) -> HttpResponseBase | None:
        if request.path.startswith("/api/"):
            return None
        to_sign_in = super().process_view(request, view_func, view_args, view_kwargs)
        if to_sign_in is None or wants_page(request):
            return to_sign_in
        return error_answer(
            request, status=401, code="signed_out", message="You are signed out. Sign in again."
        )


class BoardErrorMiddleware:
    """Turns a BoardError into an answer: JSON, a toast, or the page again with the message."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponseBase | None:
        if not isinstance(exception, BoardError):
            return None
        refused = isinstance(exception, NotAllowedError)
        if wants_page(request) and request.method == "POST" and not refused:
            messages.error(request, exception.message)
            return HttpResponseRedirect(page_before(request))
        return error_answer(
            request,
            status=exception.status,
            code=exception.code,
            message=exception.message,
            fields=exception.fields,
        )


def page_before(request: HttpRequest) -> str:
    """Return the page of ours from which the request came, or the list of projects."""
    before = request.headers.get("Referer", "")
    ours = url_has_allowed_host_and_scheme(
        before, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return before if before and ours else "/"
