"""Taking cards off the board, and putting them back."""

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from board import events
from board.actions.dependencies import lock_cards
from board.errors import TransitionError
from board.events import Actor, publish
from board.models import Card, User
from board.states import CardStatus


def archive_card(card: Card, *, by: User, op_id: str = "") -> None:
    """Take a card off the board. Its runs, diff and history stay."""
    with transaction.atomic():
        (locked,) = lock_cards([card.pk])
        if locked.archived_at:
            return
        if locked.status in {CardStatus.RUNNING, CardStatus.MERGING}:
            raise TransitionError(
                f"{card.ref} is {locked.status}. Cancel it before you archive it."
            )
        Card.objects.filter(pk=card.pk).update(archived_at=Now(), rev=F("rev") + 1)
        publish(
            card.project_id, events.CardArchived(card_id=card.pk), by=Actor.person(by), op_id=op_id
        )
    card.refresh_from_db()


def restore_archived_card(card: Card, *, by: User, op_id: str = "") -> None:
    """Put an archived card back where it was."""
    with transaction.atomic():
        if Card.objects.filter(pk=card.pk, archived_at__isnull=False).update(
            archived_at=None, rev=F("rev") + 1
        ):
            publish(
                card.project_id,
                events.CardRestored(card_id=card.pk),
                by=Actor.person(by),
                op_id=op_id,
            )
    card.refresh_from_db()
