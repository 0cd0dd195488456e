"""Looks through what a run has changed, by whatever means, as if each file had been written by a file tool.

A call is judged before it runs, but a command may write files that its text does not show: a program of the
project, a generator, an archive. What would have been asked about is found here, before anybody merges it.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.harness.policy.content import will_run
from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide
from agents.harness.policy.profiles import Profile
from agents.harness.ports import Tier, ToolCall, Verdict
from agents.workspaces.diffs import Diff, FileDiff, text_at

MOST_FINDINGS = 50
MOST_LINES = 2_000  # of one file that are tried one by one, to say which it is
MOST_SECONDS = 20.0
EXECUTABLE = "100755"
REGULAR = ("100644", EXECUTABLE)
MANIFESTS = ("tox.ini", "setup.cfg", "pyproject.toml")

_NONE: frozenset[str] = frozenset()


def findings_in(
    found: Diff, context: Context, repository: Path, base: str, head: str
) -> list[dict[str, Any]]:
    """Return what the policy objects to in a diff: [{"path", "rule", "reason", "line"}], line 0 if unknown.

    What was objectionable at `base` already is left out, unless it is the place that is. Blocking.
    """
    # The profile says which tools an agent has, not what a file may hold.
    context = replace(context, profile=Profile.FULL, grants=())
    deadline = time.monotonic() + MOST_SECONDS
    findings: list[dict[str, Any]] = []
    for file in found.files:
        if time.monotonic() > deadline or len(findings) >= MOST_FINDINGS:
            return [*findings, _unfinished(file)]
        findings += _in_file(file, context, repository, base, head)
    return findings


def _in_file(
    file: FileDiff, context: Context, repository: Path, base: str, head: str
) -> Iterator[dict[str, Any]]:
    place = _judged(context, file.path, "")
    rule, reasons = place.rule, _reasons(place)
    text = text_at(repository, head, file.path) if _may_run(file) else ""
    after = _judged(context, file.path, text)
    new = _reasons(after) - reasons
    if new and file.status != "A" and file.old_mode in REGULAR:
        new -= _reasons(_judged(context, file.path, text_at(repository, base, file.old_path)))
    if new:
        rule, reasons = after.rule, reasons | new
    for reason in sorted(reasons):
        line = 0 if reason in _reasons(place) else _line_of(reason, file, context, text)
        # It names the whole path, which nobody outside this machine knows.
        shown = reason.replace(f"{context.workspace}/", "")
        yield {"path": file.path, "rule": rule, "reason": shown, "line": line}


def _may_run(file: FileDiff) -> bool:
    """Whether something may run the file, so that its content matters."""
    if file.status == "D" or file.new_mode not in REGULAR or file.is_binary:
        return False
    name = file.path.rpartition("/")[2]
    return will_run(name) or file.new_mode == EXECUTABLE or name in MANIFESTS or "." not in name


def _judged(context: Context, path: str, content: str) -> Verdict:
    return decide(ToolCall("", "write_file", {"path": path, "content": content}), context)


def _reasons(verdict: Verdict) -> frozenset[str]:
    return _NONE if verdict.tier is Tier.ALLOW else frozenset(verdict.reasons)


def _line_of(reason: str, file: FileDiff, context: Context, text: str) -> int:
    """The new number of the added line that by itself is reason enough, or 0."""
    # The first line says in which language the others are.
    first = text.partition("\n")[0] + "\n" if text.startswith("#!") else ""
    number = tried = 0
    for line in file.hunks.split("\n"):
        if line.startswith("@@"):
            number = int(line.split("+", 1)[1].split(" ", 1)[0].split(",")[0]) - 1
        elif line[:1] in ("+", " "):
            number += 1
        if line.startswith("+"):
            tried += 1
            if tried > MOST_LINES:
                return 0
            if reason in _reasons(_judged(context, file.path, first + line[1:])):
                return number
    return 0


def _unfinished(file: FileDiff) -> dict[str, Any]:
    reason = "From here on the changes were not looked through: there are too many"
    return {"path": file.path, "rule": "C1", "reason": reason, "line": 0}
