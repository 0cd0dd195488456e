"""The file tools: read, write, edit, list."""

import hashlib
import os
import stat
from collections.abc import Mapping
from itertools import islice
from typing import Any

from agents.harness.errors import ToolError
from agents.harness.ports import ToolOutput
from agents.harness.tools.output import output_name
from agents.harness.tools.paths import (
    folder_inside,
    parts_inside,
    read_inside,
    write_inside,
)
from agents.harness.tools.registry import OUTPUT_CHARACTERS, Tool, ToolContext, object_schema

PAGE_LINES = 2000
LINE_CHARACTERS = 2000  # a longer line is a minified file, of which the rest tells nothing
MOST_FILE_BYTES = 32 * 1024 * 1024
MOST_ENTRIES = 1000  # of a folder
_BINARY_PROBE_BYTES = 8192  # git decides by a NUL in the first 8,000 bytes, too


def read_file(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """A page of a file, with line numbers."""
    path = str(arguments["path"])
    name = output_name(path)
    root = context.workspace if name is None else context.outputs
    parts = parts_inside(root, path) if name is None else (name,)
    data = read_inside(root, parts, most_bytes=MOST_FILE_BYTES)
    details = {} if name else _seen(context, parts, data)
    if is_binary(data):
        return ToolOutput(f"{path} is a binary file, {len(data)} bytes.", details=details)
    first = int(arguments.get("offset", 1))
    text = _page(data, first, int(arguments.get("limit", PAGE_LINES)))
    return ToolOutput(text, details=details)


def is_binary(data: bytes) -> bool:
    """Whether the content is not text."""
    return b"\0" in data[:_BINARY_PROBE_BYTES]


def _page(data: bytes, first: int, limit: int) -> str:
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return "[the file is empty]"
    if first > len(lines):
        raise ToolError(f"The file has {len(lines)} lines; there is no line {first}.")
    shown: list[str] = []
    room = OUTPUT_CHARACTERS
    for number, line in islice(enumerate(lines, 1), first - 1, first - 1 + limit):
        if len(line) > LINE_CHARACTERS:
            left_out = len(line) - LINE_CHARACTERS
            line = f"{line[:LINE_CHARACTERS]} [{left_out} more characters]"  # noqa: PLW2901
        numbered = f"{number}\t{line.removesuffix(chr(13))}"
        room -= len(numbered) + 1
        if room < 0 and shown:
            break
        shown.append(numbered)
    last = first - 1 + len(shown)
    if last < len(lines):
        rest = len(lines) - last
        shown.append(f"[{rest} more lines; go on with offset {last + 1}]")
    return "\n".join(shown)


def write_file(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Create a file or replace all of it."""
    parts = _writable(context, str(arguments["path"]))
    shown = "/".join(parts)
    content = str(arguments["content"]).encode("utf-8", "surrogateescape")
    old = _content(context, parts)
    if old is not None and old != content:
        if shown not in context.seen:
            raise ToolError(f"{shown} exists. Read it before you replace it, or use edit_file.")
        _check_unchanged(context, shown, old)
    write_inside(context.workspace, parts, content)
    lines = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    verb = "Created" if old is None else "Replaced"
    details = _seen(context, parts, content)
    return ToolOutput(f"{verb} {shown}: {lines} lines, {len(content)} bytes.", details=details)


def edit_file(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Replace a text that occurs once, or each occurrence of it."""
    parts = _writable(context, str(arguments["path"]))
    shown = "/".join(parts)
    content = read_inside(context.workspace, parts, most_bytes=MOST_FILE_BYTES)
    _check_unchanged(context, shown, content)
    old = str(arguments["old"]).encode("utf-8", "surrogateescape")
    new = str(arguments["new"]).encode("utf-8", "surrogateescape")
    if not old:
        raise ToolError("`old` is empty. To create a file or replace all of it use write_file.")
    if old == new:
        raise ToolError("`old` and `new` are the same.")
    if old not in content and b"\r\n" in content:
        # The model sees lines without their carriage returns.
        old, new = (text.replace(b"\n", b"\r\n") for text in (old, new))
    times = content.count(old)
    if times == 0:
        raise ToolError(
            f"`old` does not occur in {shown}. It must match exactly, with its indentation and "
            "without the line numbers that read_file adds. Read the file again."
        )
    if times > 1 and not arguments.get("replace_all", False):
        raise ToolError(
            f"`old` occurs {times} times in {shown}. Add lines around it until it is unique, "
            "or set replace_all."
        )
    line = content[: content.index(old)].count(b"\n") + 1
    content = content.replace(old, new)
    write_inside(context.workspace, parts, content)
    what = f"line {line}" if times == 1 else f"{times} places, the first on line {line}"
    return ToolOutput(f"Changed {shown}: {what}.", details=_seen(context, parts, content))


def _writable(context: ToolContext, path: str) -> tuple[str, ...]:
    """The components of a path that file tools may write."""
    if path.startswith("output://"):
        raise ToolError("Results of earlier calls cannot be changed.")
    parts = parts_inside(context.workspace, path)
    # These tools run outside the sandbox, which protects git's files from commands.
    if any(part.casefold() == ".git" for part in parts):
        raise ToolError("Git's own files cannot be changed with a file tool; use git.")
    return parts


def _content(context: ToolContext, parts: tuple[str, ...]) -> bytes | None:
    """What is in a file now; None if there is none."""
    try:
        return read_inside(context.workspace, parts, most_bytes=MOST_FILE_BYTES)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _check_unchanged(context: ToolContext, shown: str, content: bytes) -> None:
    """Raise ToolError if the file is not as the model last saw it."""
    seen = context.seen.get(shown)
    if seen is not None and seen != _digest(content):
        # It may be told once: what is read next is what it will see.
        raise ToolError(f"{shown} has changed since you read it. Read it again first.")


def _seen(context: ToolContext, parts: tuple[str, ...], content: bytes) -> dict[str, Any]:
    """Note what the model has seen, and return it for the journal (see `registry.seen_in`)."""
    shown = "/".join(parts)
    context.seen[shown] = _digest(content)
    return {"path": shown, "sha256": context.seen[shown]}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def list_files(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """What is in one folder: folders first, each with a slash; files with their size."""
    parts = parts_inside(context.workspace, str(arguments["path"]))
    with folder_inside(context.workspace, parts) as folder, os.scandir(folder) as entries:
        described = [_describe(entry) for entry in entries]
    if not described:
        return ToolOutput("[the folder is empty]")
    lines = [line for _, line in sorted(described)]
    if len(lines) > MOST_ENTRIES:
        rest = len(lines) - MOST_ENTRIES
        lines = [*lines[:MOST_ENTRIES], f"[{rest} more entries; use glob to narrow it down]"]
    return ToolOutput("\n".join(lines))


def _describe(entry: os.DirEntry[str]) -> tuple[tuple[bool, str], str]:
    """A key to sort by and a line to show."""
    name = entry.name.encode("utf-8", "backslashreplace").decode()
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # it is gone
        return (True, name), f"{name}\t(gone)"
    if stat.S_ISDIR(found.st_mode):
        return (False, name), f"{name}/"
    if stat.S_ISLNK(found.st_mode):
        return (True, name), f"{name}\t(symbolic link)"
    return (True, name), f"{name}\t{found.st_size}"


_PATH = {"type": "string", "description": "Relative to the workspace, for example src/app.py."}

TOOLS = (
    Tool(
        name="read_file",
        description=(
            "Read a text file. Use it before you change a file, and to look at code that you have "
            "found; do not use bash (cat, head, sed) for that. The answer has line numbers and a "
            f"tab before each line, at most {PAGE_LINES} lines; for a longer file give `offset` "
            "(the first line) and `limit`. Do not read a file again that has not changed since. "
            "A path `output://NAME` is the full text of an earlier result that was too long."
        ),
        schema=object_schema(
            {"path": _PATH},
            {
                "offset": {"type": "integer", "minimum": 1, "description": "First line, from 1."},
                "limit": {"type": "integer", "minimum": 1, "maximum": PAGE_LINES},
            },
        ),
        run=read_file,
        read_only=True,
        repeatable=True,
    ),
    Tool(
        name="write_file",
        description=(
            "Create a file, or replace all of it, with exactly this content; missing folders are "
            "made. Use it for new files. To change a part of a file use edit_file, which is "
            "shorter and safer. An existing file must have been read before. Do not use bash "
            "(echo, cat <<EOF) to write files."
        ),
        schema=object_schema({"path": _PATH, "content": {"type": "string"}}),
        run=write_file,
        read_only=False,
        repeatable=True,
    ),
    Tool(
        name="edit_file",
        description=(
            "Replace a text in a file by another. Use it for every change of an existing file. "
            "`old` must be exactly what is in the file, with its indentation and without line "
            "numbers, and must occur once: take enough lines around it. `replace_all` replaces "
            "every occurrence, for example to rename something. Read the file first."
        ),
        schema=object_schema(
            {"path": _PATH, "old": {"type": "string"}, "new": {"type": "string"}},
            {"replace_all": {"type": "boolean", "default": False}},
        ),
        run=edit_file,
        read_only=False,
        repeatable=False,
    ),
    Tool(
        name="list_files",
        description=(
            "List one folder: sub-folders with a slash, files with their size in bytes. Use `.` "
            "for the top of the workspace. To find files by name in all folders use glob; to find "
            "text use grep."
        ),
        schema=object_schema({"path": _PATH}),
        run=list_files,
        read_only=True,
        repeatable=True,
    ),
)
