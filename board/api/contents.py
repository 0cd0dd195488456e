"""Turns rows into answers. Loads what a list needs in a constant number of queries."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.db.models import Prefetch, QuerySet

from board.addresses import without_sign_in
from board.api.answers import (
    Attempt,
    CardAnswer,
    ColumnAnswer,
    DiffAnswer,
    EventAnswer,
    Failure,
    ProjectAnswer,
    RunAnswer,
    StepAnswer,
    UsageAnswer,
)
from board.models import Card, Dependency, Event, Project, Run, Step
from board.states import CardStatus, RunStatus

MAX_TEXT = 4_000  # characters of one text inside a step
MAX_PARTS = 200  # entries of one list or object inside a step
MAX_DEPTH = 8


def describe_project(project: Project, role: str) -> ProjectAnswer:
    """Return a project as the caller, whose role it names, sees it."""
    columns = [
        ColumnAnswer(id=column.pk, name=column.name, lane=column.lane, limit=column.limit)
        for column in project.columns.all()
    ]
    return ProjectAnswer(
        key=project.key,
        name=project.name,
        repository=without_sign_in(project.repository),
        target_branch=project.target_branch,
        setup_command=project.setup_command,
        max_parallel=project.max_parallel,
        auto_merge=project.auto_merge,
        model=project.model,
        tool_profile=project.tool_profile,
        is_rehearsal=project.is_rehearsal,
        state=project.state,
        message=project.message,
        progress=project.progress,
        seq=project.seq,
        role=role,
        columns=columns,
        created_at=project.created_at,
    )


def with_details(cards: "QuerySet[Card]") -> "QuerySet[Card]":
    """Let the rows of `cards` bring all that `describe_card` shows."""
    needs = Dependency.objects.select_related("needs").order_by("needs__number")
    attempts = Run.objects.order_by("attempt").only(
        "card_id", "attempt", "status", "waiting_for", "failure_kind", "failure", "created_at",
        "ended_at",
    )  # fmt: skip
    return cards.select_related("project", "column").prefetch_related(
        Prefetch("dependencies", needs), Prefetch("runs", attempts)
    )


def describe_again(card: Card) -> CardAnswer:
    """Return a card as it is now, with all its details."""
    return describe_card(with_details(Card.objects.filter(pk=card.pk)).get())


def describe_card(card: Card) -> CardAnswer:
    """Return a card that was loaded by `with_details`."""
    key = card.project.key
    needs = [dependency.needs for dependency in card.dependencies.all()]
    failure = None
    if card.failure or card.failure_kind:
        failure = Failure(kind=card.failure_kind, message=card.failure)
    return CardAnswer(
        ref=card.ref,
        number=card.number,
        title=card.title,
        goal=card.goal,
        files=card.files,
        constraints=card.constraints,
        checks=card.checks,
        no_check=card.no_check,
        priority=card.priority,
        tool_profile=card.tool_profile,
        depends_on=[f"{key}-{need.number}" for need in needs],
        status=card.status,
        column=card.column.name,
        lane=card.column.lane,
        unmet=card.unmet,
        blocked_by=[f"{key}-{need.number}" for need in needs if need.status != CardStatus.DONE],
        failure=failure,
        attempts=card.attempts,
        delivery=card.delivery,
        merged_sha=card.merged_sha,
        created_at=card.created_at,
        updated_at=card.updated_at,
        archived=card.archived_at is not None,
        runs=[describe_attempt(run) for run in card.runs.all()],
    )


def describe_attempt(run: Run) -> Attempt:
    """Return a run in short."""
    return Attempt(
        id=run.pk,
        attempt=run.attempt,
        status=run.status,
        waiting_for=_waiting_for(run),
        failure_kind=run.failure_kind,
        failure=run.failure,
        created_at=run.created_at,
        ended_at=run.ended_at,
    )


def _waiting_for(run: Run) -> str:
    """Return what the run waits for now; its row keeps what it waited for last."""
    return run.waiting_for if run.status == RunStatus.WAITING else ""


def describe_run(run: Run, steps: Iterable[Step]) -> RunAnswer:
    """Return a run in full. Needs its card and project to be fetched."""
    return RunAnswer(
        id=run.pk,
        card=run.card.ref,
        attempt=run.attempt,
        status=run.status,
        waiting_for=_waiting_for(run),
        failure_kind=run.failure_kind,
        failure=run.failure,
        summary=run.summary,
        remaining=run.remaining,
        evidence=run.evidence,
        plan=run.plan,
        activity=run.activity,
        branch=run.branch,
        base_sha=run.base_sha,
        head_sha=run.head_sha,
        agent=run.agent,
        model=run.model,
        steps=[describe_step(step) for step in steps],
        usage=UsageAnswer(
            input_tokens=run.input_tokens,
            output_tokens=run.output_tokens,
            cache_read_tokens=run.cache_read_tokens,
            cache_write_tokens=run.cache_write_tokens,
        ),
        cost_microusd=run.cost_microusd,
        cost=dollars(run.cost_microusd),
        questions=run.questions,
        active_seconds=run.active_seconds,
        created_at=run.created_at,
        ended_at=run.ended_at,
    )


def dollars(microusd: int) -> str:
    """Return an amount as a decimal number of dollars, exactly."""
    return f"{Decimal(microusd).scaleb(-6):.6f}"


def describe_step(step: Step) -> StepAnswer:
    """Return a step; only a tool call's request is shown, and long texts are cut."""
    return StepAnswer(
        seq=step.seq,
        kind=step.kind,
        status=step.status,
        tool=step.request.get("tool"),
        input=shortened(step.request.get("input")),
        response=shortened(step.response),
        started_at=step.started_at,
        ended_at=step.ended_at,
    )


def shortened(value: Any, depth: int = 0) -> Any:
    """Return JSON whose texts and lists are cut to a size that a list of steps can carry."""
    match value:
        case str() if len(value) > MAX_TEXT:
            return f"{value[:MAX_TEXT]}… ({len(value) - MAX_TEXT:,} more characters)"
        case dict() | list() if depth >= MAX_DEPTH:
            return "…"
        case dict():
            pairs = list(value.items())[:MAX_PARTS]
            return {name: shortened(part, depth + 1) for name, part in pairs}
        case list():
            return [shortened(part, depth + 1) for part in value[:MAX_PARTS]]
        case _:
            return value


def describe_diff(run: Run) -> DiffAnswer:
    """Return what a run has changed, as its worker stored it."""
    changes: dict[str, Any] = run.changes
    files = changes.get("diff") or []
    return DiffAnswer(
        files=changes.get("files") or 0,
        additions=changes.get("additions") or 0,
        deletions=changes.get("deletions") or 0,
        diff=files,
        patch="".join(patch_of(file) for file in files),
        findings=changes.get("findings") or [],
    )


def patch_of(file: dict[str, Any]) -> str:
    """Return one file's part of a unified diff, in git's form."""
    new, status = file["path"], file["status"]
    old = file.get("old_path") or new
    lines = [f"diff --git a/{old} b/{new}"]
    if status == "A":
        lines.append(f"new file mode {file.get('new_mode', '100644')}")
    elif status == "D":
        lines.append(f"deleted file mode {file.get('old_mode', '100644')}")
    elif file.get("old_mode") != file.get("new_mode"):
        lines += [f"old mode {file['old_mode']}", f"new mode {file['new_mode']}"]
    if old != new:
        lines += [f"rename from {old}", f"rename to {new}"]
    source = "/dev/null" if status == "A" else f"a/{old}"
    target = "/dev/null" if status == "D" else f"b/{new}"
    if file.get("binary"):
        lines.append(f"Binary files {source} and {target} differ")
    head = "\n".join(lines) + "\n"
    hunks = file.get("hunks") or []
    if not hunks:
        return head
    return f"{head}--- {source}\n+++ {target}\n" + "".join(_hunk_text(hunk) for hunk in hunks)


def _hunk_text(hunk: dict[str, Any]) -> str:
    """Return one hunk as text; its lines are [kind, old number, new number, text]."""
    lines = hunk["lines"]
    old = sum(line[0] in " -" for line in lines)
    new = sum(line[0] in " +" for line in lines)
    head = f"@@ -{hunk['old_start']},{old} +{hunk['new_start']},{new} @@ {hunk['header']}".rstrip()
    return "\n".join([head, *(f"{_mark(line[0])}{line[3]}" for line in lines)]) + "\n"


def _mark(kind: str) -> str:
    return "\\ " if kind == "\\" else kind


def describe_event(event: Event, key: str) -> EventAnswer:
    """Return an event of the project called `key`."""
    return EventAnswer(
        seq=event.seq,
        kind=event.kind,
        card=f"{key}-{event.card.number}" if event.card else None,
        run=event.run_id,
        actor=event.actor,
        payload=event.payload,
        at=event.created_at,
    )
