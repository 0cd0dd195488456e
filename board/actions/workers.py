"""Workers: their registration, their heartbeat with the leases, and who leads the housekeeping."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from board.models import Errand, LeaderLease, Run, Worker
from board.states import HELD, ErrandStatus

FORGET_AFTER = timedelta(days=1)
STUCK_AFTER = timedelta(seconds=2 * settings.LEASE_SECONDS)


@dataclass(frozen=True)
class Heartbeat:
    """What a worker still holds, and which of its runs a person has cancelled."""

    held_runs: frozenset[int]
    held_errands: frozenset[int]
    cancelled_runs: frozenset[int]


def register_worker(worker: Worker) -> None:
    """Store a worker that has just started, and forget those that stopped long ago."""
    worker.heartbeat_at = Now()  # type: ignore[assignment]  # an expression, computed by the database
    worker.save(force_insert=True)
    Worker.objects.filter(heartbeat_at__lt=Now() - FORGET_AFTER).delete()


def beat(worker_id: UUID, *, busy: int, lag_ms: int) -> Heartbeat:
    """Renew all leases of a worker in one statement each and return what it still holds."""
    lease = Now() + timedelta(seconds=settings.LEASE_SECONDS)
    with transaction.atomic():
        Worker.objects.filter(pk=worker_id).update(heartbeat_at=Now(), busy=busy, lag_ms=lag_ms)
        runs = Run.objects.filter(worker=worker_id, status__in=HELD)
        errands = Errand.objects.filter(worker=worker_id, status=ErrandStatus.RUNNING)
        runs.update(lease_until=lease)
        errands.update(lease_until=lease)
        held = dict(runs.values_list("pk", "cancel_requested_at"))
        held_errands = frozenset(errands.values_list("pk", flat=True))
    cancelled = frozenset(pk for pk, asked in held.items() if asked is not None)
    return Heartbeat(frozenset(held), held_errands, cancelled)


def cancelled_among(run_ids: Sequence[int]) -> list[int]:
    """Return which of these runs a person has asked to cancel. Polled each second by their worker."""
    return list(
        Run.objects.filter(pk__in=run_ids, cancel_requested_at__isnull=False).values_list(
            "pk", flat=True
        )
    )


def is_beating(pid: int) -> bool:
    """Return whether the worker with this pid on this host beats, or has not had the time to.

    For the supervisor: a worker that lives but does not beat is stuck.
    """
    rows = Worker.objects.filter(pid=pid, host=socket.gethostname(), stopped_at__isnull=True)
    if not rows.exists():
        return True  # it is still starting, or cannot reach the database, which a restart does not help
    return rows.filter(heartbeat_at__gt=Now() - STUCK_AFTER).exists()


def stop_worker(worker_id: UUID) -> None:
    """Record that a worker has stopped cleanly."""
    Worker.objects.filter(pk=worker_id).update(stopped_at=Now(), busy=0)


def take_lead(name: str, holder: UUID, *, seconds: float) -> bool:
    """Return whether `holder` leads `name` for the next `seconds`; at most one holder does."""
    until = Now() + timedelta(seconds=seconds)
    mine = Q(holder=holder) | Q(expires_at__lt=Now())
    if LeaderLease.objects.filter(mine, name=name).update(holder=holder, expires_at=until):
        return True
    if LeaderLease.objects.filter(name=name).exists():
        return False
    try:
        with transaction.atomic():
            LeaderLease.objects.create(name=name, holder=holder, expires_at=until)
    except IntegrityError:
        return False
    return True
