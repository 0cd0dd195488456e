"""What an error of the Messages API means for a run, by its page "Errors" and by measurement."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agents.harness.errors import FailureKind, FatalError, TransientError

TOO_LONG = re.compile(
    r"prompt is too long|context (?:window|limit|length)|exceed\w* (?:the )?(?:maximum )?context"
    r"|too many (?:input )?tokens|request_too_large",
    re.IGNORECASE,
)
SPENT = re.compile(
    r"credit balance|billing|spend(?:ing)? limit|usage limits?\b|enforced_spend_limit",
    re.IGNORECASE,
)
# An error inside a stream has no status of its own, only a type.
STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
FATAL_KINDS = {
    401: FailureKind.AUTH,
    402: FailureKind.QUOTA,
    403: FailureKind.AUTH,
    404: FailureKind.INFRASTRUCTURE,
    413: FailureKind.CONTEXT_OVERFLOW,
}
TRY_AGAIN = frozenset({408, 409, 425})
RATE_LIMITED, OVERLOADED = 429, 529


def from_status(
    status: int, message: str, *, code: str = "", headers: Mapping[str, str] | None = None
) -> TransientError | FatalError:
    """The exception for an error response. `code` is the API's `error_code`."""
    text = f"The model's server answered {status}: {message}"
    retry_after = _retry_after(headers or {})
    if status == RATE_LIMITED and (SPENT.search(code) or _is_spent(message, retry_after)):
        return FatalError(text, kind=FailureKind.QUOTA)
    if status in {RATE_LIMITED, OVERLOADED}:
        return TransientError(text, retry_after_seconds=retry_after, rate_limited=True)
    if status in TRY_AGAIN or status >= 500:  # noqa: PLR2004  every server error
        return TransientError(text, retry_after_seconds=retry_after)
    return FatalError(text, kind=FATAL_KINDS.get(status) or _kind_of_refusal(message, code))


def from_event(kind: str, message: str, *, code: str = "") -> TransientError | FatalError:
    """The exception for an `error` event in a stream that began with 200."""
    return from_status(STATUS_OF_TYPE.get(kind, 500), f"{kind}: {message}", code=code)


def _kind_of_refusal(message: str, code: str) -> FailureKind:
    if SPENT.search(message) or SPENT.search(code):
        return FailureKind.QUOTA
    if TOO_LONG.search(message):
        return FailureKind.CONTEXT_OVERFLOW
    return FailureKind.INTERNAL


def _is_spent(message: str, retry_after: float | None) -> bool:
    # An ordinary rate limit says when to come back; a spent budget does not.
    return retry_after is None and SPENT.search(message) is not None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """What the server asked for in seconds; None if it asked for nothing that makes sense."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
