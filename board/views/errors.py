"""Pages for what went wrong, with the same looks as the others, and the same words as JSON or a toast."""

import logging
import secrets
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec

from django.db import connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string

log = logging.getLogger(__name__)

P = ParamSpec("P")

CODES = {
    400: "bad_request",
    401: "signed_out",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    500: "broken",
}
TITLES = {
    400: "That request makes no sense here",
    401: "You are signed out",
    403: "You may look, not change",
    404: "There is nothing here for you",
    409: "Someone was first",
    422: "That cannot be done so",
    429: "Too often",
    500: "Something broke on our side",
}


def wants_page(request: HttpRequest) -> bool:
    """Say whether the answer is for a person who looks at a whole page."""
    return "HX-Request" not in request.headers and not _wants_json(request)


def error_answer(
    request: HttpRequest,
    *,
    status: int,
    message: str,
    code: str = "",
    fields: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Return the error in the form that the caller reads: JSON, a toast, or a page."""
    if _wants_json(request):
        body = {"code": code or CODES[status], "message": message, "fields": dict(fields or {})}
        return JsonResponse(body, status=status)
    if "HX-Request" in request.headers:
        toast = render_to_string("shell/_toast.html", {"level": "error", "message": message})
        return HttpResponse(
            toast,
            status=status,
            headers={"HX-Retarget": "#toasts", "HX-Reswap": "beforeend", "HX-Push-Url": "false"},
        )
    context = {
        "status": status,
        "title": TITLES.get(status, "That did not work"),
        "message": message,
    }
    return render(request, "errors/error.html", context, status=status)


def in_any_thread(
    handler: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Return the handler such that it neither meets a dead connection nor leaves one open.

    Django calls it in a thread that is not the request's, so the end of the request does not tidy up there.
    """

    @wraps(handler)
    def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        _tidy_connections()
        try:
            return handler(request, *args, **kwargs)
        finally:
            _tidy_connections()

    return answer


def _tidy_connections() -> None:
    # Not in the middle of a transaction: where no thread is changed, the caller may have begun one.
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


@in_any_thread
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404 without telling whether the thing exists."""
    return error_answer(
        request,
        status=404,
        message="It was deleted, or you are not a member of its project. An owner can invite you.",
    )


@in_any_thread
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403."""
    return error_answer(
        request, status=403, message=str(exception) or "Your role does not allow this."
    )


@in_any_thread
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400."""
    return error_answer(
        request, status=400, message="The request was not understood. Go back and try again."
    )


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form without its token: almost always a page that was open when the session ended."""
    return error_answer(
        request,
        status=403,
        code="csrf",
        message="This form is out of date, so nothing was changed. Go back, reload, and send it again.",
    )


def broken(request: HttpRequest) -> HttpResponse:
    """Answer 500 with a number to quote. Touches neither the database nor the session: they may be why."""
    number = secrets.token_hex(4)
    log.error("Error %s at %s", number, request.path)
    message = (
        "Nothing was lost: agents go on, and your last change was saved or not made at all. "
        "Try again; if it stays, give this number to the person who runs the server."
    )
    if _wants_json(request):
        return JsonResponse(
            {"code": "broken", "message": f"{message} {number}", "fields": {}}, status=500
        )
    context = {"number": number, "title": TITLES[500], "message": message}
    return HttpResponse(render_to_string("errors/broken.html", context), status=500)


def _wants_json(request: HttpRequest) -> bool:
    return "application/json" in request.headers.get("Accept", "") or request.path.startswith(
        "/api/"
    )
