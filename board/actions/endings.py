"""How a question ends, however it does: locked first, told to everybody, and its run goes on."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from board import events
from board.actions.approvers import already_decided, check_may_answer
from board.actions.audit_of_runs import record_answer
from board.actions.logs import append_log
from board.actions.runs import make_ready
from board.actions.transitions import transition
from board.errors import AlreadyDecidedError, TransitionError, ValidationError
from board.events import Actor, publish
from board.models import Approval, Card, Run, User
from board.states import ApprovalStatus, RunStatus, WaitingFor

MAX_COMMENT = 4_000  # characters of a reason or a question; the agent reads it


def ask_agent(approval: Approval, *, by: User, question: str, op_id: str = "") -> None:
    """Ask the agent something instead of deciding: its run goes on, the call does not run.

    The agent reads the question as the result of its call, answers, and may make the call again.
    Raises ValidationError without a question, and AlreadyDecidedError as `decide`.
    """
    words = question.replace("\x00", "").strip()[:MAX_COMMENT]
    if not words:
        raise ValidationError(
            "Write what you want to know; the agent answers and then asks again.",
            fields={"comment": "Write a question."},
        )
    expire_if_over(approval, by=by)
    with transaction.atomic():
        card = lock_question(approval, by=by)
        end_question(approval, ApprovalStatus.RETURNED, card, by=by, op_id=op_id, comment=words)


def overdue_questions() -> QuerySet[Approval]:
    """Return the open questions whose time is over."""
    return Approval.objects.filter(status=ApprovalStatus.PENDING, expires_at__lte=Now())


def expire_questions() -> int:
    """End the wait of questions whose time is over; return how many. Nobody has denied them."""
    count = 0
    for approval in overdue_questions().select_related("run").order_by("expires_at")[:100]:
        try:
            with transaction.atomic():
                card = lock_question(approval)
                end_question(approval, ApprovalStatus.EXPIRED, card)
        except AlreadyDecidedError:
            continue
        count += 1
    return count


def expire_if_over(approval: Approval, *, by: User) -> None:
    """End the question if its time is over but nobody has looked since. Raises AlreadyDecidedError then."""
    over = Approval.objects.filter(
        pk=approval.pk, status=ApprovalStatus.PENDING, expires_at__lte=Now()
    )
    if not over.exists():
        return
    with transaction.atomic():
        card = lock_question(approval, by=by)
        end_question(approval, ApprovalStatus.EXPIRED, card)
    raise already_decided(approval, by=by)


def lock_question(approval: Approval, *, by: User | None = None) -> Card:
    """Lock the card of an open question and return it, or raise AlreadyDecidedError for `by`.

    Raises NotAllowedError if `by` may not answer any more.

    `approval` shows afterwards what others have done to it in the meantime.
    """
    card = Card.objects.select_for_update(of=("self",)).select_related("project")
    locked = card.get(pk=approval.run.card_id)
    approval.refresh_from_db(fields=["status", "first_by", "edited_input", "comment"])
    if approval.status != ApprovalStatus.PENDING:
        raise already_decided(approval, by=by)
    if by is not None:
        check_may_answer(by, locked.project_id)
    return locked


def end_question(
    approval: Approval,
    status: ApprovalStatus,
    card: Card,
    *,
    by: User | None = None,
    op_id: str = "",
    comment: str = "",
    scope: str = "",
    edited_input: Mapping[str, Any] | None = None,
) -> None:
    """Close the question, let its run go on, and tell everybody. Inside the caller's transaction."""
    actor = Actor.person(by) if by else Actor.PULLCORD
    try:
        transition(
            approval,
            status,
            scope=scope,
            edited_input=edited_input,
            comment=comment,
            decided_by=by,
            decided_at=Now(),
        )
    except TransitionError as error:
        raise already_decided(approval, by=by) from error
    append_log(approval.run_id, [("answer", {"approval": approval.pk})])
    _continue(approval.run_id, by=actor)
    publish(
        card.project_id,
        events.ApprovalDecided(
            card_id=card.pk,
            run_id=approval.run_id,
            approval_id=approval.pk,
            status=status,
            scope=scope,
            comment=comment[:300],
            edited=edited_input is not None,
        ),
        by=actor,
        op_id=op_id,
    )
    record_answer(approval, card, by=actor, status=status)


def _continue(run_id: int, *, by: Actor) -> None:
    """Make the run ready when its last question is answered."""
    run = Run.objects.select_for_update().get(pk=run_id)
    still_open = Approval.objects.filter(run=run, status=ApprovalStatus.PENDING).exists()
    if (
        run.status == RunStatus.WAITING
        and run.waiting_for == WaitingFor.APPROVAL
        and not still_open
    ):
        make_ready(run, by=by)
