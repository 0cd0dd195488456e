"""What people do with cards."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from board import events, signals
from board.actions.cleaning import MAX_TEXT, clean_card
from board.actions.dependencies import (
    fail_dependents,
    link_dependencies,
    lock_cards,
    lock_with_dependents,
    restore_dependents,
    unblock,
)
from board.actions.placement import (
    Place,
    at_end,
    at_place,
    check_limit,
    column_for,
    lock_columns,
    place_for,
)
from board.actions.transitions import transition
from board.errors import TransitionError, ValidationError
from board.events import Actor, publish
from board.models import Card, Column, Comment, Project, User
from board.states import CardStatus

NOT_TO_QUEUE = {
    CardStatus.QUEUED: "Workers see it already.",
    CardStatus.RUNNING: "An agent works on it.",
    CardStatus.REVIEW: "Send it back with a comment, so that the next attempt knows what to change.",
    CardStatus.MERGING: "It is being merged.",
    CardStatus.DONE: "Make a new card for what is left.",
    CardStatus.FAILED: "Retry it.",
    CardStatus.CANCELLED: "Move it to the backlog first.",
}

# Where a card may stand without a word on how its work is accepted: no agent gets it from there.
WITHOUT_CHECKS = {CardStatus.BACKLOG, CardStatus.DONE, CardStatus.CANCELLED}


def create_card(
    project: Project,
    *,
    by: User,
    title: str,
    goal: str = "",
    files: Sequence[str] = (),
    constraints: str = "",
    checks: Sequence[str] = (),
    no_check: bool = False,
    depends_on: Sequence[Card] = (),
    priority: int = 1,
    tool_profile: str = "",
    column: Column | None = None,
    op_id: str = "",
) -> Card:
    """Add a card to the end of the backlog (or of `column`, which must be a backlog column)."""
    values = clean_card(
        {
            "title": title,
            "goal": goal,
            "files": list(files),
            "constraints": constraints,
            "checks": list(checks),
            "no_check": no_check,
            "priority": priority,
            "tool_profile": tool_profile,
        }
    )
    with transaction.atomic():
        lock_cards(need.pk for need in depends_on)
        number = _take_number(project)
        place = column or column_for(project, CardStatus.BACKLOG)
        card = Card.objects.create(
            project=project,
            number=number,
            column=place,
            rank=at_end(place, number),
            created_by=by,
            **values,
        )
        link_dependencies(card, depends_on)
        publish(project.pk, events.CardCreated(card_id=card.pk), by=Actor.person(by), op_id=op_id)
    return card


def _take_number(project: Project) -> int:
    locked = Project.objects.select_for_update().get(pk=project.pk)
    Project.objects.filter(pk=project.pk).update(next_number=locked.next_number + 1)
    return locked.next_number


def edit_card(
    card: Card, *, by: User, rev: int | None = None, op_id: str = "", **values: Any
) -> None:
    """Change a card's text, checks or priority.

    `rev` is what the person saw; if the text has changed since, TransitionError says so and nothing
    is lost on either side.
    """
    if "depends_on" in values:
        raise TypeError("use set_dependencies")
    cleaned = clean_card(values)
    with transaction.atomic():
        (locked,) = lock_cards([card.pk])
        changed = {name: value for name, value in cleaned.items() if getattr(locked, name) != value}
        if locked.status not in WITHOUT_CHECKS and changed.keys() & {"checks", "no_check"}:
            _check_acceptance(
                card.ref,
                checks=cleaned.get("checks", locked.checks),
                no_check=cleaned.get("no_check", locked.no_check),
            )
        if rev is not None and _text_changed_since(locked, rev, changed):
            raise TransitionError(
                "Someone else edited this card while you did. Your text is kept here: "
                "compare it with theirs and save again."
            )
        if not changed:
            return
        Card.objects.filter(pk=card.pk).update(**changed, rev=F("rev") + 1, updated_at=Now())
        publish(
            card.project_id,
            events.CardEdited(card_id=card.pk, fields=tuple(changed), rev=locked.rev + 1),
            by=Actor.person(by),
            op_id=op_id,
        )
    card.refresh_from_db()


def _text_changed_since(card: Card, rev: int, changed: dict[str, Any]) -> bool:
    """Return whether an edit of the same fields happened after `rev` was shown.

    A card's rev also rises by moves and runs, which an open editor may ignore.
    """
    edits = card.events.filter(kind="CardEdited").order_by("-seq")[: max(card.rev - rev, 0)]
    later = [edit.payload for edit in edits if edit.payload["rev"] > rev]
    return any(set(payload["fields"]) & set(changed) for payload in later)


def queue_card(card: Card, *, by: User, place: Place | None = None, op_id: str = "") -> None:
    """Give a card of the backlog to the agents."""
    if card.status != CardStatus.BACKLOG:
        raise TransitionError(
            f"{card.ref} is {card.status}. {NOT_TO_QUEUE[CardStatus(card.status)]}"
        )
    _give_to_agents(card, by=by, place=place, op_id=op_id)


def unqueue_card(card: Card, *, by: User, place: Place | None = None, op_id: str = "") -> None:
    """Take a card out of the queue, back to the backlog; also a failed or cancelled card."""
    with transaction.atomic():
        _enter(card, CardStatus.BACKLOG, place=place, failure="", failure_kind="", failed_by=None)
        publish(
            card.project_id, events.CardUnqueued(card_id=card.pk), by=Actor.person(by), op_id=op_id
        )


def retry_card(card: Card, *, by: User, place: Place | None = None, op_id: str = "") -> None:
    """Queue a failed card again, and restore the cards that failed because of it."""
    if card.status != CardStatus.FAILED:
        raise TransitionError(f"{card.ref} is {card.status}; only a failed card can be retried.")
    _give_to_agents(card, by=by, place=place, op_id=op_id)


def _give_to_agents(card: Card, *, by: User, place: Place | None, op_id: str) -> None:
    """Queue a card, and with it the cards that failed only because of it, also if it rested since."""
    with transaction.atomic():
        place = _lock_way(card, CardStatus.QUEUED, place)
        lock_with_dependents(card.pk)
        _put(card, CardStatus.QUEUED, place, failure="", failure_kind="", failed_by=None)
        restore_dependents(card, by=Actor.person(by))
        publish(
            card.project_id,
            events.CardQueued(card_id=card.pk, attempt=card.attempts + 1),
            by=Actor.person(by),
            op_id=op_id,
        )
        signals.announce(signals.card_queued, card_id=card.pk)


def send_back(card: Card, *, by: User, comment: str, op_id: str = "") -> None:
    """Return reviewed work to the queue; the comment steers the next attempt."""
    body = comment.replace("\x00", "").strip()
    if not body:
        raise ValidationError(
            "Say what should change.",
            fields={"comment": "The agent reads this before it starts again."},
        )
    if card.status != CardStatus.REVIEW:
        raise TransitionError(f"{card.ref} is {card.status}; only work in review can be sent back.")
    with transaction.atomic():
        _enter(card, CardStatus.QUEUED, failure="", failure_kind="")
        Comment.objects.create(
            card=card, run=card.run, author=by, kind="send_back", body=body[:MAX_TEXT]
        )
        publish(
            card.project_id,
            events.CardSentBack(card_id=card.pk, comment=body[:300]),
            by=Actor.person(by),
            op_id=op_id,
        )
        signals.announce(signals.card_queued, card_id=card.pk)


def finish_by_hand(
    card: Card, *, by: User, to: CardStatus, place: Place | None = None, op_id: str = ""
) -> None:
    """Move a card that needs no agent to review or done; the history says who."""
    with transaction.atomic():
        place = _lock_way(card, to, place)
        dependents = lock_with_dependents(card.pk)
        done_at = {"done_at": Now()} if to == CardStatus.DONE else {}
        _put(card, to, place, **done_at)
        actor = Actor.person(by)
        if to == CardStatus.DONE:
            restore_dependents(card, by=actor)
            unblock(dependents, by=actor)
            publish(card.project_id, events.CardDone(card_id=card.pk), by=actor, op_id=op_id)
        else:
            publish(card.project_id, events.CardReviewed(card_id=card.pk), by=actor, op_id=op_id)


def enter_cancelled(card: Card, *, by: Actor, op_id: str = "") -> None:
    """Make the card cancelled. Its run, if any, is over."""
    _enter(card, CardStatus.CANCELLED, failure="", failure_kind="", failed_by=None)
    publish(card.project_id, events.CardCancelled(card_id=card.pk), by=by, op_id=op_id)


def fail_card(card: Card, *, kind: str, reason: str, by: Actor) -> None:
    """Make the card failed, and with it the queued cards that need it.

    The caller has locked it by `lock_with_dependents`.
    """
    _enter(card, CardStatus.FAILED, failure_kind=kind, failure=reason)
    fail_dependents(card, by=by)
    publish(
        card.project_id, events.CardFailed(card_id=card.pk, kind=kind, reason=reason[:300]), by=by
    )


def _enter(card: Card, status: CardStatus, *, place: Place | None = None, **changes: Any) -> None:
    """Change the card's status and put it in that status's lane, at `place` or at the end.

    The end of a run locks no columns, for it holds cards already, and asks for no room.
    """
    if status in {CardStatus.FAILED, CardStatus.CANCELLED}:
        place = place or place_for(card.project, status)
    else:
        place = _lock_way(card, status, place)
    _put(card, status, place, **changes)


def _put(card: Card, status: CardStatus, place: Place, **changes: Any) -> None:
    """Do it. Unless a run has ended, the columns are locked: see `_lock_way`.

    A column's limit stops a person, never the end of a run: failed and cancelled cards always fit.
    """
    column, rank = place.column, at_place(card, place)
    if status not in {CardStatus.FAILED, CardStatus.CANCELLED}:
        check_limit(column, card=card)
    if status == CardStatus.QUEUED:
        (locked,) = lock_cards([card.pk])
        _check_acceptance(card.ref, checks=locked.checks, no_check=locked.no_check)
    transition(card, status, column=column, rank=rank, updated_at=Now(), **changes)


def _check_acceptance(ref: str, *, checks: Sequence[str], no_check: bool) -> None:
    """Raise ValidationError if nothing says when the work of this card is good enough."""
    if not checks and not no_check:
        raise ValidationError(
            f"{ref} has no acceptance check. Add a command that must succeed, "
            "or say that this card needs none.",
            fields={"checks": "Add a command, or tick “No check”."},
        )


def _lock_way(card: Card, status: CardStatus, place: Place | None) -> Place:
    """Lock the columns that the card leaves and enters, before any card is locked; return where it goes."""
    place = place or place_for(card.project, status)
    lock_columns({card.column_id, place.column.pk})
    return place
