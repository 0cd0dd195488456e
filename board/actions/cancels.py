"""Cancelling a card, with or without an agent at work on it."""

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from board import events, signals
from board.actions.cards import enter_cancelled
from board.actions.dependencies import lock_cards
from board.actions.runs import cancel_questions
from board.actions.transitions import transition
from board.events import Actor, publish
from board.models import Card, Run, User
from board.states import HELD, CardStatus, RunStatus


def cancel_card(card: Card, *, by: User, op_id: str = "") -> None:
    """Cancel a card. A run that works now is told, and ends within seconds; then the card is cancelled."""
    actor = Actor.person(by)
    with transaction.atomic():
        lock_cards([card.pk])
        card.refresh_from_db()
        run = card.run
        if card.status == CardStatus.RUNNING and run is not None and run.is_live:
            if run.status in HELD:
                request_cancel(run, by=by)
                publish(
                    card.project_id,
                    events.RunChanged(card_id=card.pk, run_id=run.pk, status="cancelling"),
                    by=actor,
                    op_id=op_id,
                )
                return
            cancel_idle_run(run, by=by)
        enter_cancelled(card, by=actor, op_id=op_id)


def request_cancel(run: Run, *, by: User) -> None:
    """Tell the worker that holds the run to stop. Inside the caller's transaction."""
    Run.objects.filter(pk=run.pk, cancel_requested_at__isnull=True).update(
        cancel_requested_at=Now(), cancelled_by=by
    )
    Card.objects.filter(pk=run.card_id).update(rev=F("rev") + 1)
    signals.announce(signals.run_cancel_requested, run_id=run.pk)


def cancel_idle_run(run: Run, *, by: User) -> None:
    """Cancel a run that no worker holds. Inside the caller's transaction."""
    transition(
        run,
        RunStatus.CANCELLED,
        holding=run.fence,
        cancelled_by=by,
        cancel_requested_at=Now(),
        ended_at=Now(),
    )
    cancel_questions(run)
