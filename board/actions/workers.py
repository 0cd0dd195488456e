"""Workers: their registration, their heartbeat with the leases, and who leads the housekeeping."""

from collections.abc import Collection, Sequence
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


@dataclass(frozen=True)
class Heartbeat:
    """What a worker still holds of what it works on."""

    held_runs: frozenset[int]
    held_errands: frozenset[int]


def register_worker(worker: Worker) -> None:
    """Store a worker that has just started, and forget those that stopped long ago."""
    worker.heartbeat_at = Now()  # an expression, computed by the database
    worker.save(force_insert=True)
    Worker.objects.filter(heartbeat_at__lt=Now() - FORGET_AFTER).delete()


def beat(
    worker_id: UUID, *, runs: Collection[int], errands: Collection[int], busy: int, lag_ms: int
) -> Heartbeat:
    """Renew the leases of what the worker works on, in one statement each; return what it still holds.

    What it holds and does not work on, because the end could not be written, is left to its lease.
    """
    lease = Now() + timedelta(seconds=settings.LEASE_SECONDS)
    with transaction.atomic():
        Worker.objects.filter(pk=worker_id).update(heartbeat_at=Now(), busy=busy, lag_ms=lag_ms)
        held_runs = Run.objects.filter(pk__in=runs, worker=worker_id, status__in=HELD)
        held_errands = Errand.objects.filter(
            pk__in=errands, worker=worker_id, status=ErrandStatus.RUNNING
        )
        held_runs.update(lease_until=lease)
        held_errands.update(lease_until=lease)
        return Heartbeat(
            frozenset(held_runs.values_list("pk", flat=True)),
            frozenset(held_errands.values_list("pk", flat=True)),
        )


def note_sandbox(worker_id: UUID, sandbox: str, message: str) -> None:
    """Record how a worker's sandbox is now, if that has changed since it started."""
    Worker.objects.filter(pk=worker_id).update(sandbox=sandbox, sandbox_message=message)


def cancelled_among(run_ids: Sequence[int]) -> list[int]:
    """Return which of these runs a person has asked to cancel. Polled each second by their worker."""
    return list(
        Run.objects.filter(pk__in=run_ids, cancel_requested_at__isnull=False).values_list(
            "pk", flat=True
        )
    )


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
