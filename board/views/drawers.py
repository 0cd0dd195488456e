"""What each tab of the drawer shows."""

from typing import Any

from board.actions.claims import shared_files
from board.actions.merges import has_verified_work
from board.actions.policies import narrower
from board.fragments import log_html, render_run_head
from board.fragments.diffs import file_rows
from board.fragments.questions import call_text
from board.fragments.runs import standing
from board.models import Approval, Card, Column, LogItem, Run
from board.reports import refused_of
from board.states import ApprovalStatus, CardStatus
from board.templatetags.markup import PROFILES
from board.views.history import sentences

LOG = 200  # items of a log that come with the page
DIFF_LINES = 4_000  # lines of a file's diff that a page shows
STATUSES = {"A": "new", "D": "deleted", "R": "renamed", "M": "", "modified": ""}  # git's letters
PLAIN, EXECUTABLE = "100644", "100755"  # git's modes
MODES = {EXECUTABLE: "executable", "120000": "a link", "160000": "a repository within"}
EVENTS = 200  # of a history

WORDS: dict[CardStatus, tuple[str, str, str]] = {
    CardStatus.BACKLOG: ("is-idle", "draft", "Backlog"),
    CardStatus.QUEUED: ("is-idle", "queued", "Queued"),
    CardStatus.RUNNING: ("is-running", "running", "Running"),
    CardStatus.REVIEW: ("is-done", "review", "Ready for review"),
    CardStatus.MERGING: ("is-running", "merge", "Merging"),
    CardStatus.DONE: ("is-done", "done", "Done"),
    CardStatus.FAILED: ("is-failed", "failed", "Failed"),
    CardStatus.CANCELLED: ("is-idle", "x", "Cancelled"),
}
RUN_ICONS = {"is-waiting": "cord", "is-paused": "paused", "is-idle": "stop"}


def head_of(card: Card, tab: str) -> dict[str, Any]:
    """Return what the drawer's head shows on every tab."""
    looks, glyph, words = WORDS[CardStatus(card.status)]
    if card.status == CardStatus.RUNNING and card.run and card.run.is_live:
        looks, words = standing(card.run)
        glyph = RUN_ICONS.get(looks, "running")
    if card.status == CardStatus.REVIEW and card.failure:
        looks, glyph, words = "is-failed", "conflict", "Not merged"
    changes = (card.run.changes or {}) if card.run else {}
    return {
        "drawer": "card",
        "card": card,
        "open": tab,
        "looks": looks,
        "glyph": glyph,
        "words": words,
        "labels": list(card.labels.all()),
        "changed_files": changes.get("files"),
        "can_merge": card.status == CardStatus.REVIEW and has_verified_work(card),
        "columns": list(Column.objects.filter(project_id=card.project_id)),
    }


def task_tab(card: Card, attempt: int | None) -> dict[str, Any]:
    """Return the task: goal, files, constraints, checks, needs, discussion."""
    needs = [
        link.needs for link in card.dependencies.select_related("needs").order_by("needs__number")
    ]
    dependents = [
        link.card for link in card.dependents.select_related("card").order_by("card__number")
    ]
    for other in (*needs, *dependents):
        other.project = card.project
        other.looks = WORDS[CardStatus(other.status)]  # type: ignore[attr-defined]
    evidence = {row.get("command"): row for row in (card.run.evidence if card.run else ())}
    waits = card.status == CardStatus.QUEUED and not card.unmet
    return {
        "needs": needs,
        "dependents": dependents,
        "checks": [
            {"command": command, "result": evidence.get(command)} for command in card.checks
        ],
        "comments": list(card.comments.select_related("author")),
        "tools": PROFILES[narrower(card.project.tool_profile, card.tool_profile)],
        "shared": shared_files(card) if waits else [],
    }


def run_tab(card: Card, attempt: int | None) -> dict[str, Any]:
    """Return a run with the end of its log; the latest unless `attempt` says which."""
    runs = list(card.runs.defer("changes", "evidence").order_by("attempt"))
    chosen = [run for run in runs if run.attempt == attempt] or runs[-1:]
    if not chosen:
        return {"run": None}
    run = chosen[0]
    run.card = card
    items = log_end(run)
    return {
        "run": run,
        "runs": runs,
        "run_head": render_run_head(run),
        "log": log_html(run, items),
        "log_first": items[0].seq if items else 1,
        "log_seq": items[-1].seq if items else 0,
        "can_steer": run.is_live and run.pk == card.run_id,
    }


def log_end(run: Run) -> list[LogItem]:
    """Return the last items of a log, beginning where a turn does."""
    items = list(reversed(LogItem.objects.filter(run=run).order_by("-seq")[: 2 * LOG]))
    if len(items) < 2 * LOG:
        return items
    starts = [place for place, item in enumerate(items[: LOG + 1]) if item.kind == "turn"]
    return items[starts[-1] if starts else LOG :]


def changes_tab(card: Card, attempt: int | None) -> dict[str, Any]:
    """Return the diff of a run, file by file."""
    run = card.run if attempt is None else card.runs.filter(attempt=attempt).first()
    if run is None:
        return {"run": None, "files": []}
    changes = run.changes or {}
    files = [_file(file, place) for place, file in enumerate(changes.get("diff") or [])]
    return {
        "run": run,
        "changes": changes,
        "files": files,
        "evidence": run.evidence or [],
        "findings": _findings(changes, files),
        "refused": [_refused(approval) for approval in refused_of(run)],
        "passed": sum(row.get("exit_code") == 0 for row in run.evidence or []),
    }


def _findings(changes: dict[str, Any], files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the policy objects to in the diff, each with the place of its file on the page."""
    places = {file["path"]: file["id"] for file in files}
    found = changes.get("findings") or []
    return [{**each, "id": places.get(each["path"], "")} for each in found]


def _file(file: dict[str, Any], place: int) -> dict[str, Any]:
    """Return a changed file as it is shown, with all that is not to be overlooked."""
    hunks = file.get("hunks") or []
    shown = _cut(hunks)
    is_cut = _lines(shown) < _lines(hunks)
    return {
        **file,
        "id": f"file-{place}",
        "rows": file_rows(shown),
        "truncated": file.get("truncated") or is_cut,
        "marks": _marks(file),
    }


def _lines(hunks: list[dict[str, Any]]) -> int:
    return sum(len(hunk.get("lines") or []) for hunk in hunks)


def _marks(file: dict[str, Any]) -> list[str]:
    """Say what became of a file beside its lines: git's letter, and what its mode makes of it."""
    old, new = str(file.get("old_mode", "")), str(file.get("new_mode", ""))
    marks = [STATUSES.get(str(file.get("status", "")), str(file.get("status", "")))]
    if new != old:
        marks.append(MODES.get(new, ""))
        if old == EXECUTABLE and new == PLAIN:
            marks.append("no longer executable")
    return [mark for mark in marks if mark]


def _refused(approval: Approval) -> dict[str, Any]:
    """Return a call that was not approved, in words."""
    is_expired = approval.status == ApprovalStatus.EXPIRED
    who = str(approval.decided_by or "Pullcord")
    end = "Nobody answered in time." if is_expired else f"{who} denied it."
    if approval.comment:
        end += f" “{approval.comment[:200]}”"
    return {
        "pk": approval.pk,
        "what": call_text(approval)[:300],
        "end": end,
        "is_expired": is_expired,
    }


def _cut(hunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what goes beyond DIFF_LINES."""
    room = DIFF_LINES
    shown = []
    for hunk in hunks:
        lines = hunk.get("lines") or []
        shown.append({**hunk, "lines": lines[:room]})
        room -= len(lines)
        if room <= 0:
            break
    return shown


def history_tab(card: Card, attempt: int | None) -> dict[str, Any]:
    """Return what happened to the card, latest first, as sentences."""
    told = card.events.exclude(kind="ApprovalLookedAt")  # it only shows others who looks
    events = told.select_related("user").order_by("-seq")[:EVENTS]
    return {"history": sentences(events)}
