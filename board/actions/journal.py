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
from board.actions.texts import clean
from board.errors import LeaseLostError, TransitionError
from board.models import Approval, Step, Usage
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
    with transaction.atomic():
        seq = take_seq(run_id, fence)
        ended = {"ended_at": Now()} if status == StepStatus.DONE else {}
        Step.objects.create(
            run_id=run_id,
            seq=seq,
            kind=kind,
            status=status,
            fence=fence,
            request=clean(request),
            response=clean(response),
            **ended,
        )
        if kind == StepKind.TOOL:
            record_call(run_id, seq, clean(request), response=clean(response))
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
    with transaction.atomic():
        _check_fence(run_id, fence, usage)
        step = _step(run_id, seq)
        closed = Step.objects.filter(
            pk=step.pk, status__in=[StepStatus.STARTED, StepStatus.PENDING]
        ).update(status=status, response=clean(response), ended_at=Now())
        if not closed:
            raise TransitionError(f"Step {seq} is already over.")
        if usage is not None:
            Usage.objects.create(run_id=run_id, step_id=step.pk, **usage)
        elif step.kind == StepKind.TOOL:
            record_result(run_id, seq, step.request, clean(response), status=status)


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


def _step(run_id: int, seq: int) -> Step:
    """Return what is known of a step before it is closed. Raises TransitionError if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, kind, request FROM board_step WHERE run_id = %s AND seq = %s", [run_id, seq]
        )
        row = cursor.fetchone()
    if row is None:
        raise TransitionError(f"There is no step {seq}.")
    return Step(pk=row[0], kind=row[1], request=json.loads(row[2]))
