"""Merging reviewed work: a person (or the project's setting) asks, a worker does it as an errand."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models.functions import Now

from board import events
from board.actions import audit
from board.actions.audit import Act
from board.actions.dependencies import lock_cards, lock_with_dependents, unblock
from board.actions.errands import end_errand, queue_errand
from board.actions.placement import (
    Place,
    at_end,
    at_place,
    at_start,
    column_for,
    place_for,
)
from board.actions.transitions import transition
from board.errors import TransitionError
from board.events import Actor, publish
from board.models import Card, Errand, User
from board.states import CardStatus, ErrandKind, ErrandStatus, FailureKind, RunStatus


def request_merge(card: Card, *, by: User, place: Place | None = None, op_id: str = "") -> None:
    """Put reviewed work in line for the merge."""
    if card.status != CardStatus.REVIEW:
        raise TransitionError(f"{card.ref} is {card.status}; only reviewed work can be merged.")
    if not has_verified_work(card):
        raise TransitionError(f"{card.ref} has no agent's work to merge. Move it to Done by hand.")
    with transaction.atomic():
        begin_merge(card, by=Actor.person(by), user=by, place=place, op_id=op_id)


def has_verified_work(card: Card) -> bool:
    """Return whether the card's last attempt ended with its checks passed: nothing else is merged.

    A card that was put into review by hand may hold an attempt that failed or was cancelled.
    """
    run = card.run
    return run is not None and run.status == RunStatus.SUCCEEDED and bool(run.head_sha)


def begin_merge(
    card: Card, *, by: Actor, user: User | None, place: Place | None = None, op_id: str = ""
) -> None:
    """Move the card to merging and queue the errand, inside the caller's transaction."""
    place = place or place_for(card.project, CardStatus.MERGING)
    transition(
        card,
        CardStatus.MERGING,
        column=place.column,
        rank=at_place(card, place),
        failure="",
        failure_kind="",
        updated_at=Now(),
    )
    queue_errand(ErrandKind.MERGE, card.project, card=card, requested_by=user)
    publish(card.project_id, events.MergeRequested(card_id=card.pk), by=by, op_id=op_id)
    _record("merge_requested", card, by=by, sha=card.run.head_sha if card.run else "")


def finish_merge(errand: Errand, *, fence: int, sha: str, delivery: str, by: Actor) -> None:
    """Record that the card's work is on the target branch, and unblock what needs it."""
    card = _card_of(errand)
    with transaction.atomic():
        dependents = lock_with_dependents(card.pk)
        end_errand(errand, ErrandStatus.DONE, fence=fence, message=delivery)
        column = column_for(card.project, CardStatus.DONE)
        card.refresh_from_db(fields=["status"])
        transition(
            card,
            CardStatus.DONE,
            column=column,
            rank=at_start(column, card.number),
            merged_sha=sha,
            delivery=delivery,
            done_at=Now(),
            updated_at=Now(),
        )
        unblock(dependents, by=by)
        publish(
            card.project_id, events.CardDone(card_id=card.pk, sha=sha, delivery=delivery), by=by
        )
        _record("merged", card, by=by, sha=sha, branch=card.project.target_branch)


def refuse_merge(
    errand: Errand, *, fence: int, reason: str, files: Sequence[str] = (), by: Actor
) -> None:
    """Return the card to review: its work conflicts, or the checks failed on the merged tree."""
    with transaction.atomic():
        lock_cards([_card_of(errand).pk])
        end_errand(errand, ErrandStatus.FAILED, fence=fence, message=reason)
        return_to_review(errand, reason=reason, files=files, by=by)
        _record("merge_refused", _card_of(errand), by=by, reason=reason)


def return_to_review(errand: Errand, *, reason: str, files: Sequence[str] = (), by: Actor) -> None:
    """Move the card of an errand that is over from merging to review, inside the caller's transaction."""
    card = _card_of(errand)
    column = column_for(card.project, CardStatus.REVIEW)
    transition(
        card,
        CardStatus.REVIEW,
        column=column,
        rank=at_end(column, card.number),
        failure=reason,
        failure_kind=FailureKind.VERIFICATION,
        updated_at=Now(),
    )
    publish(
        card.project_id,
        events.MergeRefused(card_id=card.pk, files=tuple(files[:100]), reason=reason[:500]),
        by=by,
    )


def _record(kind: str, card: Card, *, by: Actor, **data: str) -> None:
    audit.record(Act(kind, by, project=card.project, run_id=card.run_id, card=card.ref, data=data))


def _card_of(errand: Errand) -> Card:
    if errand.card_id is None:
        raise TransitionError("This errand is not a merge.")
    return Card.objects.select_related("project").get(pk=errand.card_id)
