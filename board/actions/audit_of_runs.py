"""What agents do, in the audit: every tool call before it runs or as it is refused, and its outcome."""

import hashlib
from collections.abc import Mapping
from typing import Any

from django.db import connection

from board.actions import audit
from board.actions.audit import Act, Named, canonical
from board.events import Actor
from board.models import Approval, Card, Run
from board.states import StepStatus

Json = Mapping[str, Any]

_WHERE_IT_RUNS = (
    "SELECT run.agent, run.project_id, project.key, card.number FROM board_run run "
    "JOIN board_project project ON project.id = run.project_id "
    "JOIN board_card card ON card.id = run.card_id WHERE run.id = %s"
)


def record_call(
    run_id: int,
    seq: int,
    request: Json,
    *,
    response: Json | None = None,
    approval: Approval | None = None,
) -> None:
    """Record that a call begins; with `response`, that it was refused and does not run."""
    verdict, rule = (request.get("gate") or {}).get("verdict") or ("", "")
    if approval is not None:
        verdict, rule = "ask", approval.rule
    data: dict[str, Any] = {
        "tool": request["tool"],
        "call": request["id"],
        "input": _input_that_runs(request, approval),
    }
    if approval is not None:
        data |= {
            "approval": approval.pk,
            "approved_by": str(approval.decided_by or "Pullcord"),
            "scope": approval.scope,
        }
    kind = "tool_called"
    if response is not None:
        kind = "tool_refused"
        data["result"] = response["text"]
    audit.record(_act(run_id, seq, kind, verdict=verdict, rule=rule, data=data))


def _input_that_runs(request: Json, approval: Approval | None) -> Any:
    edited = approval.edited_input if approval is not None else None
    return edited or request["input"]


def record_result(
    run_id: int, seq: int, request: Json, response: Json, *, status: StepStatus
) -> None:
    """Record how a call ended: the size and the hash of its result, not the result."""
    text = str(response.get("text", "")).encode()
    details = response.get("details") or {}
    data = {
        "tool": request["tool"],
        "call": request["id"],
        "outcome": status.value,
        "is_error": bool(response.get("is_error")),
        "result_bytes": len(text),
        "result_sha256": hashlib.sha256(text).hexdigest(),
        **{name: details[name] for name in ("exit_code", "ended_by", "seconds") if name in details},
    }
    audit.record(_act(run_id, seq, "tool_ended", data=data))


def record_question(approval: Approval, run: Run) -> None:
    """Record that an agent asks about a call, with the hash of what exactly an answer covers."""
    data = {
        "approval": approval.pk,
        "tool": approval.tool,
        "input": approval.input,
        "digest": approval.digest,
        "sandbox": approval.sandbox,
        "reasons": canonical(approval.reasons),
    }
    audit.record(
        _act(
            run.pk,
            approval.step.seq,
            "approval_requested",
            verdict="ask",
            rule=approval.rule,
            data=data,
        )
    )


def record_answer(approval: Approval, card: Card, *, by: Actor, status: str) -> None:
    """Record how a question ended, or that the first of two people approved it."""
    data = {
        "approval": approval.pk,
        "tool": approval.tool,
        "answer": status,
        "scope": approval.scope,
        "comment": approval.comment,
        "digest": approval.digest,
        **({"edited_input": approval.edited_input} if approval.edited_input else {}),
    }
    audit.record(
        Act(
            "approval_answered",
            by,
            project=card.project,
            run_id=approval.run_id,
            card=card.ref,
            step=approval.step.seq,
            rule=approval.rule,
            data=data,
        )
    )


def _act(run_id: int, seq: int, kind: str, **values: Any) -> Act:
    with connection.cursor() as cursor:  # in plain SQL, as in `board.actions.journal`
        cursor.execute(_WHERE_IT_RUNS, [run_id])
        agent, project_id, key, number = cursor.fetchone()
    return Act(
        kind,
        Actor(agent or "agent"),
        project=Named(project_id, key),
        run_id=run_id,
        card=f"{key}-{number}",
        step=seq,
        **values,
    )
