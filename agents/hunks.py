"""A diff as the pages and the API show it: files, hunks, numbered lines."""

import re
from collections.abc import Callable
from typing import Any

from agents.workspaces.diffs import Diff, FileDiff

MAX_DIFF_CHARACTERS = 400_000  # of all hunks that a page shows; the branch holds the rest
MAX_LINE_CHARACTERS = 2_000

_HEADER = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")

Line = list[Any]  # [" " | "+" | "-", old number or None, new number or None, text]


def describe(found: Diff, *, redact: Callable[[str], str] = str) -> dict[str, Any]:
    """Return a diff as JSON, without secrets, cut where a page could not show it."""
    left = MAX_DIFF_CHARACTERS
    files = []
    for file in found.files:
        fits = len(file.hunks) <= left
        left -= len(file.hunks) if fits else 0
        files.append(_describe_file(file, is_shown=fits, redact=redact))
    return {
        "files": len(found.files) + found.omitted_files,
        "additions": found.additions,
        "deletions": found.deletions,
        "omitted_files": found.omitted_files,
        "diff": files,
    }


def _describe_file(
    file: FileDiff, *, is_shown: bool, redact: Callable[[str], str]
) -> dict[str, Any]:
    return {
        "path": redact(file.path),
        "old_path": redact(file.old_path),
        "status": file.status,
        "old_mode": file.old_mode,
        "new_mode": file.new_mode,
        "binary": file.is_binary,
        "additions": file.additions,
        "deletions": file.deletions,
        "truncated": file.is_cut or not is_shown,
        "hunks": parse_hunks(_redacted(file.hunks, redact)) if is_shown else [],
    }


def _redacted(hunks: str, redact: Callable[[str], str]) -> str:
    """Take secrets out of the lines' text, also those of several lines; the signs before them stay."""
    lines = hunks.split("\n")
    texts = redact("\n".join(line[1:] for line in lines)).split("\n")
    return "\n".join(line[:1] + text for line, text in zip(lines, texts, strict=True))


def parse_hunks(text: str) -> list[dict[str, Any]]:
    """Return the hunks of one file: [{"header": str, "lines": [Line]}]."""
    hunks: list[dict[str, Any]] = []
    old = new = 0
    for line in text.split("\n"):
        header = _HEADER.match(line)
        if header:
            old, new = int(header[1]), int(header[2])
            hunks.append({"header": header[3], "old_start": old, "new_start": new, "lines": []})
            continue
        if not hunks or not line or line[0] not in " +-\\":
            continue
        kind, words = line[0], _shown(line[1:])
        if kind == "\\":  # "No newline at end of file" speaks of the line before
            hunks[-1]["lines"].append(["\\", None, None, words.strip()])
            continue
        is_old, is_new = kind in " -", kind in " +"
        hunks[-1]["lines"].append([kind, old if is_old else None, new if is_new else None, words])
        old += is_old
        new += is_new
    return hunks


def _shown(words: str) -> str:
    """Return a line as a page can show it; what stands too far to the right is said to be there."""
    more = len(words) - MAX_LINE_CHARACTERS
    if more <= 0:
        return words
    return f"{words[:MAX_LINE_CHARACTERS]} [… {more:,} more characters of this line are not shown]"
