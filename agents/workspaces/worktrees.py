"""Gives each run a working tree of its own, made from a bare clone of the hub on this machine.

The clone borrows the hub's objects and holds the worktrees' entries. An agent may write in its
worktree and in the run's private refs, logs and objects, nowhere else, so git commands on the
clone are safe; nothing here ever runs git with a configuration or an index that an agent can write.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.workspaces.errors import WorkspaceError
from agents.workspaces.git import CHECKOUT_TIMEOUT_SECONDS, git
from agents.workspaces.hub import create_bare, restore_configuration
from agents.workspaces.indexes import note_equal
from agents.workspaces.locks import locked
from agents.workspaces.refs import is_branch_name, tip
from agents.workspaces.spares import adopt
from agents.workspaces.trees import delete_tree, spread

_PRIVATE = ".private"
_RECORD = "worktree.json"
_BEING_REMOVED = "removing.json"


@dataclass(frozen=True)
class Worktree:
    """A run's working tree. `branch` is the agent's branch in it, "" if it is only for checks.

    `git_dir` is the machine's clone, `entry` its folder for git's own state of this worktree,
    `private` the run's folder for what must not be in the clone.
    """

    path: Path
    branch: str
    base_sha: str
    git_dir: Path
    entry: Path
    private: Path

    @property
    def saved_ref(self) -> str:
        """The ref of the clone that holds what the harness has committed of this worktree."""
        return f"refs/runs/{self.entry.name}"

    @property
    def index(self) -> Path:
        """The harness's own index. The agent's is another, and each leaves the other alone."""
        return self.private / "index"


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


def find_worktree(root: Path, branch: str) -> Worktree | None:
    """The worktree below `root` (the folder of a project's worktrees) that is on `branch`.

    A run that continues on the same machine finds its files there, also those never committed.
    """
    return next((tree for tree in recorded(root) if tree.branch == branch), None)


def recorded(root: Path) -> Iterator[Worktree]:
    """All finished worktrees below `root` whose folders exist."""
    for private in sorted((root / _PRIVATE).glob("*")):
        worktree = find_record(root / private.name)
        if worktree is not None and worktree.path.is_dir():
            yield worktree


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
        for folder in (clone.parent, clone.parent / _PRIVATE):
            folder.mkdir(exist_ok=True)
            spread(folder)
        restore_configuration(clone)
        alternates = clone / "objects" / "info" / "alternates"
        wanted = f"{hub / 'objects'}\n"
        if not alternates.is_file() or alternates.read_text() != wanted:
            alternates.write_text(wanted)


def mark_for_removal(worktree: Worktree) -> None:
    """From now on nothing of `worktree` is anybody's work, also if deleting it is interrupted."""
    record = worktree.private / _RECORD
    if record.exists():
        record.rename(worktree.private / _BEING_REMOVED)


def delete_worktree(clone: Path, path: Path) -> None:
    """Delete all that belongs to the worktree at `path`, which must be nobody's work."""
    delete_tree(path)  # may take long, so without a lock
    with locked(clone):
        _unregister(clone, path)
    delete_tree(private_of(path))


def is_unfinished(path: Path) -> bool:
    """Whether `path` is what an interrupted creation or removal left."""
    return private_of(path).exists() and find_record(path) is None


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
        _write_record(worktree)
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
    for entry in (clone / "worktrees").glob("*"):
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
    taken = {worktree.branch for worktree in recorded(root)}
    name, number = wanted, 2
    while True:
        found = tip(clone, f"refs/heads/{name}")
        if found is None:
            return name, True
        if found == base_sha and name not in taken:  # an interrupted call came this far
            return name, False
        name, number = f"{wanted}-{number}", number + 1


def private_of(path: Path) -> Path:
    """Return the folder of the worktree at `path` for what must not be in the clone."""
    return path.parent / _PRIVATE / path.name


def _write_record(worktree: Worktree) -> None:
    """The last act of creation: from here on what the worktree holds is an agent's work."""
    fields = {
        "branch": worktree.branch,
        "base_sha": worktree.base_sha,
        "git_dir": str(worktree.git_dir),
        "entry": str(worktree.entry),
    }
    draft = worktree.private / f"{_RECORD}.new"
    draft.write_text(json.dumps(fields))
    draft.rename(worktree.private / _RECORD)


def find_record(path: Path) -> Worktree | None:
    """The worktree at `path`, or None if it was never finished or is being removed."""
    private = private_of(path)
    try:
        fields = json.loads((private / _RECORD).read_text())
    except FileNotFoundError:
        return None
    return Worktree(
        path=path,
        branch=fields["branch"],
        base_sha=fields["base_sha"],
        git_dir=Path(fields["git_dir"]),
        entry=Path(fields["entry"]),
        private=private,
    )
