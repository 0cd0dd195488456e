import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from agents.heartbeat import Heart
from board.models import Run, Worker

pytestmark = pytest.mark.django_db(transaction=True)

LEASE_SECONDS = 4
WAIT_SECONDS = 20.0


class Body:
    """A worker's loop as the heart sees it."""

    def __init__(self) -> None:
        self.runs: dict[int, float] = {}
        self.abandoned: list[set[int] | None] = []
        self.told = threading.Event()

    def held(self) -> dict[int, float]:
        return self.runs

    def held_errands(self) -> list[int]:
        return []

    def abandon(self, run_ids: set[int] | None) -> None:
        self.abandoned.append(run_ids)
        self.told.set()


@pytest.fixture
def body(running: Run) -> Body:
    made = Body()
    made.runs = {running.pk: time.monotonic()}
    return made


@pytest.fixture
def heart(worker: Worker, body: Body, settings: Any) -> Iterator[Heart]:
    settings.LEASE_SECONDS = LEASE_SECONDS
    made = Heart(worker.pk, body)
    made.start()
    yield made
    made.stop()


def feed_until_renewed(heart: Heart, run: Run, *, seconds: float = WAIT_SECONDS) -> bool:
    """Feed the heart until the lease of the run is longer than it was."""
    before = Run.objects.get(pk=run.pk).lease_until
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        heart.feed(busy=1, lag_ms=0)
        if Run.objects.get(pk=run.pk).lease_until != before:
            return True
        time.sleep(0.1)
    return False


def is_leased(run: Run) -> bool:
    """Whether the lease has not ended yet."""
    lease = Run.objects.get(pk=run.pk).lease_until
    return lease is not None and timezone.now() < lease


def test_a_fed_heart_renews_the_leases_of_what_is_worked_on(heart: Heart, running: Run) -> None:
    assert feed_until_renewed(heart, running)
    lease = Run.objects.get(pk=running.pk).lease_until
    assert lease is not None
    assert 0 < (lease - timezone.now()).total_seconds() <= LEASE_SECONDS


def test_a_run_that_nobody_works_on_is_left_to_its_lease(
    heart: Heart, running: Run, body: Body
) -> None:
    body.runs = {}
    assert not feed_until_renewed(heart, running, seconds=LEASE_SECONDS)


def test_a_heart_that_is_not_fed_stops_everything_before_the_lease_ends(
    heart: Heart, running: Run, body: Body
) -> None:
    assert feed_until_renewed(heart, running)
    assert body.told.wait(WAIT_SECONDS)
    assert body.abandoned[0] is None
    assert is_leased(running)


def test_a_database_that_hangs_stops_everything_before_the_lease_ends(
    heart: Heart, worker: Worker, running: Run, body: Body
) -> None:
    assert feed_until_renewed(heart, running)
    with transaction.atomic():
        Worker.objects.filter(pk=worker.pk).update(busy=1)  # its row is locked until we are done
        began = time.monotonic()
        while not body.told.wait(0.1):
            heart.feed(busy=1, lag_ms=0)
            assert time.monotonic() - began < WAIT_SECONDS
        assert body.abandoned[0] is None
        assert is_leased(running)


def test_a_run_that_another_worker_holds_is_stopped(heart: Heart, running: Run, body: Body) -> None:
    Run.objects.filter(pk=running.pk).update(worker="00000000-0000-0000-0000-000000000001")
    began = time.monotonic()
    while not body.told.wait(0.1):
        heart.feed(busy=1, lag_ms=0)
        assert time.monotonic() - began < WAIT_SECONDS
    assert body.abandoned[0] == {running.pk}


def test_a_run_that_has_just_given_its_lease_back_is_no_loss(
    heart: Heart, running: Run, body: Body, caplog: pytest.LogCaptureFixture
) -> None:
    Run.objects.filter(pk=running.pk).update(worker="00000000-0000-0000-0000-000000000001")
    looks = 0

    def leaving() -> dict[int, float]:
        nonlocal looks
        looks += 1
        return body.runs if looks == 1 else {}  # it leaves its slot while the heart beats

    body.held = leaving  # type: ignore[method-assign]
    began = time.monotonic()
    while looks < 3:
        heart.feed(busy=1, lag_ms=0)
        assert time.monotonic() - began < WAIT_SECONDS
        time.sleep(0.1)
    assert body.abandoned == []
    assert "are gone" not in caplog.text
