"""What to do after a model call failed in passing: wait here, put the run aside, or give up.

The failures are counted in the journal, so the count survives a restart of the worker.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from agents.harness.errors import FailureKind, FatalError, TransientError, Waiting
from agents.harness.ports import Entry, EntryKind, EntryStatus

RATE_LIMIT = "rate_limit"
TRANSIENT = "transient"
INTERRUPTED = "interrupted"  # the worker was lost during the call; nobody's failure


@dataclass(frozen=True)
class RetryPolicy:
    """How patient a run is. All times are seconds."""

    short_waits: Sequence[float] = (0.5, 2.0)  # in place, holding the slot
    first_pause: float = 4.0
    longest_pause: float = 300.0
    # The SDK obeys up to 136 years; an hour is more than any real limit asks for.
    longest_retry_after: float = 3600.0
    most_failures: int = 12  # in a row; rate limits are not counted


def failure_kind(error: TransientError) -> str:
    """The word for this failure in the journal."""
    return RATE_LIMIT if error.rate_limited else TRANSIENT


def failures(entries: Sequence[Entry], kind: str) -> int:
    """How many model calls failed with `kind` since the last one that did not fail."""
    count = 0
    for entry in reversed(entries):
        if entry.kind is not EntryKind.MODEL or entry.status is EntryStatus.STARTED:
            continue
        if entry.status is EntryStatus.DONE:
            break
        count += (entry.response or {}).get("kind") == kind
    return count


def wait_seconds(
    error: TransientError, entries: Sequence[Entry], policy: RetryPolicy, *, waited: int
) -> float:
    """How long to wait in place before the next try, after `waited` such waits.

    Raises Waiting("retry") if that is too long to hold a slot, FatalError if there is no hope.
    """
    failed = failures(entries, TRANSIENT)
    if failed >= policy.most_failures:
        raise FatalError(
            f"The model could not be reached {failed} times in a row. Last answer: {error}",
            kind=FailureKind.INFRASTRUCTURE,
        )
    asked = error.retry_after_seconds
    if waited < len(policy.short_waits):
        short = policy.short_waits[waited]
        if asked is None and not error.rate_limited:
            return _jittered(short)
        if asked is not None and asked <= short:
            return asked
    raise Waiting(
        "retry",
        seconds=_pause(asked, failed + failures(entries, RATE_LIMIT), policy),
        message=str(error),
        rate_limited=error.rate_limited,
    )


def _pause(asked: float | None, failed: int, policy: RetryPolicy) -> float:
    doublings = min(max(failed - len(policy.short_waits) - 1, 0), 20)
    pause: float = min(policy.first_pause * 2**doublings, policy.longest_pause)
    if asked is not None:
        pause = min(max(asked, 0.0), policy.longest_retry_after)
    return _jittered(pause)


def _jittered(seconds: float) -> float:
    # Never earlier than asked for; a fleet that failed together must not come back together.
    return seconds * random.uniform(1.0, 1.3)  # noqa: S311  not a secret
