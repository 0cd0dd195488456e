"""Runs that come back by themselves: their worker was lost, or their waiting time is over."""

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from board.actions.cards import enter_cancelled, fail_card
from board.actions.dependencies import lock_cards
from board.actions.runs import RELEASED, cancel_questions, canceller, lock_run, make_ready, show_run
from board.actions.transitions import transition
from board.errors import LeaseLostError, TransitionError
from board.events import Actor
from board.models import Run
from board.states import HELD, FailureKind, RunStatus

MAX_LOSSES = 5  # leases that ran out; then it is no accident any more


def lapsed_runs() -> QuerySet[Run]:
    """Return the runs whose lease is over."""
    return Run.objects.filter(status__in=HELD, lease_until__lt=Now())


def due_runs() -> QuerySet[Run]:
    """Return the runs whose waiting time is over."""
    return Run.objects.filter(status=RunStatus.WAITING, not_before__lte=Now())


def reap_runs() -> int:
    """Take the runs of dead workers away from them and make them ready for others; return how many."""
    expired = list(lapsed_runs().values_list("pk", "fence"))
    return sum(_reap(run_id, fence) for run_id, fence in expired)


def _reap(run_id: int, fence: int) -> bool:
    try:
        with transaction.atomic():
            card, run = lock_run(run_id, fence, with_dependents=True)
            if not Run.objects.filter(pk=run_id, fence=fence, lease_until__lt=Now()).exists():
                return False
            Run.objects.filter(pk=run_id).update(fence=F("fence") + 1, losses=F("losses") + 1)
            run.fence += 1
            run.losses += 1
            if run.cancel_requested_at is not None:
                transition(run, RunStatus.CANCELLED, ended_at=Now(), **RELEASED)
                cancel_questions(run)
                enter_cancelled(card, by=canceller(run))
            elif run.losses > MAX_LOSSES:
                reason = f"Its worker was lost {run.losses} times. Look at the workers' logs, then retry."
                transition(
                    run,
                    RunStatus.FAILED,
                    failure_kind=FailureKind.INFRASTRUCTURE,
                    failure=reason,
                    ended_at=Now(),
                    **RELEASED,
                )
                fail_card(card, kind=FailureKind.INFRASTRUCTURE, reason=reason, by=Actor.PULLCORD)
            else:
                transition(run, RunStatus.READY, ready_at=Now(), **RELEASED)
                show_run(
                    run, by=Actor.PULLCORD, reason="Its worker was lost; another continues it."
                )
    except LeaseLostError:
        return False
    return True


def wake_due_runs() -> int:
    """Make runs ready whose waiting time is over; return how many."""
    count = 0
    for run in due_runs().order_by("not_before")[:100]:
        try:
            with transaction.atomic():
                lock_cards([run.card_id])
                make_ready(run, by=Actor.PULLCORD)
        except TransitionError:
            continue
        count += 1
    return count
