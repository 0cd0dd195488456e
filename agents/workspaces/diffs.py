"""The difference between two commits, bounded, as data that can be stored and shown."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from agents.workspaces.git import git, readable_path

DIFF_TIMEOUT_SECONDS = 60.0
MAX_FILES = 2_000  # more are counted, not listed
MAX_FILE_BYTES = 200_000  # of one file's hunks; about 5,000 lines
MAX_TOTAL_BYTES = 4_000_000  # of all hunks, in the order of the paths

MAX_TEXT_BYTES = 1_000_000  # of one file that is read whole

# Git treats larger files as binary: it neither reads them whole nor counts their lines.
_BIG_FILE = "1m"
_RENAME_LIMIT = "1000"
_FROM_EMPTY = "0" * 40


@dataclass(frozen=True)
class FileDiff:
    """What happened to one file. `hunks` starts at the first `@@`; "" for a binary file.

    `status` is A (added), M (modified), D (deleted) or R (renamed from `old_path`, perhaps also
    modified). Modes are git's: 100644, 100755 (executable), 120000 (link), 160000 (submodule),
    000000 (no file). `is_cut` says that `hunks` is not all.
    """

    path: str
    old_path: str
    status: str
    old_mode: str
    new_mode: str
    is_binary: bool
    additions: int
    deletions: int
    hunks: str = ""
    is_cut: bool = False


@dataclass(frozen=True)
class Diff:
    """All files that differ. The totals count also the `omitted_files`, which are not listed."""

    files: tuple[FileDiff, ...]
    additions: int
    deletions: int
    omitted_files: int = 0


def diff(repository: Path, base: str, head: str) -> Diff:
    """What changed from the commit `base` to `head`. Raises WorkspaceError."""
    if base == head:
        return Diff((), 0, 0)
    common = (
        "--no-ext-diff",
        "--no-textconv",
        "--find-renames",
        f"-l{_RENAME_LIMIT}",
        "--ignore-submodules=none",
        "--submodule=short",
        "-r",
    )
    settings = {"core.bigFileThreshold": _BIG_FILE, "diff.algorithm": "histogram"}
    listed = git(
        "diff-tree", *common, "--raw", "--numstat", "-z", "--abbrev=40", base, head, "--",
        git_dir=repository, configuration=settings, timeout_seconds=DIFF_TIMEOUT_SECONDS,
    )  # fmt: skip
    files = _read_list(listed.stdout)
    patch = git(
        "diff-tree", *common, "--patch", base, head, "--",
        git_dir=repository, configuration=settings, timeout_seconds=DIFF_TIMEOUT_SECONDS,
        enough_bytes=MAX_TOTAL_BYTES,
    )  # fmt: skip
    shown = _with_hunks(files[:MAX_FILES], patch.stdout, is_cut=patch.is_cut)
    return Diff(
        files=tuple(shown),
        additions=sum(file.additions for file in files),
        deletions=sum(file.deletions for file in files),
        omitted_files=len(files) - len(shown),
    )


def text_at(repository: Path, sha: str, path: str) -> str:
    """The text of a file at a commit, its beginning if it is long; "" if there is none."""
    answer = git(
        "cat-file", "blob", f"{sha}:{path}",
        git_dir=repository, ok=(0, 128), enough_bytes=MAX_TEXT_BYTES,
        timeout_seconds=DIFF_TIMEOUT_SECONDS,
    )  # fmt: skip
    return answer.stdout.decode("utf-8", "replace")


def _read_list(answer: bytes) -> list[FileDiff]:
    """Read `--raw --numstat -z`: first a record of modes per file, then one of counts per file."""
    fields = iter(answer.split(b"\0"))
    files = []
    counts = {}
    for field in fields:
        if field.startswith(b":"):
            old_mode, new_mode, _, _, status = field[1:].decode().split(" ")
            old = new = next(fields)
            if status[0] == "R":
                new = next(fields)
            files.append((old, new, status[0], old_mode, new_mode))
        elif field:
            added, deleted, path = field.split(b"\t", 2)
            if not path:  # a rename: the two paths follow
                next(fields)
                path = next(fields)
            counts[path] = (added, deleted)
    return [
        FileDiff(
            path=readable_path(new),
            old_path=readable_path(old),
            status="M" if status == "T" else status,
            old_mode=old_mode,
            new_mode=new_mode,
            is_binary=counts[new][0] == b"-",
            additions=_number(counts[new][0]),
            deletions=_number(counts[new][1]),
        )
        for old, new, status, old_mode, new_mode in files
    ]


def _number(count: bytes) -> int:
    return 0 if count == b"-" else int(count)


def _with_hunks(files: list[FileDiff], patch: bytes, *, is_cut: bool) -> list[FileDiff]:
    """Deal out the sections of `patch`, which come in the order of `files`."""
    # Every line of a patch's content starts with a blank, a sign or a backslash.
    sections = re.split(rb"^diff --git ", patch, flags=re.MULTILINE)[1:]
    shown = []
    used = 0
    for file in files:
        # A file that became a link, or the reverse, is shown as deleted and added.
        parts = 2 if _is_type_change(file) else 1
        hunks = b"".join(_hunks_of(section) for section in sections[used : used + parts])
        used += parts
        is_last = is_cut and used >= len(sections)
        if is_last or len(hunks) > MAX_FILE_BYTES:
            hunks = hunks[: hunks.rfind(b"\n", 0, MAX_FILE_BYTES) + 1]
            file = replace(file, is_cut=_has_hunks(file))  # noqa: PLW2901
        shown.append(replace(file, hunks=hunks.decode("utf-8", "replace")))
    return shown


def _is_type_change(file: FileDiff) -> bool:
    return file.status == "M" and file.old_mode[:2] != file.new_mode[:2]


def _has_hunks(file: FileDiff) -> bool:
    return not file.is_binary and file.additions + file.deletions > 0


def _hunks_of(section: bytes) -> bytes:
    start = re.search(rb"^@@ ", section, flags=re.MULTILINE)
    return section[start.start() :] if start else b""
