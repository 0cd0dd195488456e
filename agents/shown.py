"""What a person sees of a call besides its input: scripts that it runs, files that it names, what it changes in one.

Made when the question is made, bounded, and stored with it: {"scripts": [{"path", "text", "lines",
"cut"}], "files": [the same], "diff": {"path", "hunks", "additions", "deletions", "is_new"}}. A part
may hold "problem", a sentence that says why it is not shown.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from agents.harness.policy.context import MOST_BYTES_READ, Files
from agents.harness.policy.files import is_secret
from agents.harness.ports import ToolCall, Verdict
from agents.harness.tools.files import is_binary
from agents.hunks import parse_hunks

MOST_SCRIPTS = 8  # and as many files
SCRIPT_CHARACTERS = 20_000  # of one script or file
ALL_CHARACTERS = 60_000  # of all scripts, and of all files
MOST_DIFF_LINES = 6_000  # of a file whose changes are looked for: difflib takes a second for that
DIFF_CHARACTERS = 100_000
CONTEXT_LINES = 3

Json = dict[str, Any]


def shown(call: ToolCall, verdict: Verdict, files: Files) -> Json:
    """Return what to show of `call` beside its input; empty if there is nothing more. Takes CPU time."""
    found: Json = {}
    for kind in ("scripts", "files"):
        parts = list(_contents(dict(verdict.facts.get(kind) or {}), files))
        if parts:
            found[kind] = parts
    diff = _diff(call, verdict, files)
    if diff:
        found["diff"] = diff
    return found


def _contents(known: Mapping[str, str], files: Files) -> Iterator[Json]:
    left = ALL_CHARACTERS
    for path, mark in list(known.items())[:MOST_SCRIPTS]:
        part = _content(path, mark, files, most=min(SCRIPT_CHARACTERS, left))
        left -= len(part.get("text", ""))
        yield part
    if len(known) > MOST_SCRIPTS:
        yield {"path": "", "problem": f"{len(known) - MOST_SCRIPTS} more are not shown."}


def _content(path: str, mark: str, files: Files, *, most: int) -> Json:
    """Return the text of a file that still is what the gate has judged, or why it is not shown."""
    if is_secret(path):
        return {"path": path, "problem": "It may hold secrets, so its content is not shown."}
    content = files.read(path)
    if content is None or files.mark(path) != mark:
        return {"path": path, "problem": "It changed in this moment, so it will be asked again."}
    if is_binary(content):
        return {"path": path, "problem": f"A binary file of {_bytes(content)}."}
    text = content.decode("utf-8", "replace")
    part = {
        "path": path,
        "text": text[:most],
        "lines": text.count("\n") + (not text.endswith("\n") and text != ""),
        "cut": max(len(text) - most, 0),
    }
    if len(content) >= MOST_BYTES_READ:
        part["is_longer"] = True  # than what was read of it
    return part


def _bytes(content: bytes) -> str:
    more = " or more" if len(content) >= MOST_BYTES_READ else ""
    return f"{len(content):,} bytes{more}"


def _diff(call: ToolCall, verdict: Verdict, files: Files) -> Json | None:
    """Return what write_file or edit_file would change in the file as it is now."""
    if call.tool not in {"write_file", "edit_file"}:
        return None
    path = str(call.input.get("path", ""))
    real = str(dict(verdict.facts.get("paths") or {}).get(path, ""))
    if not real:
        return None
    if is_secret(real):
        return {"path": path, "problem": "It may hold secrets, so what is in it now is not shown."}
    content = files.read(real)
    if content is not None and is_binary(content):
        return {"path": path, "problem": "The file that is there now is binary."}
    before = (content or b"").decode("utf-8", "replace")
    after = _after(call, before)
    if after is None:
        return {"path": path, "problem": "The text to be replaced is not in the file now."}
    return {"path": path, "is_new": content is None, **_hunks(before, after)}


def _after(call: ToolCall, before: str) -> str | None:
    """Return the file's text after the call; None if the call would not find its place."""
    if call.tool == "write_file":
        return str(call.input.get("content", ""))
    old, new = str(call.input.get("old", "")), str(call.input.get("new", ""))
    if old not in before and "\r\n" in before:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    return before.replace(old, new) if old and old in before else None


def _hunks(before: str, after: str) -> Json:
    # Not splitlines: what looks like a line end but is none stays in its line, and is named there.
    old, new = before.split("\n"), after.split("\n")
    if len(old) + len(new) > MOST_DIFF_LINES:
        sizes = f"{len(old):,} lines now, {len(new):,} afterwards"
        return {"problem": f"Too long to be compared: {sizes}."}
    lines = list(difflib.unified_diff(old, new, n=CONTEXT_LINES, lineterm=""))[2:]
    text = "\n".join(lines)
    if len(text) > DIFF_CHARACTERS:
        return {"problem": f"Too long to be shown: {len(lines):,} changed and neighbouring lines."}
    return {
        "hunks": parse_hunks(text),
        "additions": sum(line.startswith("+") for line in lines),
        "deletions": sum(line.startswith("-") for line in lines),
    }
