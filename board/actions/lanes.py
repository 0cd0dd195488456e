"""Moving a card: within its lane, or into another, which is that lane's action or a refusal that says why."""

from django.db import transaction
from django.db.models import F

from board import events
from board.actions.cards import finish_by_hand, queue_card, retry_card, unqueue_card
from board.actions.dependencies import lock_cards
from board.actions.merges import has_verified_work, request_merge
from board.actions.placement import Place, at_place, check_limit, lock_columns
from board.errors import TransitionError, ValidationError
from board.events import Actor, publish
from board.models import Card, User
from board.states import CardStatus, Lane

REFUSALS = {
    Lane.RUNNING: "A worker takes cards from Queued by itself; put the card there.",
    Lane.MERGING: "Only reviewed work can be merged.",
    Lane.DONE: "Merge reviewed work to finish it.",
}


def move_card(card: Card, *, by: User, place: Place, op_id: str = "") -> None:
    """Move a card to another place; into another lane this is that lane's action, or a refusal."""
    if place.column.project_id != card.project_id:
        raise ValidationError("That column is on another board.")
    if place.column.lane == card.column.lane:
        _move_within_lane(card, by=by, place=place, op_id=op_id)
    else:
        drop(card, by=by, place=place, op_id=op_id)


def _move_within_lane(card: Card, *, by: User, place: Place, op_id: str) -> None:
    with transaction.atomic():
        lock_columns({card.column_id, place.column.pk})
        (locked,) = lock_cards([card.pk])
        if locked.archived_at:
            raise TransitionError(f"{card.ref} is archived. Restore it first.")
        if locked.column_id != card.column_id:
            raise TransitionError(f"{card.ref} was moved a moment ago. Look again.")
        check_limit(place.column, card=locked)
        rank = at_place(card, place)
        Card.objects.filter(pk=card.pk).update(column=place.column, rank=rank, rev=F("rev") + 1)
        publish(
            card.project_id,
            events.CardMoved(card_id=card.pk, column=place.column.name),
            by=Actor.person(by),
            op_id=op_id,
        )
    card.refresh_from_db()


def drop(card: Card, *, by: User, place: Place, op_id: str = "") -> None:
    """Do what a drop of `card` into the lane of `place` stands for.

    Raises TransitionError with the reason when the lane does not take this card.
    """
    status, lane = CardStatus(card.status), Lane(place.column.lane)
    match lane:
        case Lane.BACKLOG if status in {
            CardStatus.QUEUED,
            CardStatus.FAILED,
            CardStatus.CANCELLED,
            CardStatus.REVIEW,
        }:
            unqueue_card(card, by=by, place=place, op_id=op_id)
        case Lane.QUEUED if status is CardStatus.BACKLOG:
            queue_card(card, by=by, place=place, op_id=op_id)
        case Lane.QUEUED if status is CardStatus.FAILED:
            retry_card(card, by=by, place=place, op_id=op_id)
        case Lane.MERGING if status is CardStatus.REVIEW:
            request_merge(card, by=by, place=place, op_id=op_id)
        case Lane.REVIEW if status is CardStatus.BACKLOG:
            finish_by_hand(card, by=by, to=CardStatus.REVIEW, place=place, op_id=op_id)
        case Lane.DONE if status is CardStatus.BACKLOG or (
            status is CardStatus.REVIEW and not has_verified_work(card)
        ):
            finish_by_hand(card, by=by, to=CardStatus.DONE, place=place, op_id=op_id)
        case _:
            raise TransitionError(
                f"{card.ref} cannot go to {place.column.name}. {_why(card, lane)}"
            )


def _why(card: Card, lane: Lane) -> str:
    match CardStatus(card.status):
        case CardStatus.RUNNING:
            return "An agent works on it; cancel it first."
        case CardStatus.MERGING:
            return "It is being merged."
        case CardStatus.DONE:
            return "It is done. Make a new card for what is left."
        case CardStatus.CANCELLED:
            return "It is cancelled; move it to the backlog first."
        case CardStatus.REVIEW if lane is Lane.QUEUED:
            return "Send it back with a comment, so that the next attempt knows what to change."
        case _:
            return REFUSALS.get(lane, "Use the card's own actions.")
