"""A working tree that waits for the next run, so that no run waits for its files to be written.

Writing the files is nearly all of what a new worktree costs: 0.1 s for 2,000 of them on a good day,
seconds on a slow disk or for a large repository. One spare per project is written ahead of its use;
a run takes it by renaming it, and git then writes only what differs. Nobody but git has ever
touched a spare: it is never a used worktree made clean.
"""

import shutil
import threading
import time
from pathlib import Path

from agents.workspaces.errors import WorkspaceError
from agents.workspaces.git import CHECKOUT_TIMEOUT_SECONDS, git
from agents.workspaces.locks import holding
from agents.workspaces.trees import delete_tree, spread

UNUSED_SECONDS = 7 * 24 * 3600.0  # a spare that nobody has needed for so long goes
LEAST_FREE = 0.1  # of the disk; a spare is a comfort, and the runs need the room

_FOLDER = ".spare"
_READY = "ready"
_HALF_DONE_SECONDS = 3600.0  # what is older was left by a process that was killed


def prepare(clone: Path, root: Path, sha: str, *, cancel: threading.Event | None = None) -> None:
    """Have a spare of the commit `sha` ready below `root`, the folder of a project's worktrees.

    An older spare is brought up to date. Does nothing where the disk is nearly full, or while
    another process prepares one. Raises WorkspaceError, also when `cancel` was set.
    """
    folder = root / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    spread(folder)
    try:
        with holding(folder / "lock", timeout_seconds=0):
            _sweep(folder)
            _prepare(clone, folder, sha, cancel)
    except WorkspaceError as error:
        if error.code != "busy":
            raise


def adopt(clone: Path, tree: Path, index: Path, sha: str) -> bool:
    """Put the spare's files into the new, empty worktree `tree` and its index at `index`, if it is of use.

    They are those of another commit perhaps; `git read-tree` makes them those of `sha`. What an
    interrupted call leaves is an unfinished worktree, as if it had not been called.
    """
    folder = tree.parent / _FOLDER
    spare = _take(folder, tree.name)
    if spare is None:
        return False
    try:
        if not _is_of_use(clone, spare, sha):
            return False
        (tree / ".git").rename(spare / "tree" / ".git")
        tree.rmdir()
        (spare / "tree").rename(tree)
        # With its time: by it git knows which files it must look at more closely.
        shutil.copy2(spare / "index", index)
    finally:
        delete_tree(spare)
    return True


def drop_unused(root: Path) -> None:
    """Delete the spare below `root` if no run has needed one for a week."""
    folder = root / _FOLDER
    try:
        unused = time.time() - (folder / "lock").stat().st_mtime
    except FileNotFoundError:
        return
    if unused > UNUSED_SECONDS:
        delete_tree(folder)


def _prepare(clone: Path, folder: Path, sha: str, cancel: threading.Event | None) -> None:
    ready = folder / _READY
    if ready.exists() and (ready / "sha").read_text() == sha:
        return
    spare = _take(folder, "update")
    if spare is not None and not _is_of_use(clone, spare, sha):
        delete_tree(spare)
        spare = None
    usage = shutil.disk_usage(folder)
    if spare is None and usage.free < LEAST_FREE * usage.total:
        return
    if spare is None:
        spare = folder / f"making-{time.time_ns()}"
        (spare / "tree").mkdir(parents=True)
    try:
        git(
            "read-tree",
            "--reset",
            "-u",
            sha,
            git_dir=clone,
            work_tree=spare / "tree",
            index=spare / "index",
            timeout_seconds=CHECKOUT_TIMEOUT_SECONDS,
            cancel=cancel,
        )
        (spare / "sha").write_text(sha)
        spare.rename(ready)
    except BaseException:
        delete_tree(spare)
        raise


def _take(folder: Path, name: str) -> Path | None:
    """Move the spare out of everybody else's sight; None if there is none."""
    taken = folder / f"taken-{name}-{time.time_ns()}"
    try:
        (folder / _READY).rename(taken)
    except FileNotFoundError:
        return None
    (folder / "lock").touch()
    return taken


def _is_of_use(clone: Path, spare: Path, sha: str) -> bool:
    """Whether git would write each file that is equal in both commits in the same way."""
    have = (spare / "sha").read_text()
    if have == sha:
        return True
    rules = ":(top,glob)**/.gitattributes"
    changed = git(
        "diff-tree", "--quiet", "-r", have, sha, "--", rules, git_dir=clone, ok=(0, 1, 128)
    )
    return changed.exit_code == 0


def _sweep(folder: Path) -> None:
    """Delete what was left half done, but nothing that a run may be taking now."""
    for path in folder.iterdir():
        half_done = path.name.startswith(("taken-", "making-"))
        if half_done and time.time() - path.lstat().st_ctime > _HALF_DONE_SECONDS:
            delete_tree(path)
