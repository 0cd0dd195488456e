"""Cancelling a card, with or without an agent at work on it."""

from django.db import transaction

from board import events
from board.actions.cards import enter_cancelled
from board.actions.dependencies import lock_cards
from board.actions.runs import cancel_idle_run, request_cancel
from board.events import Actor, publish
from board.models import Card, User
from board.states import HELD, CardStatus


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
