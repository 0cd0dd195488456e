"""What a card needs before it can start, kept as the counter `unmet` on the card.

Lock order everywhere: columns, then cards by id, then the project.
"""

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models import F

from board import events, signals
from board.actions.placement import at_end, column_for
from board.actions.transitions import transition
from board.errors import TransitionError, ValidationError
from board.events import Actor, publish
from board.models import Card, Dependency, Project, User
from board.states import CardStatus, FailureKind


def set_dependencies(card: Card, needs: Sequence[Card], *, by: User, op_id: str = "") -> None:
    """Make `needs` exactly what `card` needs.

    Raises ValidationError for a cycle (naming its path) or a card of another project, and
    TransitionError once an agent has begun.
    """
    with transaction.atomic():
        lock_cards({card.pk, *(need.pk for need in needs)})
        card.refresh_from_db()
        if card.status not in {CardStatus.BACKLOG, CardStatus.QUEUED, CardStatus.FAILED}:
            raise TransitionError(
                f"{card.ref} is {card.status}; what it needs can no longer change."
            )
        if link_dependencies(card, needs):
            publish(
                card.project_id,
                events.CardBlocked(card_id=card.pk, unmet=card.unmet),
                by=Actor.person(by),
                op_id=op_id,
            )


def link_dependencies(card: Card, needs: Sequence[Card]) -> bool:
    """Write the links and `unmet`, and return whether anything changed. The cards must be locked."""
    for need in needs:
        if need.project_id != card.project_id:
            raise ValidationError(
                "A card can only need cards of its own project.",
                fields={"depends_on": "Choose cards of this project."},
            )
    wanted = {need.pk for need in needs}
    present = set(Dependency.objects.filter(card=card).values_list("needs_id", flat=True))
    if wanted == present:
        return False
    # Two links that close a cycle together may share no card; the project's lock lets them see each other.
    Project.objects.select_for_update().get(pk=card.project_id)
    check_cycle(card, needs)
    Dependency.objects.filter(card=card, needs_id__in=present - wanted).delete()
    Dependency.objects.bulk_create(
        Dependency(card=card, needs_id=needs_id) for needs_id in sorted(wanted - present)
    )
    card.unmet = count_unmet(card)
    Card.objects.filter(pk=card.pk).update(unmet=card.unmet, rev=F("rev") + 1)
    return True


def check_cycle(card: Card, needs: Iterable[Card]) -> None:
    """Raise ValidationError if `card` needing `needs` closes a cycle; the message names the path."""
    edges: dict[int, list[int]] = {}
    rows = Dependency.objects.filter(card__project_id=card.project_id)
    for card_id, needs_id in rows.values_list("card_id", "needs_id"):
        edges.setdefault(card_id, []).append(needs_id)
    for need in needs:
        path = _path(edges, need.pk, card.pk)
        if path is None:
            continue
        numbers = dict(Card.objects.filter(pk__in=path).values_list("pk", "number"))
        numbers[card.pk] = card.number
        names = " → ".join(f"{card.project.key}-{numbers[pk]}" for pk in [card.pk, *path])
        raise ValidationError(
            f"That would be a circle: {names}. Remove one of these links first.",
            fields={"depends_on": f"A circle: {names}"},
        )


def _path(edges: dict[int, list[int]], start: int, goal: int) -> list[int] | None:
    """Return the way along `edges` from `start` to `goal`, both included, or None."""
    came_from: dict[int, int | None] = {start: None}
    todo = [start]
    while todo:
        here = todo.pop()
        if here == goal:
            path = [here]
            while (previous := came_from[path[-1]]) is not None:
                path.append(previous)
            return path[::-1]
        for there in edges.get(here, ()):
            if there not in came_from:
                came_from[there] = here
                todo.append(there)
    return None


def count_unmet(card: Card) -> int:
    """Return how many of the cards that it needs are not done."""
    return Dependency.objects.filter(card=card).exclude(needs__status=CardStatus.DONE).count()


def lock_cards(ids: Iterable[int]) -> list[Card]:
    """Lock cards in id order and return them."""
    rows = Card.objects.select_for_update().filter(pk__in=sorted(ids)).order_by("pk")
    return list(rows)


def lock_with_dependents(card_id: int) -> list[int]:
    """Lock a card and all that its failure or success reaches, in id order; return its direct dependents.

    Adding a link locks both of its cards, so once the card is locked no dependent can appear.
    """
    locked = _reach(card_id)
    lock_cards(locked)
    late = _reach(card_id) - locked
    if late:
        lock_cards(late)
    return sorted(Dependency.objects.filter(needs_id=card_id).values_list("card_id", flat=True))


def _reach(card_id: int) -> set[int]:
    """Return the card, those that need it directly or through others, and those that failed with it."""
    found: set[int] = set()
    edge = {card_id}
    while edge:
        found |= edge
        ids = Dependency.objects.filter(needs_id__in=edge).values_list("card_id", flat=True)
        edge = set(ids) - found
    return found | set(Card.objects.filter(failed_by_id=card_id).values_list("pk", flat=True))


def unblock(dependents: Sequence[int], *, by: Actor) -> None:
    """Count one needed card as done for each of `dependents`, which the caller has locked."""
    Card.objects.filter(pk__in=dependents).update(unmet=F("unmet") - 1, rev=F("rev") + 1)
    free = Card.objects.filter(pk__in=dependents, unmet=0).order_by("pk")
    for card in free:
        publish(card.project_id, events.CardUnblocked(card_id=card.pk), by=by)
        if card.status == CardStatus.QUEUED:
            signals.announce(signals.card_queued, card_id=card.pk)


def fail_dependents(root: Card, *, by: Actor) -> None:
    """Fail every queued card that needs `root`, directly or not; retrying `root` restores them."""
    for card in _downstream(root, CardStatus.QUEUED):
        card.project = root.project
        column = column_for(root.project, CardStatus.FAILED)
        reason = (
            f"{root.ref} failed, and this card needs it. Retry {root.ref} to bring this one back."
        )
        transition(
            card,
            CardStatus.FAILED,
            column=column,
            rank=at_end(column, card.number),
            failure_kind=FailureKind.UPSTREAM,
            failure=reason,
            failed_by=root,
        )
        publish(
            card.project_id,
            events.CardFailed(card_id=card.pk, kind=FailureKind.UPSTREAM, reason=reason),
            by=by,
        )


def restore_dependents(root: Card, *, by: Actor) -> None:
    """Put the cards that failed only because of `root` back in the queue."""
    ids = Card.objects.filter(failed_by=root, status=CardStatus.FAILED, archived_at__isnull=True)
    for card in lock_cards(ids.values_list("pk", flat=True)):
        card.project = root.project
        column = column_for(root.project, CardStatus.QUEUED)
        transition(
            card,
            CardStatus.QUEUED,
            column=column,
            rank=at_end(column, card.number),
            failure_kind="",
            failure="",
            failed_by=None,
        )
        publish(card.project_id, events.CardRestored(card_id=card.pk), by=by)


def _downstream(root: Card, status: CardStatus) -> list[Card]:
    """Return, locked, all cards of `status` that need `root` directly or through others."""
    found: set[int] = set()
    edge = {root.pk}
    while edge:
        ids = Dependency.objects.filter(needs_id__in=edge).values_list("card_id", flat=True)
        edge = set(ids) - found - {root.pk}
        found |= edge
    return [
        card for card in lock_cards(found) if card.status == status and card.archived_at is None
    ]
