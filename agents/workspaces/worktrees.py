"""Gives each run a working tree of its own, made from a bare clone of the hub on this machine.

The clone borrows the hub's objects and holds the worktrees' entries. An agent may write in its
worktree and in the run's private refs, logs and objects, nowhere else, so git commands on the
clone are safe; nothing here ever runs git with a configuration or an index that an agent can write.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from agents.workspaces.errors import WorkspaceError
from agents.workspaces.git import CHECKOUT_TIMEOUT_SECONDS, git
from agents.workspaces.hub import create_bare, restore_configuration
from agents.workspaces.indexes import note_equal
from agents.workspaces.locks import locked
from agents.workspaces.records import (
    PRIVATE,
    Worktree,
    find_record,
    is_unfinished,
    private_of,
    recorded,
    write_record,
)
from agents.workspaces.refs import is_branch_name, tip
from agents.workspaces.spares import adopt
from agents.workspaces.trees import delete_tree, spread

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")  # of a folder; git alters others


@dataclass(frozen=True)
class PrivateGit:
    """The folders that a sandbox puts over the clone's, so that an agent's git works in private.

    `common` is mounted read-only. Over it lie, writable, `entry_copy` in place of `entry`, and
    `refs` and `logs`; new objects go to `objects`.
    """

    common: Path
    entry: Path
    entry_copy: Path
    refs: Path
    logs: Path
    objects: Path


def add_worktree(
    clone: Path,
    hub: Path,
    path: Path,
    *,
    branch: str,
    base_sha: str,
    target_branch: str = "",
) -> Worktree:
    """Make a worktree at `path` on a new `branch` from the commit `base_sha`, or return it.

    What an interrupted call left at `path` is replaced. Where something else lies at `path`, or
    other work is on `branch`, a number is appended to the name: see the answer. The agent sees
    `base_sha` also under the name `target_branch`.
    Raises WorkspaceError.
    """
    if not is_branch_name(branch):
        raise WorkspaceError(f"“{branch}” is not a valid name of a branch.", code="bad_branch")
    ensure_clone(clone, hub)
    existing = find_record(path)
    if existing is not None and path.is_dir():
        return existing
    if existing is not None:  # somebody deleted the folder; what was saved is still there
        base_sha = tip(clone, existing.saved_ref) or base_sha
    if existing is not None or is_unfinished(path) or not path.exists():
        delete_worktree(clone, path)
    with locked(clone):
        path = _free_path(path)
        name, is_new = _free_branch(clone, path.parent, branch, base_sha)
        new = ["--no-track", "-b", name, str(path), base_sha]
        where = new if is_new else ["--force", str(path), name]
        worktree = _register(clone, path, where, branch=name, base_sha=base_sha)
    return _filled(worktree, target_branch)


def check_out(clone: Path, hub: Path, path: Path, sha: str) -> Worktree:
    """A fresh worktree of the commit `sha`, for checks; an older one at `path` is replaced.

    Raises WorkspaceError, with code `path_taken` if something else lies there.
    """
    ensure_clone(clone, hub)
    existing = find_record(path)
    is_replaceable = is_unfinished(path) if existing is None else not existing.branch
    if path.exists() and not is_replaceable:
        raise WorkspaceError(f"{path} is in use for something else.", code="path_taken")
    delete_worktree(clone, path)
    with locked(clone):
        worktree = _register(clone, path, ["--detach", str(path), sha], branch="", base_sha=sha)
    return _filled(worktree, "")


def private_git(worktree: Worktree) -> PrivateGit:
    """What a sandbox mounts. Without those mounts an agent's git must not get `objects` either."""
    return PrivateGit(
        common=worktree.git_dir,
        entry=worktree.entry,
        entry_copy=worktree.private / "entry",
        refs=worktree.private / "refs",
        logs=worktree.private / "logs",
        objects=worktree.private / "objects",
    )


def ensure_clone(clone: Path, hub: Path) -> None:
    """Make the machine's bare clone of `hub` if there is none; put its configuration right."""
    with locked(clone):
        if not clone.exists():
            fresh = clone.with_name(f".{clone.name}.new")
            delete_tree(fresh)
            create_bare(fresh)
            fresh.rename(clone)
        for folder in (clone.parent, clone.parent / PRIVATE):
            folder.mkdir(exist_ok=True)
            spread(folder)
        restore_configuration(clone)
        alternates = clone / "objects" / "info" / "alternates"
        wanted = f"{hub / 'objects'}\n"
        if not alternates.is_file() or alternates.read_text() != wanted:
            alternates.write_text(wanted)


def delete_worktree(clone: Path, path: Path) -> None:
    """Delete all that belongs to the worktree at `path`, which must be nobody's work."""
    delete_tree(path)  # may take long, so without a lock
    with locked(clone):
        _unregister(clone, path)
    delete_tree(private_of(path))


def _register(clone: Path, path: Path, where: list[str], *, branch: str, base_sha: str) -> Worktree:
    """Let git make a worktree without files; call it while holding the lock of the clone."""
    private = private_of(path)
    private.mkdir(parents=True)  # from here on `is_unfinished`
    try:
        git("worktree", "add", "--no-checkout", *where, git_dir=clone)
        (entry,) = _entries_of(clone, path)
        worktree = Worktree(path, branch, base_sha, clone, entry, private)
        git("update-ref", worktree.saved_ref, base_sha, git_dir=clone)
    except BaseException:
        _unregister(clone, path)
        delete_tree(path)
        delete_tree(private)
        raise
    return worktree


def _unregister(clone: Path, path: Path) -> None:
    """Let the clone forget the worktree at `path`; call it while holding the lock of the clone."""
    for entry in _entries_of(clone, path):
        git("update-ref", "-d", f"refs/runs/{entry.name}", git_dir=clone)
        delete_tree(entry)


def _filled(worktree: Worktree, target_branch: str) -> Worktree:
    """Write the files and all private parts, and last of all the record."""
    try:
        # Files that git has written before, if there are some; it corrects what differs.
        adopt(worktree.git_dir, worktree.path, worktree.entry / "index", worktree.base_sha)
        git(
            "read-tree",
            "--reset",
            "-u",
            "HEAD",
            git_dir=worktree.entry,
            work_tree=worktree.path,
            timeout_seconds=CHECKOUT_TIMEOUT_SECONDS,
        )
        shutil.copyfile(worktree.entry / "index", worktree.index)
        note_equal(worktree.index, worktree.base_sha)
        _write_private_refs(worktree, target_branch)
        write_record(worktree)
    except BaseException:
        delete_worktree(worktree.git_dir, worktree.path)
        raise
    return worktree


def _write_private_refs(worktree: Worktree, target_branch: str) -> None:
    """The refs, logs, objects and git state that the agent may write."""
    private = private_git(worktree)
    for folder in (private.refs / "heads", private.refs / "tags", private.logs, private.objects):
        folder.mkdir(parents=True, exist_ok=True)
    for name in (target_branch, worktree.branch):
        if name:
            file = private.refs / "heads" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{worktree.base_sha}\n")
    shutil.copytree(worktree.entry, private.entry_copy)


def _entries_of(clone: Path, path: Path) -> list[Path]:
    """The folders in which `clone` keeps the state of the worktree at `path`."""
    wanted = str(path.parent.resolve() / path.name / ".git")  # git records real paths
    found = []
    # Git names the state after the folder, with a number behind it where the name is taken.
    names = f"{path.name}*" if _PLAIN_NAME.fullmatch(path.name) else "*"
    for entry in (clone / "worktrees").glob(names):
        gitdir = entry / "gitdir"
        if gitdir.is_file() and gitdir.read_text(errors="replace").strip() == wanted:
            found.append(entry)
    return found


def _free_path(path: Path) -> Path:
    candidate, number = path, 2
    while candidate.exists() or private_of(candidate).exists():
        candidate, number = path.with_name(f"{path.name}-{number}"), number + 1
    return candidate


def _free_branch(clone: Path, root: Path, wanted: str, base_sha: str) -> tuple[str, bool]:
    """A branch for a new worktree, and whether it has to be created."""
    name, number = wanted, 2
    while True:
        found = tip(clone, f"refs/heads/{name}")
        if found is None:
            return name, True
        if found == base_sha and all(name != each.branch for each in recorded(root)):
            return name, False  # an interrupted call came this far
        name, number = f"{wanted}-{number}", number + 1
