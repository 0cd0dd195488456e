"""A tool call in the log of a run: what it is called, what it was given, and what a person made of it."""

import json
from collections.abc import Mapping
from typing import Any

from board.ansi import visible
from board.fragments.diffs import edit_rows
from board.fragments.pieces import Op, Place, place
from board.fragments.steps import step
from board.models import Approval, LogItem
from board.states import ApprovalStatus
from board.templatetags.markup import icon, since

ICONS = {
    "bash": "terminal",
    "read_file": "file",
    "write_file": "pen",
    "edit_file": "pen",
    "list_files": "folder",
    "glob": "search",
    "grep": "search",
    "todo_write": "plan",
    "report_result": "check",
}
LONG_COMMAND = 60  # characters that fit the line of a call


def key_of(data: Mapping[str, Any]) -> str:
    """Return the key of a call; ids come from a model, so only harmless characters stay."""
    call = str(data.get("call", ""))
    return (
        "c"
        + "".join(sign for sign in call if sign.isascii() and (sign.isalnum() or sign in "_-"))[:80]
    )


def call_step(item: LogItem) -> Op:
    """Begin a call: its title, and room for its output, its result and its time."""
    tool, key = str(item.data.get("tool", "")), key_of(item.data)
    given = item.data.get("input") or {}
    command = given.get("command") if tool == "bash" else None
    is_open = " open" if tool in {"bash", "edit_file"} else ""
    return step(
        f"{key}-step",
        place(f"{key}-bead", '<span class="pulse" aria-hidden="true"></span>'),
        f'<details class="tools-fold"{is_open}><summary>{icon("right", "s")}'
        f"{icon(ICONS.get(tool, 'agent'), 's')}",
        _words(key, command, str(item.data.get("title") or tool)),
        place(f"{key}-edited"),
        place(f"{key}-time", since(item.at, "clock"), classes="tool__time"),
        "</summary>",
        place(f"{key}-edit", _edit(tool, given), tag="div"),
        place(f"{key}-command", _long(command), tag="div"),
        '<div class="term"><code class="term__body" tabindex="0" role="group" aria-label="Output">',
        place(f"{key}-out"),
        place(f"{key}-tail"),
        place(f"{key}-text"),
        "</code></div></details>",
    )


def is_edited(question: Approval) -> bool:
    """Whether a person has changed the call and approved that."""
    return bool(question.edited_input) and question.status == ApprovalStatus.APPROVED


def edited(question: Approval) -> list[Op]:
    """Show what ran in place of what the agent had asked for."""
    key = key_of({"call": question.step.request.get("id")})
    given, tool = question.edited_input or {}, question.tool
    command = given.get("command") if tool == "bash" else None
    if command is None:
        target = given.get("path") or given.get("pattern") or ""
        words, whole = _words(key, None, f"{tool} {target}".strip()), _whole(tool, given)
    else:
        words, whole = _words(key, command, ""), _long(command)
    parts = {
        "words": words,
        "edited": place(f"{key}-edited", "edited", classes="badge"),
        "edit": place(f"{key}-edit", _edit(tool, given), tag="div"),
        "command": place(f"{key}-command", whole, tag="div"),
    }
    return [Op("set", f"{key}-{name}", f"{key}-{name}", [part]) for name, part in parts.items()]


def _words(key: str, command: object, title: str) -> Place:
    if command:
        return place(f"{key}-words", visible(str(command)), tag="code", classes="clip")
    return place(f"{key}-words", visible(title), classes="clip")


def _edit(tool: str, given: Mapping[str, Any]) -> str:
    if tool != "edit_file":
        return ""
    return edit_rows(
        str(given.get("path", "")), str(given.get("old", "")), str(given.get("new", ""))
    )


def _whole(tool: str, given: Mapping[str, Any]) -> str:
    """Return all that a tool without a view of its own was given."""
    if tool == "edit_file":
        return ""
    text = json.dumps(given, ensure_ascii=False, indent=2)
    return f'<code class="command">{visible(text)}</code>'


def _long(command: object) -> str:
    """Return a command of several lines in full; one line is in the summary already."""
    if not isinstance(command, str) or ("\n" not in command and len(command) < LONG_COMMAND):
        return ""
    return f'<code class="command">{visible(command)}</code>'
