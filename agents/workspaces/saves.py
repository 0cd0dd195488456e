"""Commits what lies in a worktree, by the harness itself, after each turn of the agent.

Neither the agent's index nor its configuration nor its repositories are read: the harness has an
index of its own, and gives git the names of the files to take. The agent's own view (its branch,
its `git status`) does not change.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.harness.redaction import Redactor
from agents.workspaces.errors import GitError, WorkspaceError
from agents.workspaces.git import (
    CHECKOUT_TIMEOUT_SECONDS,
    PRODUCT,
    Author,
    commit_tree,
    git,
    move_ref,
    readable_path,
)
from agents.workspaces.indexes import is_equal, is_intact, note_equal
from agents.workspaces.locks import holding, locked
from agents.workspaces.records import Worktree
from agents.workspaces.refs import tip
from agents.workspaces.secret_checks import SecretCheck

MAX_FILE_BYTES = 100 * 1024 * 1024  # what the usual hosts refuse to take

_GITLINK = b"160000 "  # the mode of a submodule
_MAX_DEPTH = 10  # of repositories within repositories


@dataclass(frozen=True)
class Saved:
    """The commit that holds the worktree's files. `skipped` are readable paths left out, with why."""

    sha: str
    has_changed: bool
    skipped: tuple[str, ...] = ()


def commit_all(
    worktree: Worktree,
    message: str,
    *,
    author: Author = PRODUCT,
    redactor: Redactor | None = None,
) -> Saved:
    """Commit the files of `worktree` as they are, on top of what was saved of it before.

    Ignored files are left out, and what holds secrets (see `secret_checks.py`). A repository that the agent
    has made inside the worktree is taken as plain files. Without changes there is no new commit.
    Raises WorkspaceError.
    """
    if not worktree.path.is_dir():
        raise WorkspaceError(f"The worktree {worktree.path} is gone.", code="missing_path")
    with holding(worktree.private / "lock", timeout_seconds=CHECKOUT_TIMEOUT_SECONDS):
        ref = worktree.saved_ref
        parent = tip(worktree.git_dir, ref)
        if parent is None:
            raise WorkspaceError(f"What was saved of {worktree.path} is gone.", code="missing_ref")
        skipped = _stage(worktree, parent, SecretCheck(worktree, parent, redactor or Redactor()))
        if is_equal(worktree.index, parent):
            return Saved(parent, has_changed=False, skipped=skipped)
        before = git("rev-parse", f"{parent}^{{tree}}", git_dir=worktree.git_dir).line
        tree = _in(worktree, "write-tree").decode().strip()
        if tree == before:
            note_equal(worktree.index, parent)
            return Saved(parent, has_changed=False, skipped=skipped)
        sha = commit_tree(worktree.git_dir, tree, [parent], message=message, author=author)
        with locked(worktree.git_dir):
            moved = move_ref(worktree.git_dir, ref, new=sha, old=parent, reason="saved")
        if not moved:
            raise WorkspaceError("The worktree was saved by somebody else.", code="branch_moved")
        note_equal(worktree.index, sha)
    return Saved(sha, has_changed=True, skipped=skipped)


def holds_more_than_saved(worktree: Worktree) -> bool:
    """Whether files lie in the worktree that its commit does not hold: ignored, left out, or changed since.

    What was tested there need not be true of the commit. The same holds when the worktree is gone.
    """
    if not worktree.path.is_dir():
        return True
    with holding(worktree.private / "lock", timeout_seconds=CHECKOUT_TIMEOUT_SECONDS):
        others = _in(worktree, "ls-files", "--others", "--directory", "--no-empty-directory", "-z")
        return bool(others) or bool(_changed(worktree))


def _stage(worktree: Worktree, parent: str, check: SecretCheck) -> tuple[str, ...]:
    """Bring the harness's index up to the files; return what was left out."""
    # A lock can only be a dead git's, for we hold the lock of the worktree.
    worktree.index.with_name("index.lock").unlink(missing_ok=True)
    if not is_intact(worktree.index):
        worktree.index.unlink(missing_ok=True)
        _in(worktree, "read-tree", parent)
    tracked = _changed(worktree)
    skipped = _submodules_with_files(worktree)
    wanted: list[bytes] = []
    for path in tracked:
        reason = _reason_to_skip(worktree.path, path) or check.of_changed(path)
        (skipped if reason else wanted).append(reason or path)
    for path in _untracked(worktree):
        reason = _reason_to_skip(worktree.path, path) or check.of_new(path)
        (skipped if reason else wanted).append(reason or path)
    skipped += _add(worktree, wanted)
    return tuple(readable_path(text) for text in skipped)


def _changed(worktree: Worktree) -> list[bytes]:
    """Paths in the index whose files are different or gone. Submodules are not looked into:
    git would run there with the configuration that it finds.
    """
    answer = _in(worktree, "diff-files", "--name-only", "--ignore-submodules=all", "-z")
    return [path for path in answer.split(b"\0") if path]


def _untracked(worktree: Worktree) -> Iterator[bytes]:
    """Paths of files that are neither in the index nor ignored, also in repositories within."""
    listing = ("ls-files", "--others", "--exclude-standard", "-z")
    for path in _in(worktree, *listing).split(b"\0"):
        if path.endswith(b"/"):
            yield from _files_of_repository(worktree, path, 1)
        elif path:
            yield path


def _files_of_repository(worktree: Worktree, folder: bytes, depth: int) -> Iterator[bytes]:
    """The files of a repository inside the worktree; its `.git` is not used."""
    answer = git(
        "ls-files", "--others", "--exclude-standard", "-z",
        git_dir=worktree.git_dir,
        work_tree=worktree.path / os.fsdecode(folder),
        index=worktree.private / "no-index",
    ).stdout  # fmt: skip
    for path in answer.split(b"\0"):
        if path.endswith(b"/") and depth < _MAX_DEPTH:
            yield from _files_of_repository(worktree, folder + path, depth + 1)
        elif path:
            yield folder + path


def _submodules_with_files(worktree: Worktree) -> list[bytes]:
    """Submodules are not checked out, so files in their folders are work that cannot be saved."""
    if not (worktree.path / ".gitmodules").exists():
        return []
    found = []
    for line in _in(worktree, "ls-files", "--stage", "-z").split(b"\0"):
        fields, _, path = line.partition(b"\t")
        folder = worktree.path / os.fsdecode(path)
        if fields.startswith(_GITLINK) and folder.is_dir() and any(folder.iterdir()):
            found.append(path + b": files in a submodule")
    return found


def _reason_to_skip(top: Path, path: bytes) -> bytes:
    """Why git could not take the file, or b""; what is gone is taken as deleted."""
    file = top / os.fsdecode(path)
    try:
        status = file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        return path + b": " + (error.strerror or "unreadable").encode()
    if stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return b""  # a link is stored as such; in place of a folder the file is gone
    if not stat.S_ISREG(status.st_mode):
        return path + b": a socket, pipe or device"
    if status.st_size > MAX_FILE_BYTES:
        return path + b": larger than 100 MB"
    return b"" if os.access(file, os.R_OK) else path + b": not readable"


def _add(worktree: Worktree, paths: list[bytes]) -> list[bytes]:
    """Put `paths` into the index as they are on disk; return those that git cannot take.

    Git takes all or none, so on a refusal the halves are tried.
    """
    if not paths:
        return []
    try:
        _in(
            worktree, "update-index", "--add", "--remove", "--replace", "-z", "--stdin",
            input=b"\0".join(paths) + b"\0",
        )  # fmt: skip
    except GitError as failure:
        if failure.ended_by != "exit":
            raise
        if len(paths) == 1:
            return [paths[0] + b": " + failure.message.encode()]
        middle = len(paths) // 2
        return _add(worktree, paths[:middle]) + _add(worktree, paths[middle:])
    return []


def _in(
    worktree: Worktree,
    *arguments: str,
    input: bytes | None = None,  # noqa: A002
) -> bytes:
    """Run git on the files of `worktree` with the harness's index."""
    return git(
        *arguments,
        git_dir=worktree.git_dir,
        work_tree=worktree.path,
        index=worktree.index,
        input=input,
        timeout_seconds=CHECKOUT_TIMEOUT_SECONDS,
    ).stdout
