"""The life of a run after its claim: put aside, made ready, ended. Every write of a worker names its fence."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from board import bus, events, signals
from board.actions.cards import enter_cancelled, fail_card
from board.actions.dependencies import lock_with_dependents
from board.actions.merges import begin_merge
from board.actions.placement import at_end, column_for
from board.actions.transitions import transition
from board.errors import LeaseLostError, TransitionError
from board.events import Actor, publish
from board.models import Approval, Card, Run, Step
from board.states import (
    HELD,
    ApprovalStatus,
    CardStatus,
    FailureKind,
    RunStatus,
    StepStatus,
    WaitingFor,
)

RELEASED: Mapping[str, Any] = {
    "worker": None,
    "lease_until": None,
    "held_since": None,
    "activity": "",
}


def get_held(run_id: int, fence: int) -> Run:
    """Return the run with its card and project, or raise LeaseLostError if `fence` is stale."""
    run = (
        Run.objects.select_related("card__project", "project")
        .filter(pk=run_id, fence=fence, status__in=HELD)
        .first()
    )
    if run is None:
        raise LeaseLostError("Another worker holds this run now.")
    return run


def begin_work(run_id: int, fence: int, **workspace: Any) -> None:
    """Record the run's workspace (`branch`, `base_sha`, `workspace`, `host`) and let it run."""
    with transaction.atomic():
        run = get_held(run_id, fence)
        if run.status == RunStatus.RUNNING:
            Run.objects.filter(pk=run_id, fence=fence).update(**workspace)
            return
        transition(run, RunStatus.RUNNING, holding=fence, **workspace)


def note_progress(run_id: int, fence: int, **progress: Any) -> None:
    """Store what the run does now: `activity`, `plan`, `head_sha`, `changes`, `evidence`. Not an event."""
    if not Run.objects.filter(pk=run_id, fence=fence, status__in=HELD).update(**progress):
        raise LeaseLostError("Another worker holds this run now.")


def put_aside(
    run_id: int,
    fence: int,
    *,
    waiting_for: WaitingFor,
    active_seconds: float,
    seconds: float = 0.0,
    reason: str = "",
) -> None:
    """Give back the lease and the slot of a run that waits; after `seconds` it becomes ready again.

    A run that a person asked to cancel in the meantime does not wait: it is cancelled.
    """
    with transaction.atomic():
        card, run = lock_run(run_id, fence)
        if run.cancel_requested_at is not None:
            _cancel(card, run, fence, active_seconds=active_seconds)
            return
        transition(
            run,
            RunStatus.WAITING,
            holding=fence,
            waiting_for=waiting_for,
            not_before=Now() + timedelta(seconds=seconds) if seconds else None,
            active_seconds=F("active_seconds") + active_seconds,
            **RELEASED,
        )
        show_run(run, by=Actor(run.agent), reason=reason)


def give_back(run_id: int, fence: int, *, active_seconds: float) -> None:
    """Make a run ready for any worker, because this one stops. Not counted as a loss."""
    with transaction.atomic():
        _, run = lock_run(run_id, fence)
        transition(
            run,
            RunStatus.READY,
            holding=fence,
            ready_at=Now(),
            active_seconds=F("active_seconds") + active_seconds,
            **RELEASED,
        )
        show_run(run, by=Actor.PULLCORD, reason="Its worker is stopping.")


def finish_run(
    run_id: int,
    fence: int,
    *,
    head_sha: str,
    summary: str,
    evidence: Sequence[Mapping[str, Any]],
    changes: Mapping[str, Any],
    active_seconds: float,
) -> None:
    """End a run whose checks passed: the card goes to review, and on to the merge where the project says so.

    Raises TransitionError if a person asked to cancel it in the meantime.
    """
    with transaction.atomic():
        card, run = lock_run(run_id, fence)
        if run.cancel_requested_at is not None:
            raise TransitionError("This run was cancelled.")
        transition(
            run,
            RunStatus.SUCCEEDED,
            holding=fence,
            head_sha=head_sha,
            summary=summary,
            evidence=list(evidence),
            changes=dict(changes),
            active_seconds=F("active_seconds") + active_seconds,
            ended_at=Now(),
            **RELEASED,
        )
        column = column_for(card.project, CardStatus.REVIEW)
        transition(
            card,
            CardStatus.REVIEW,
            column=column,
            rank=at_end(column, card.number),
            remaining="",
            updated_at=Now(),
        )
        actor = Actor(run.agent)
        publish(card.project_id, events.CardReviewed(card_id=card.pk, run_id=run.pk), by=actor)
        # What a person did not approve, a person looks at before it is merged. So it is with what the
        # policy finds in the work: that a write was approved does not say what the file became later.
        is_clear = not refused_calls(run.pk).exists() and not changes.get("findings")
        if card.project.auto_merge and is_clear:
            begin_merge(card, by=Actor.PULLCORD, user=None)
    bus.ring(bus.run_group(run_id))


def refused_calls(run_id: int) -> QuerySet[Approval]:
    """Return the calls of a run that people denied, or that expired without an answer, in order."""
    ends = [ApprovalStatus.DENIED, ApprovalStatus.EXPIRED]
    return Approval.objects.filter(run_id=run_id, status__in=ends).order_by("pk")


def fail_run(
    run_id: int,
    fence: int,
    *,
    kind: FailureKind,
    message: str,
    active_seconds: float,
    **outcome: Any,
) -> None:
    """End a run that failed, and with it the card.

    `outcome` may hold evidence, changes, head_sha, summary, remaining.
    """
    with transaction.atomic():
        card, run = lock_run(run_id, fence, with_dependents=True)
        transition(
            run,
            RunStatus.FAILED,
            holding=fence,
            failure_kind=kind,
            failure=message,
            active_seconds=F("active_seconds") + active_seconds,
            ended_at=Now(),
            **RELEASED,
            **outcome,
        )
        cancel_questions(run)
        if outcome.get("remaining"):
            Card.objects.filter(pk=card.pk).update(remaining=outcome["remaining"])
        if run.cancel_requested_at is not None:
            enter_cancelled(card, by=canceller(run))
        else:
            fail_card(card, kind=kind, reason=message, by=Actor(run.agent or "Pullcord"))
    bus.ring(bus.run_group(run_id))


def end_cancelled(run_id: int, fence: int, *, active_seconds: float, **outcome: Any) -> None:
    """End a run that a person cancelled; its processes are dead."""
    with transaction.atomic():
        card, run = lock_run(run_id, fence)
        _cancel(card, run, fence, active_seconds=active_seconds, **outcome)
    bus.ring(bus.run_group(run_id))


def _cancel(card: Card, run: Run, fence: int, *, active_seconds: float, **outcome: Any) -> None:
    transition(
        run,
        RunStatus.CANCELLED,
        holding=fence,
        active_seconds=F("active_seconds") + active_seconds,
        ended_at=Now(),
        **RELEASED,
        **outcome,
    )
    cancel_questions(run)
    enter_cancelled(card, by=canceller(run))


def make_ready(run: Run, *, by: Actor, reason: str = "") -> None:
    """Let any worker continue a run that waited. Inside the caller's transaction."""
    transition(run, RunStatus.READY, ready_at=Now(), not_before=None)
    show_run(run, by=by, reason=reason)


def lock_run(run_id: int, fence: int, *, with_dependents: bool = False) -> tuple[Card, Run]:
    """Lock the card, then return it with the run that `fence` holds, or raise LeaseLostError.

    What may fail the card locks all that fails with it too, since cards are locked in id order.
    """
    card_id = Run.objects.values_list("card_id", flat=True).get(pk=run_id)
    if with_dependents:
        lock_with_dependents(card_id)
    card = Card.objects.select_for_update(of=("self",)).select_related("project").get(pk=card_id)
    run = get_held(run_id, fence)
    run.card = card
    return card, run


def show_run(run: Run, *, by: Actor, reason: str = "") -> None:
    """Publish the run's new status; a ready run is also announced to the workers."""
    Card.objects.filter(pk=run.card_id).update(rev=F("rev") + 1)
    publish(
        run.project_id,
        events.RunChanged(
            card_id=run.card_id,
            run_id=run.pk,
            status=run.status,
            waiting_for=run.waiting_for,
            reason=reason,
        ),
        by=by,
    )
    if run.status == RunStatus.READY:
        signals.announce(signals.run_ready, run_id=run.pk)


def cancel_questions(run: Run) -> None:
    """End the questions of a run that is over: nobody need answer them any more."""
    for approval in Approval.objects.filter(run=run, status=ApprovalStatus.PENDING):
        transition(approval, ApprovalStatus.CANCELLED, decided_at=Now())
        Step.objects.filter(pk=approval.step_id, status=StepStatus.PENDING).update(
            status=StepStatus.DONE, response={"text": "Cancelled.", "is_error": True, "details": {}}
        )
        publish(
            run.project_id,
            events.ApprovalDecided(
                card_id=run.card_id,
                run_id=run.pk,
                approval_id=approval.pk,
                status=ApprovalStatus.CANCELLED,
            ),
            by=Actor.PULLCORD,
        )


def canceller(run: Run) -> Actor:
    """Return who asked for the end of a run."""
    return Actor.person(run.cancelled_by) if run.cancelled_by else Actor.PULLCORD
