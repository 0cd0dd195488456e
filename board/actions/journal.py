"""The journal of a run: each step is committed before it acts and again when it is done.

An agent waits for these functions four times a turn. So the statements that each turn repeats are
plain SQL: to build them takes the ORM ten times as long as it takes a database to run them.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from board.actions.audit_of_runs import record_call, record_result
from board.actions.clock import now_in_sql
from board.actions.texts import clean
from board.errors import LeaseLostError, TransitionError
from board.models import Approval, Step
from board.states import HELD, ApprovalStatus, StepKind, StepStatus

Json = dict[str, Any]

COUNTED = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_microusd",
)  # fmt: skip


def load_steps(run_id: int) -> list[tuple[Step, Approval | None]]:
    """Return the steps of a run in order, each with its latest question if it has one."""
    questions: dict[int, Approval] = {}
    for approval in (
        Approval.objects.select_related("decided_by", "first_by")
        .filter(run_id=run_id)
        .order_by("id")
    ):
        questions[approval.step_id] = approval
    return [
        (step, questions.get(step.pk))
        for step in Step.objects.filter(run_id=run_id).order_by("seq")
    ]


def begin_step(
    run_id: int,
    fence: int,
    *,
    kind: StepKind,
    request: Json,
    response: Json | None = None,
    status: StepStatus = StepStatus.STARTED,
) -> int:
    """Add a step and return its seq. Raises LeaseLostError if `fence` is stale."""
    request, response = clean(request), clean(response)
    with transaction.atomic():
        seq = take_seq(run_id, fence)
        now = now_in_sql()
        ended = now if status == StepStatus.DONE else "NULL"
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO board_step "  # noqa: S608  expressions of ours
                "(run_id, seq, kind, status, fence, request, response, started_at, ended_at) "
                f"VALUES (%s, %s, %s, %s, %s, %s, %s, {now}, {ended})",
                [run_id, seq, kind, status, fence, json.dumps(request), _json_or_null(response)],
            )
        if kind == StepKind.TOOL:
            record_call(run_id, seq, request, response=response)
    return seq


def take_seq(run_id: int, fence: int) -> int:
    """Return the next step number of the run that `fence` holds, or raise LeaseLostError."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE board_run SET next_seq = next_seq + 1 "
            "WHERE id = %s AND fence = %s AND status IN (%s, %s) RETURNING next_seq - 1",
            [run_id, fence, *HELD],
        )
        row = cursor.fetchone()
    if row is None:
        raise LeaseLostError("Another worker holds this run now.")
    return int(row[0])


def finish_step(
    run_id: int,
    fence: int,
    *,
    seq: int,
    response: Json,
    status: StepStatus = StepStatus.DONE,
    usage: Mapping[str, Any] | None = None,
) -> None:
    """Close a step with its outcome; `usage` (of a model turn) is booked in the same transaction."""
    response = clean(response)
    with transaction.atomic():
        _check_fence(run_id, fence, usage)
        step = _close(run_id, seq, status, response)
        if usage is not None:
            _book(run_id, step.pk, usage)
        elif step.kind == StepKind.TOOL:
            record_result(run_id, seq, step.request, response, status=status)


def resume_step(run_id: int, fence: int, *, seq: int) -> None:
    """Start a pending step whose question was approved: once, and only once."""
    with transaction.atomic():
        _check_fence(run_id, fence)
        step = Step.objects.get(run_id=run_id, seq=seq)
        approved = Approval.objects.filter(
            step=step, status=ApprovalStatus.APPROVED, carried_out_at__isnull=True
        )
        if not approved.update(carried_out_at=Now()):
            raise TransitionError(f"Step {seq} has no approval that is still to be carried out.")
        if not Step.objects.filter(pk=step.pk, status=StepStatus.PENDING).update(
            status=StepStatus.STARTED, fence=fence
        ):
            raise TransitionError(f"Step {seq} was started before.")
        approval = Approval.objects.select_related("decided_by").filter(step=step).latest("pk")
        record_call(run_id, seq, step.request, approval=approval)


def _check_fence(run_id: int, fence: int, usage: Mapping[str, Any] | None = None) -> None:
    """Lock the run's row, count the step and its `usage`, or raise LeaseLostError if `fence` is stale."""
    used = [(usage or {}).get(name) or 0 for name in COUNTED]
    counts = ", ".join(f"{name} = {name} + %s" for name in COUNTED)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE board_run SET steps_done = steps_done + 1, {counts} "  # noqa: S608  names of ours
            "WHERE id = %s AND fence = %s AND status IN (%s, %s)",
            [*used, run_id, fence, *HELD],
        )
        if not cursor.rowcount:
            raise LeaseLostError("Another worker holds this run now.")


def _close(run_id: int, seq: int, status: StepStatus, response: Json) -> Step:
    """Close a step and return what is known of it. Raises TransitionError if it is not open."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE board_step SET status = %s, response = %s, ended_at = {now_in_sql()} "  # noqa: S608
            "WHERE run_id = %s AND seq = %s AND status IN (%s, %s) RETURNING id, kind, request",
            [status, json.dumps(response), run_id, seq, StepStatus.STARTED, StepStatus.PENDING],
        )
        row = cursor.fetchone()
    if row is None:
        is_over = Step.objects.filter(run_id=run_id, seq=seq).exists()
        raise TransitionError(
            f"Step {seq} is already over." if is_over else f"There is no step {seq}."
        )
    return Step(pk=row[0], kind=row[1], request=json.loads(row[2]))


def _book(run_id: int, step_id: int, usage: Mapping[str, Any]) -> None:
    """Add the usage of a model turn; a count that is missing is 0, a missing cost is not known."""
    counts = [usage.get(name, None if name == "cost_microusd" else 0) for name in COUNTED]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO board_usage (run_id, step_id, model, purpose, {', '.join(COUNTED)}, created_at) "  # noqa: S608
            f"VALUES (%s, %s, %s, %s, {', '.join(['%s'] * len(COUNTED))}, {now_in_sql()})",
            [run_id, step_id, usage["model"], usage.get("purpose", "loop"), *counts],
        )


def _json_or_null(value: Json | None) -> str | None:
    return None if value is None else json.dumps(value)
