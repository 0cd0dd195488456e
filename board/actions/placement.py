"""Where a card stands on the board: its column and its rank among the others."""

from collections.abc import Iterable
from dataclasses import dataclass

from board.errors import TransitionError, ValidationError
from board.models import Card, Column, Project
from board.ranks import rank_between, unique_rank
from board.states import LANE_OF, CardStatus, Lane


@dataclass(frozen=True)
class Place:
    """Where a card goes: below `above` and above `below`; if both are None to the end, or the start."""

    column: Column
    above: Card | None = None
    below: Card | None = None
    is_first: bool = False


def place_for(project: Project, status: CardStatus) -> Place:
    """Return where a card goes that nobody has put anywhere: what is over to the start, the newest first."""
    column = column_for(project, status)
    return Place(column, is_first=column.lane == Lane.DONE)


def column_for(project: Project, status: CardStatus | str) -> Column:
    """Return the first column of the lane in which a card of `status` is shown."""
    lane = LANE_OF[CardStatus(status)]
    column = Column.objects.filter(project=project, lane=lane).first()
    if column is None:
        raise TransitionError(
            f"This board has no {lane} column. Add one in the project's settings."
        )
    return column


def at_end(column: Column, card_number: int) -> str:
    """Return a rank below all cards of the column. Needs no lock: the number makes it unique."""
    last = (
        Card.objects.filter(column=column).order_by("-rank").values_list("rank", flat=True).first()
    )
    return unique_rank(rank_between(last, None), card_number)


def at_start(column: Column, card_number: int) -> str:
    """Return a rank above all cards of the column."""
    first = (
        Card.objects.filter(column=column).order_by("rank").values_list("rank", flat=True).first()
    )
    return unique_rank(rank_between(None, first), card_number)


def at_place(card: Card, place: Place) -> str:
    """Return the rank for `card` at `place`; a neighbour that has left the column is passed over.

    Between neighbours it locks the columns first, so that people who drop into the same gap come one after
    another.
    """
    if place.above is None and place.below is None:
        return (at_start if place.is_first else at_end)(place.column, card.number)
    lock_columns({card.column_id, place.column.pk})
    others = Card.objects.filter(column=place.column, archived_at__isnull=True).exclude(pk=card.pk)
    ranks = others.order_by("rank").values_list("rank", flat=True)
    above = ranks.filter(pk=place.above.pk).first() if place.above else None
    below = ranks.filter(pk=place.below.pk).first() if place.below else None
    if above is not None:
        below = ranks.filter(rank__gt=above).first()
    elif below is not None:
        above = ranks.filter(rank__lt=below).last()
    else:
        return at_end(place.column, card.number)
    return unique_rank(rank_between(above, below), card.number)


def lock_columns(ids: Iterable[int]) -> None:
    """Lock columns in id order: always before cards, and cards before the project.

    Not against a card's reference to its column, which who holds that card already needs to commit.
    """
    list(Column.objects.select_for_update(no_key=True).filter(pk__in=sorted(ids)).order_by("pk"))


def check_limit(column: Column, *, card: Card) -> None:
    """Raise TransitionError if one more card would exceed the column's limit."""
    if column.limit is None or card.column_id == column.pk:
        return
    count = Card.objects.filter(column=column, archived_at__isnull=True).count()
    if count >= column.limit:
        raise TransitionError(
            f"{column.name} is full: {count} of {column.limit} cards. Move one out first."
        )


def check_lane(column: Column, lane: Lane) -> None:
    """Raise ValidationError unless the column is of the lane."""
    if column.lane != lane:
        raise ValidationError(f"{column.name} does not hold {lane} cards.")
