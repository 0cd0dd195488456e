"""A fault is waited out here when that is short, elsewhere when it is long, and not for ever."""

import pytest

from agents.harness.errors import FatalError, TransientError, Waiting
from agents.harness.ports import Entry, EntryKind, EntryStatus
from agents.harness.retries import RATE_LIMIT, TRANSIENT, RetryPolicy, failures, wait_seconds

POLICY = RetryPolicy()
FAULT = TransientError("cut")
LIMIT = TransientError("429", rate_limited=True)


def journal(*kinds: str) -> list[Entry]:
    """Model calls: `ok`, or failed with this kind."""
    return [
        Entry(
            seq,
            EntryKind.MODEL,
            EntryStatus.DONE if kind == "ok" else EntryStatus.UNKNOWN,
            {},
            {"kind": kind},
        )
        for seq, kind in enumerate(kinds, 1)
    ]


def test_only_failures_since_the_last_success_count() -> None:
    entries = journal(TRANSIENT, "ok", TRANSIENT, RATE_LIMIT, "interrupted", TRANSIENT)
    assert (failures(entries, TRANSIENT), failures(entries, RATE_LIMIT)) == (2, 1)


def test_the_first_waits_are_short_and_in_place() -> None:
    assert 0.5 <= wait_seconds(FAULT, journal(TRANSIENT), POLICY, waited=0) <= 0.65
    assert 2.0 <= wait_seconds(FAULT, journal(TRANSIENT), POLICY, waited=1) <= 2.6


def test_a_short_retry_after_is_waited_in_place_even_for_a_rate_limit() -> None:
    soon = TransientError("429", retry_after_seconds=0.25, rate_limited=True)
    assert wait_seconds(soon, [], POLICY, waited=0) == 0.25


def test_a_rate_limit_without_a_time_is_not_waited_in_place() -> None:  # F-46
    with pytest.raises(Waiting) as waiting:
        wait_seconds(LIMIT, journal(RATE_LIMIT), POLICY, waited=0)
    assert waiting.value.rate_limited


def test_pauses_double_up_to_the_longest() -> None:
    seconds = []
    for count in range(3, 12):
        with pytest.raises(Waiting) as waiting:
            wait_seconds(LIMIT, journal(*[RATE_LIMIT] * count), POLICY, waited=2)
        seconds.append(waiting.value.seconds)
    for number, pause in enumerate(seconds):
        plain = min(4.0 * 2**number, 300.0)
        assert plain <= pause <= plain * 1.3


def test_runs_that_failed_together_do_not_come_back_together() -> None:  # F-46
    pauses = set()
    for _ in range(20):
        with pytest.raises(Waiting) as waiting:
            wait_seconds(LIMIT, journal(RATE_LIMIT), POLICY, waited=2)
        pauses.add(waiting.value.seconds)
    assert len(pauses) == 20


def test_faults_give_up_at_last_and_rate_limits_never_do() -> None:
    with pytest.raises(FatalError):
        wait_seconds(FAULT, journal(*[TRANSIENT] * 12), POLICY, waited=0)
    with pytest.raises(Waiting):
        wait_seconds(LIMIT, journal(*[RATE_LIMIT] * 1000), POLICY, waited=0)
