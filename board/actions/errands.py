"""Errands: queueing, claiming and ending short git work. Leased and fenced as runs are."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from board import signals
from board.actions.transitions import transition
from board.models import Card, Errand, Project, User
from board.states import ErrandKind, ErrandStatus


def queue_errand(
    kind: ErrandKind,
    project: Project,
    *,
    card: Card | None = None,
    requested_by: User | None = None,
    options: dict[str, Any] | None = None,
) -> Errand:
    """Ask the workers for an errand. Call it inside a transaction."""
    errand = Errand.objects.create(
        kind=kind, project=project, card=card, requested_by=requested_by, options=options or {}
    )
    signals.announce(signals.errand_queued, errand_id=errand.pk)
    return errand


_IS_ERRAND_WAITING = (
    f"SELECT EXISTS (SELECT 1 FROM board_errand WHERE status = '{ErrandStatus.QUEUED.value}')"  # noqa: S608
)


def is_errand_waiting() -> bool:
    """Return whether a claim could find an errand."""
    with connection.cursor() as cursor:  # as in `claims.is_work_waiting`, and why
        cursor.execute(_IS_ERRAND_WAITING)
        return bool(cursor.fetchone()[0])


def claim_errand(worker: UUID) -> Errand | None:
    """Claim the oldest errand whose project has none under way, or return None."""
    busy = Errand.objects.filter(status=ErrandStatus.RUNNING).values("project_id")
    with transaction.atomic():
        errand = (
            Errand.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("project", "card")
            .filter(status=ErrandStatus.QUEUED)
            .exclude(project_id__in=busy)
            .order_by("id")
            .first()
        )
        if errand is None:
            return None
        try:
            with transaction.atomic():
                transition(
                    errand,
                    ErrandStatus.RUNNING,
                    worker=worker,
                    fence=F("fence") + 1,
                    lease_until=Now() + timedelta(seconds=settings.LEASE_SECONDS),
                )
        except IntegrityError:  # another worker began one for the same project in this moment
            return None
    return errand


def give_back_errand(errand: Errand, *, fence: int) -> None:
    """Queue an errand again, because its worker stops. Not counted as a loss."""
    transition(errand, ErrandStatus.QUEUED, holding=fence, worker=None, lease_until=None)
    signals.announce(signals.errand_queued, errand_id=errand.pk)


def end_errand(errand: Errand, status: ErrandStatus, *, fence: int, message: str = "") -> None:
    """Close an errand. Raises LeaseLostError if another worker holds it now."""
    transition(
        errand,
        status,
        holding=fence,
        message=message,
        worker=None,
        lease_until=None,
        ended_at=Now(),
    )
