"""The cord: a worker asks and lets go of the run; the first person's answer makes it ready again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from board import events
from board.actions.approvers import (
    check_edit,
    check_may_answer,
    check_may_approve,
    check_same,
    check_seen,
    needs_another,
    note_first,
)
from board.actions.audit_of_runs import record_question
from board.actions.endings import MAX_COMMENT, end_question, expire_if_over, lock_question
from board.actions.journal import take_seq
from board.actions.logs import append_log
from board.actions.notices import announce_question
from board.actions.policies import add_grant, project_grants
from board.actions.runs import RELEASED, lock_run
from board.actions.texts import clean
from board.actions.transitions import transition
from board.errors import TransitionError
from board.events import Actor, publish
from board.gate import GrantedCall
from board.models import Approval, Card, Grant, Project, Run, Step, User
from board.states import (
    ROLE_ORDER,
    ApprovalScope,
    ApprovalStatus,
    Role,
    RunStatus,
    StepKind,
    StepStatus,
    WaitingFor,
)


@dataclass(frozen=True)
class Question:
    """What a worker asks: the call, and why the policy asks about it."""

    call_id: str
    tool: str
    input: Mapping[str, Any]
    rule: str
    reasons: Sequence[str]
    digest: str
    facts: Mapping[str, Any]
    effects: Sequence[Mapping[str, Any]]
    sandbox: str
    record: Mapping[str, Any] = field(default_factory=dict)  # what the gate saw, for the step
    shown: Mapping[str, Any] = field(default_factory=dict)  # see `Approval.shown`
    critical: bool = False  # see docs/reference/policy.md


def request_approval(
    run_id: int, fence: int, question: Question, *, seq: int | None, active_seconds: float
) -> Approval:
    """Commit the question and put the run aside, in one transaction.

    `seq` is the pending step that asks again, because what was approved has changed; None adds a step.
    Raises TransitionError if a person asked to cancel the run in the meantime.
    """
    with transaction.atomic():
        _, run = lock_run(run_id, fence)
        if run.cancel_requested_at is not None:
            raise TransitionError("This run was cancelled.")
        step = _pending_step(run, fence, question, seq)
        approval = Approval.objects.create(
            project_id=run.project_id,
            run=run,
            step=step,
            tool=question.tool,
            input=clean(dict(question.input)),
            rule=question.rule,
            reasons=clean(list(question.reasons)),
            digest=question.digest,
            facts=clean(dict(question.facts)),
            effects=clean(list(question.effects)),
            sandbox=question.sandbox,
            shown=clean(dict(question.shown)),
            critical=question.critical,
            expires_at=_expiry(run.project),
        )
        announce_question(approval)
        transition(
            run,
            RunStatus.WAITING,
            holding=fence,
            waiting_for=WaitingFor.APPROVAL,
            questions=F("questions") + 1,
            active_seconds=F("active_seconds") + active_seconds,
            **RELEASED,
        )
        append_log(
            run_id, [("cord", {"approval": approval.pk, "call": question.call_id})], fence=fence
        )
        Card.objects.filter(pk=run.card_id).update(rev=F("rev") + 1)
        publish(
            run.project_id,
            events.ApprovalRequested(
                card_id=run.card_id,
                run_id=run.pk,
                approval_id=approval.pk,
                what=str(question.input.get("command", question.tool))[:300],
            ),
            by=Actor(run.agent),
        )
        record_question(approval, run)
    return approval


def _expiry(project: Project) -> Any:
    """Return when a question of this project expires; None: never."""
    minutes = project.expiry_minutes
    return None if minutes is None else Now() + timedelta(minutes=minutes)


def _pending_step(run: Run, fence: int, question: Question, seq: int | None) -> Step:
    if seq is not None:
        return Step.objects.get(run=run, seq=seq, status=StepStatus.PENDING)
    return Step.objects.create(
        run=run,
        seq=take_seq(run.pk, fence),
        kind=StepKind.TOOL,
        status=StepStatus.PENDING,
        fence=fence,
        request=clean(
            {
                "id": question.call_id,
                "tool": question.tool,
                "input": dict(question.input),
                **({"gate": dict(question.record)} if question.record else {}),
            }
        ),
    )


def decide(
    approval: Approval,
    *,
    by: User,
    role: Role,
    approve: bool,
    scope: ApprovalScope = ApprovalScope.ONCE,
    edited_input: Mapping[str, Any] | None = None,
    comment: str = "",
    op_id: str = "",
    digest: str = "",
) -> None:
    """Answer a question. The first answer wins; a later one raises AlreadyDecidedError, which names the first.

    `edited_input` replaces the call's input. Scope `always` writes a rule and needs a maintainer.
    Where the project wants two people for a critical call, the first approval leaves the question
    open. `digest`, if given, is `Approval.seen` as the person saw it; another one raises
    TransitionError. `role` is the most that counts; what the person is at this moment counts too.
    """
    edited = check_edit(approval, edited_input) if approve and edited_input is not None else None
    expire_if_over(approval, by=by)
    words = comment.replace("\x00", "").strip()[:MAX_COMMENT]
    with transaction.atomic():
        card = lock_question(approval, by=by)
        if digest and digest != approval.seen:
            raise TransitionError("This question has changed since you saw it. Look again.")
        if not approve:
            end_question(approval, ApprovalStatus.DENIED, card, by=by, op_id=op_id, comment=words)
            return
        role = min(role, check_may_answer(by, card.project_id), key=ROLE_ORDER.__getitem__)
        check_may_approve(approval, card, by=by, role=role, scope=scope)
        check_seen(approval, edited_input, digest=digest)
        if needs_another(approval, card):
            if edited_input is None:  # as somebody has approved it who counts no more
                edited = approval.edited_input
            note_first(approval, card, by=by, edited=edited, comment=words, op_id=op_id)
            return
        if approval.first_by_id is not None:
            check_same(approval, edited_input)
            edited, words = approval.edited_input, words or approval.comment
        if scope == ApprovalScope.ALWAYS:
            approval.edited_input = edited
            _add_rule(approval, by=by)
        end_question(
            approval,
            ApprovalStatus.APPROVED,
            card,
            by=by,
            op_id=op_id,
            comment=words,
            scope=scope,
            edited_input=edited,
        )


def grants_of(run_id: int) -> list[GrantedCall]:
    """Return the calls that people allowed for this run or for ever in its project."""
    for_run = Approval.objects.filter(
        run_id=run_id, status=ApprovalStatus.APPROVED, scope=ApprovalScope.RUN
    )
    granted = [
        GrantedCall(
            approval.tool,
            approval.edited_input or approval.input,
            _bound(approval),
        )
        for approval in for_run
    ]
    project_id = Run.objects.values_list("project_id", flat=True).get(pk=run_id)
    return granted + project_grants(project_id)


def _bound(approval: Approval) -> dict[str, str]:
    """Return what an answer that lasts binds to beside the input; the gate has said it."""
    found: dict[str, str] = approval.facts.get("bound", approval.facts.get("scripts", {}))
    return found


def _add_rule(approval: Approval, *, by: User) -> None:
    """Keep that exactly this call is allowed in this project from now on."""
    add_grant(
        Grant(
            project_id=approval.project_id,
            tool=approval.tool,
            input=approval.edited_input or approval.input,
            scripts=_bound(approval),
            approval=approval,
            granted_by=by,
            granted_at=timezone.now(),
        )
    )
