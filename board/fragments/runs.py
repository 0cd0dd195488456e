"""The head of a run: who, which attempt, how it stands, what it used, what it plans."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.template.loader import render_to_string

from board.fragments.strips import FAILURES, PUT_ASIDE, plan_done, plan_state
from board.models import Run
from board.states import FailureKind, RunStatus, WaitingFor


def render_run_head(run: Run) -> str:
    """Return the head of the run pane, `id="run-head"`."""
    looks, words = standing(run)
    spoken_to = run.input_tokens + run.cache_read_tokens + run.cache_write_tokens
    return render_to_string(
        "runs/_head.html",
        {
            "run": run,
            "looks": looks,
            "words": words,
            "reason": run.failure,
            "tokens_in": spoken_to,
            "cached": round(100 * run.cache_read_tokens / spoken_to) if spoken_to else None,
            "plan": plan_items(run.plan),
            "plan_done": plan_done(run),
        },
    ).strip()


STANDINGS = {
    RunStatus.STARTING: ("is-running", "Setting up"),
    RunStatus.RUNNING: ("is-running", "Running"),
    RunStatus.WAITING: ("is-paused", "Put aside"),
    RunStatus.READY: ("is-running", "Goes on when a worker is free"),
    RunStatus.SUCCEEDED: ("is-done", "Checks passed"),
    RunStatus.FAILED: ("is-failed", "Failed"),
    RunStatus.CANCELLED: ("is-idle", "Cancelled"),
}


def standing(run: Run) -> tuple[str, str]:
    """Return the state class and the word for how a run stands."""
    looks, words = STANDINGS[RunStatus(run.status)]
    if run.status == RunStatus.RUNNING and run.cancel_requested_at:
        return "is-idle", "Stopping"
    if run.status == RunStatus.WAITING and run.waiting_for == WaitingFor.APPROVAL:
        return "is-waiting", "Pulled the cord"
    if run.status == RunStatus.WAITING and run.waiting_for:
        return looks, PUT_ASIDE[WaitingFor(run.waiting_for)]
    if run.status == RunStatus.FAILED and run.failure_kind:
        return looks, FAILURES.get(FailureKind(run.failure_kind), words)
    return looks, words


def plan_items(todo: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the to-do list with the glyph and the spoken state of each item."""
    items = []
    for item in todo:
        state = plan_state(item)
        if state == "done":
            look = {"looks": "is-done", "icon": "done", "spoken": ", done"}
        elif state == "in_progress":
            look = {"looks": "is-running", "icon": "", "spoken": ", in progress"}
        else:
            look = {"looks": "", "icon": "queued", "spoken": ""}
        items.append({"text": str(item.get("text", "")), **look})
    return items
