"""Every refusal as JSON: `{code, message, fields?}`. What a person may not see answers as what does not exist."""

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from board.errors import BoardError

log = logging.getLogger(__name__)
MISSING = "There is nothing here, or you may not see it."
NO_TOKEN = "Send a valid token: Authorization: Bearer <token>. `manage.py createtoken` makes one."  # noqa: S105


class TooManyRequestsError(Exception):
    """The caller's bucket is empty; `seconds` until it holds a request again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def refusal(
    status: int, code: str, message: str, *, fields: Mapping[str, str] | None = None
) -> JsonResponse:
    """Return the answer to a request that was not carried out."""
    body: dict[str, Any] = {"code": code, "message": message}
    if fields:
        body["fields"] = dict(fields)
    return JsonResponse(body, status=status)


def connect(api: NinjaAPI) -> None:
    """Let `api` answer each exception with a refusal."""
    handlers: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        BoardError: refused,
        Http404: missing,
        AuthenticationError: unknown_caller,
        TooManyRequestsError: too_many,
        ValidationError: invalid,
        RequestDataTooBig: too_large,
        HttpError: unreadable,
        Exception: broken,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def refused(_request: HttpRequest, error: BoardError) -> HttpResponse:
    """Answer what an action refused, in its own words."""
    return refusal(error.status, error.code, error.message, fields=error.fields)


def missing(_request: HttpRequest, _error: Exception | None = None) -> HttpResponse:
    """Answer for what does not exist, and in the same words for what is not the caller's."""
    return refusal(404, "not_found", MISSING)


def unknown_caller(_request: HttpRequest, _error: Exception) -> HttpResponse:
    """Answer a request without a token that counts."""
    answer = refusal(401, "unauthorized", NO_TOKEN)
    answer["WWW-Authenticate"] = "Bearer"
    return answer


def too_many(_request: HttpRequest, error: TooManyRequestsError) -> HttpResponse:
    """Answer a caller that asks too often."""
    seconds = math.ceil(error.seconds)
    answer = refusal(429, "rate_limited", f"Too many requests. Try again in {seconds} s.")
    answer["Retry-After"] = str(seconds)
    return answer


def too_large(_request: HttpRequest, _error: Exception) -> HttpResponse:
    """Answer a body over DATA_UPLOAD_MAX_MEMORY_SIZE."""
    return refusal(413, "too_large", "This body is too large. Send less at once.")


def unreadable(_request: HttpRequest, error: HttpError) -> HttpResponse:
    """Answer a body that is no JSON."""
    return refusal(error.status_code, "bad_request", "The body is not valid JSON.")


def not_allowed(allowed: str) -> HttpResponse:
    """Answer a method that the address does not take."""
    answer = refusal(405, "method_not_allowed", f"This address takes only {allowed}.")
    answer["Allow"] = allowed
    return answer


def invalid(_request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Answer input of another shape than the schema's, naming each field."""
    fields = {_field(problem["loc"]): _words(problem) for problem in error.errors}
    message = " ".join(f"{name}: {words}" for name, words in fields.items())
    return refusal(422, "invalid", message, fields=fields)


def broken(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer for a fault of ours: the traceback goes to the log, never to the caller."""
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return refusal(500, "internal", "Something went wrong here. The server's log says what.")


def _field(location: tuple[str | int, ...]) -> str:
    """Return `checks.0` of ("body", "body", "checks", 0); a query's field has one word before it."""
    parts = location[2:] if location[:1] == ("body",) else location[1:]
    return ".".join(str(part) for part in parts if part not in {"int", "str"}) or "body"


def _words(problem: dict[str, Any]) -> str:
    match problem["type"]:
        case "extra_forbidden":
            return "There is no such field."
        case "missing":
            return "This field is required."
        case _:
            return f"{problem['msg'].removeprefix('Value error, ')}."
