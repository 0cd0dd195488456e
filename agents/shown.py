"""What a person sees of a call besides its input: the scripts that it runs, and what it changes in a file.

Made when the question is made, bounded, and stored with it: {"scripts": [{"path", "text", "lines",
"cut"}], "diff": {"path", "hunks", "additions", "deletions", "is_new"}}. A part may hold "problem",
a sentence that says why it is not shown.
"""

import difflib
import hashlib
from collections.abc import Iterator
from typing import Any

from agents.harness.policy.context import Files
from agents.harness.policy.files import is_secret
from agents.harness.ports import ToolCall, Verdict
from agents.harness.tools.files import is_binary
from agents.hunks import parse_hunks

MOST_SCRIPTS = 8
SCRIPT_CHARACTERS = 20_000  # of one script
ALL_CHARACTERS = 60_000  # of all scripts
MOST_DIFF_LINES = 6_000  # of a file whose changes are looked for: difflib takes a second for that
DIFF_CHARACTERS = 100_000
CONTEXT_LINES = 3

Json = dict[str, Any]


def shown(call: ToolCall, verdict: Verdict, files: Files) -> Json:
    """Return what to show of `call` beside its input; empty if there is nothing more. Takes CPU time."""
    found: Json = {}
    scripts = list(_scripts(verdict, files))
    if scripts:
        found["scripts"] = scripts
    diff = _diff(call, verdict, files)
    if diff:
        found["diff"] = diff
    return found


def _scripts(verdict: Verdict, files: Files) -> Iterator[Json]:
    left = ALL_CHARACTERS
    known = dict(verdict.facts.get("scripts") or {})
    for path, digest in list(known.items())[:MOST_SCRIPTS]:
        content = files.read(path)
        if content is None or hashlib.sha256(content).hexdigest() != digest:
            yield {"path": path, "problem": "It changed in this moment, so it will be asked again."}
            continue
        if is_binary(content):
            yield {"path": path, "problem": f"A binary file of {len(content):,} bytes."}
            continue
        text = content.decode("utf-8", "replace")
        shown_text = text[: min(SCRIPT_CHARACTERS, left)]
        left -= len(shown_text)
        yield {
            "path": path,
            "text": shown_text,
            "lines": text.count("\n") + (not text.endswith("\n") and text != ""),
            "cut": len(text) - len(shown_text),
        }
    if len(known) > MOST_SCRIPTS:
        yield {"path": "", "problem": f"{len(known) - MOST_SCRIPTS} more are not shown."}


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
