"""The cord: a worker asks and lets go of the run; the first person's answer makes it ready again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import F, Max
from django.db.models.functions import Now

from board import events
from board.actions.journal import take_seq
from board.actions.logs import append_log
from board.actions.runs import RELEASED, lock_run, make_ready
from board.actions.texts import clean
from board.actions.transitions import transition
from board.errors import AlreadyDecidedError, NotAllowedError, TransitionError, ValidationError
from board.events import Actor, publish
from board.models import Approval, Card, PolicyVersion, Run, Step, User
from board.states import (
    ApprovalScope,
    ApprovalStatus,
    Role,
    RunStatus,
    StepKind,
    StepStatus,
    WaitingFor,
)

MAX_COMMENT = 4_000  # characters of a reason; the agent reads it


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


@dataclass(frozen=True)
class GrantedCall:
    """A call that a person allowed to run again; `scripts` are the files it runs, with their sha256."""

    tool: str
    input: Mapping[str, Any]
    scripts: Mapping[str, str]


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
        )
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
    return approval


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
) -> None:
    """Answer a question. The first answer wins; a later one raises AlreadyDecidedError, which names the first.

    `edited_input` replaces the call's input. Scope `always` writes a rule and needs a maintainer.
    """
    if approve and scope == ApprovalScope.ALWAYS and role not in {Role.OWNER, Role.MAINTAINER}:
        raise NotAllowedError(
            "Only a maintainer may approve for ever. Approve once, or for this run."
        )
    edited = _check_edit(approval, edited_input) if approve and edited_input is not None else None
    status = ApprovalStatus.APPROVED if approve else ApprovalStatus.DENIED
    actor = Actor.person(by)
    with transaction.atomic():
        card = Card.objects.select_for_update().get(pk=approval.run.card_id)
        try:
            transition(
                approval,
                status,
                scope=scope if approve else "",
                edited_input=edited,
                comment=comment.replace("\x00", "").strip()[:MAX_COMMENT],
                decided_by=by,
                decided_at=Now(),
            )
        except TransitionError as error:
            raise already_decided(approval) from error
        if approve and scope == ApprovalScope.ALWAYS:
            _add_rule(approval, by=by)
        append_log(approval.run_id, [("answer", {"approval": approval.pk})])
        _continue(approval.run_id, by=actor)
        publish(
            card.project_id,
            events.ApprovalDecided(
                card_id=card.pk,
                run_id=approval.run_id,
                approval_id=approval.pk,
                status=status,
                scope=approval.scope,
                comment=approval.comment[:300],
                edited=edited is not None,
            ),
            by=actor,
            op_id=op_id,
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
            approval.facts.get("scripts", {}),
        )
        for approval in for_run
    ]
    project_id = Run.objects.values_list("project_id", flat=True).get(pk=run_id)
    latest = PolicyVersion.objects.filter(project_id=project_id).order_by("-version").first()
    rules = latest.rules if latest else []
    return granted + [
        GrantedCall(rule["tool"], rule["input"], rule.get("scripts", {}))
        for rule in rules
        if rule["tier"] == "allow"
    ]


def already_decided(approval: Approval) -> AlreadyDecidedError:
    """Return the refusal that says who answered first, and how."""
    now = Approval.objects.select_related("decided_by").get(pk=approval.pk)
    who = str(now.decided_by) if now.decided_by else "Pullcord"
    words = {
        ApprovalStatus.APPROVED: f"{who} approved this before you.",
        ApprovalStatus.DENIED: f"{who} denied this before you.",
        ApprovalStatus.EXPIRED: "This question expired.",
        ApprovalStatus.CANCELLED: "This run was cancelled, and the question with it.",
    }
    message = words.get(ApprovalStatus(now.status), "This question has changed. Look again.")
    return AlreadyDecidedError(message, fields={"status": now.status, "decided_by": who})


def _check_edit(approval: Approval, edited: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the edited input if it differs, or raise ValidationError if it is another shape."""
    before: dict[str, Any] = approval.input
    after = dict(edited)
    if after == before:
        return None
    unknown = sorted(set(after) - set(before))
    if unknown:
        raise ValidationError(
            f"This call has no input called {unknown[0]}.", fields={"input": "Keep the fields."}
        )
    for name, value in before.items():
        if name not in after:
            raise ValidationError(f"{name} is missing.", fields={"input": "Keep the fields."})
        if type(after[name]) is not type(value):
            raise ValidationError(f"{name} has another type.", fields={"input": "Keep the types."})
        if isinstance(value, str) and not after[name].strip():
            raise ValidationError(
                f"{name} is empty. Deny instead.", fields={"input": "This is empty."}
            )
    cleaned: dict[str, Any] = clean(after)
    return cleaned


def _add_rule(approval: Approval, *, by: User) -> None:
    """Write a rule that allows exactly this call in this project from now on."""
    latest = (
        PolicyVersion.objects.filter(project_id=approval.project_id).order_by("-version").first()
    )
    rule = {
        "tier": "allow",
        "tool": approval.tool,
        "input": approval.edited_input or approval.input,
        "scripts": approval.facts.get("scripts", {}),
    }
    rules = list(latest.rules) if latest else []
    if rule in rules:
        return
    top = PolicyVersion.objects.filter(project_id=approval.project_id).aggregate(
        top=Max("version")
    )["top"]
    PolicyVersion.objects.create(
        project_id=approval.project_id,
        version=(top or 0) + 1,
        rules=[*rules, rule],
        author=by,
        note=f"Always allowed while answering question {approval.pk}",
    )


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
