"""What can go wrong in the harness, by what to do about it. Every other exception is a bug."""

from enum import StrEnum


class FailureKind(StrEnum):
    """Why a run failed; the same words as `board.states.FailureKind`."""

    AUTH = "auth"
    QUOTA = "quota"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    LOOP = "loop"
    CONTEXT_OVERFLOW = "context_overflow"
    VERIFICATION = "verification"
    POLICY = "policy"
    BUDGET = "budget"
    INFRASTRUCTURE = "infrastructure"
    INTERNAL = "internal"


class TransientError(Exception):
    """Retry unchanged: overload, rate limit, a cut stream, a network fault.

    `retry_after_seconds` is what the server asked for, or None. `rate_limited` is true
    for 429 and 529, which never use up an attempt.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        rate_limited: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.rate_limited = rate_limited


class ToolError(Exception):
    """Tell the model: the message becomes the text of an `is_error` tool result."""


class FatalError(Exception):
    """Fail the run: retrying unchanged cannot help. The message is for people."""

    def __init__(self, message: str, *, kind: FailureKind = FailureKind.INTERNAL) -> None:
        super().__init__(message)
        self.kind = kind


class Waiting(Exception):  # noqa: N818  it is not an error: the run is put aside
    """The run is put aside and its coroutine ends; any worker continues it later from the journal.

    `reason` is `approval` (the question is already committed) or `retry` (nothing is committed:
    whoever catches this puts the run aside for `seconds`). `rate_limited` is true where the wait
    concerns everyone who shares the credential and the model.
    """

    def __init__(
        self, reason: str, *, seconds: float = 0.0, message: str = "", rate_limited: bool = False
    ) -> None:
        super().__init__(message or reason)
        self.reason = reason
        self.seconds = seconds
        self.rate_limited = rate_limited
