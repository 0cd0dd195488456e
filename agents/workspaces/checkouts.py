"""Looks after the user's own checkouts: which show a branch, which may follow it, and how.

Nothing of the repository's configuration is executed: no hook, no filter, no monitor. A checkout
that would need a filter is left alone rather than filled with unfiltered files.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from agents.workspaces.git import CHECKOUT_TIMEOUT_SECONDS, ZERO_SHA, git, readable_path

# Files in a checkout's git directory that mean somebody is in the middle of something.
_UNDER_WAY = {
    "MERGE_HEAD": "a merge is under way",
    "CHERRY_PICK_HEAD": "a cherry-pick is under way",
    "REVERT_HEAD": "a revert is under way",
    "rebase-merge": "a rebase is under way",
    "rebase-apply": "a rebase is under way",
    "BISECT_LOG": "a bisection is under way",
    "index.lock": "git is at work there, or was killed (see .git/index.lock)",
}
_REBASED_BRANCH = ("rebase-merge/head-name", "rebase-apply/head-name")
_UNFILTERED = (b"unspecified", b"unset")


@dataclass(frozen=True)
class Checkout:
    """A folder of the user where a branch is checked out, and its own git directory."""

    path: Path
    git_dir: Path


def checkouts_of(git_dir: Path, branch: str) -> list[Checkout]:
    """The checkouts (the main one and linked worktrees) that show `branch` or are rebasing it."""
    ref = f"refs/heads/{branch}"
    answer = git("worktree", "list", "--porcelain", "-z", git_dir=git_dir).stdout
    found = []
    for record in filter(None, answer.split(b"\0\0")):
        fields = dict(line.partition(b" ")[::2] for line in record.split(b"\0") if line)
        path = Path(os.fsdecode(fields[b"worktree"]))
        if b"bare" in fields or not (path / ".git").exists():  # or its folder is gone
            continue
        own = Path(git("rev-parse", "--absolute-git-dir", git_dir=path / ".git").line)
        if os.fsdecode(fields.get(b"branch", b"")) == ref or _is_rebasing(own, ref):
            found.append(Checkout(path, own))
    return found


def _is_rebasing(own: Path, ref: str) -> bool:
    return any(
        (own / name).is_file() and (own / name).read_text(errors="replace").strip() == ref
        for name in _REBASED_BRANCH
    )


def reason_to_leave(checkout: Checkout, *, old: str, new: str) -> str:
    """Why `checkout` must not be moved from `old` to `new`, or "" if it may be."""
    if old == ZERO_SHA:
        return "its branch has no commit yet"
    for name, reason in _UNDER_WAY.items():
        if (checkout.git_dir / name).exists():
            return reason
    return "" if _is_moved_already(checkout, new) else _reason_in_files(checkout, old, new)


def _reason_in_files(checkout: Checkout, old: str, new: str) -> str:
    dirty = _dirty_files(checkout)
    if dirty:
        return f"it has uncommitted changes ({_some(dirty)})"
    changes = git(
        "diff-tree", "-r", "--no-renames", "--raw", "-z", old, new, git_dir=checkout.git_dir
    ).stdout.split(b"\0")
    pairs = list(zip(changes[::2], changes[1::2], strict=False))
    in_the_way = [path for meta, path in pairs if meta.endswith(b" A") and _lies_at(checkout, path)]
    if in_the_way:
        return f"files that are not in git would be overwritten ({_some(in_the_way)})"
    filtered = _filtered(checkout, [path for _, path in pairs])
    if filtered:
        return f"changed files need a filter such as Git LFS ({_some(filtered)})"
    return ""


def advance(checkout: Checkout, *, old: str, new: str) -> None:
    """Bring the files and the index of a clean `checkout` from `old` to `new`.

    Git refuses, and nothing is changed, if a file that differs has been touched since the check.
    The branch is not moved: do that next. Killed in between, the checkout shows the new files as
    staged, and the next delivery goes on from there.
    """
    if _is_moved_already(checkout, new):
        return
    # A file that was only touched, or a whole copied checkout, looks changed until git compares.
    _in(checkout, "update-index", "-q", "--refresh", ok=(0, 1))
    _in(checkout, "read-tree", "-m", "-u", old, new)


def _is_moved_already(checkout: Checkout, new: str) -> bool:
    """Whether index and files are exactly the commit `new`: an earlier delivery was interrupted."""
    question = ("--quiet", "--ignore-submodules=all")
    staged = _in(checkout, "diff-index", "--cached", *question, new, "--", ok=(0, 1))
    return staged == 0 and _in(checkout, "diff-files", *question, ok=(0, 1)) == 0


def _dirty_files(checkout: Checkout) -> list[bytes]:
    """Files that differ from the last commit, in the index or on disk."""
    answer = git(
        "status", "--porcelain=v1", "-z", "--untracked-files=no", "--ignore-submodules=all",
        "--no-renames",
        git_dir=checkout.git_dir, work_tree=checkout.path,
        configuration=_without_filters(checkout), timeout_seconds=CHECKOUT_TIMEOUT_SECONDS,
    )  # fmt: skip
    return [line[3:] for line in answer.stdout.split(b"\0") if line]


def _lies_at(checkout: Checkout, path: bytes) -> bool:
    """Whether something is at `path`, or a file where one of its folders has to be."""
    place = checkout.path
    *folders, name = os.fsdecode(path).split("/")
    for folder in folders:
        place /= folder
        if place.is_symlink() or place.is_file():
            return True
    return os.path.lexists(place / name)


def _filtered(checkout: Checkout, paths: list[bytes]) -> list[bytes]:
    """Those of `paths` that the attributes want to go through a filter."""
    if not paths:
        return []
    answer = git(
        "check-attr", "-z", "--stdin", "filter",
        git_dir=checkout.git_dir, work_tree=checkout.path,
        input=b"\0".join(paths) + b"\0",
    ).stdout.split(b"\0")  # fmt: skip
    triples = zip(answer[::3], answer[2::3], strict=False)
    return [path for path, value in triples if value not in _UNFILTERED]


def _without_filters(checkout: Checkout) -> dict[str, str]:
    """Configuration that takes every filter of the repository's own configuration out of force."""
    answer = git(
        "config", "--name-only", "-z", "--get-regexp", r"^filter\.",
        git_dir=checkout.git_dir, ok=(0, 1),
    )  # fmt: skip
    names = {
        key.rpartition(".")[0]
        for key in os.fsdecode(answer.stdout).split("\0")
        if key.count(".") > 1
    }
    off = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"{name}.{key}": value for name in sorted(names) for key, value in off.items()}


def _in(checkout: Checkout, *arguments: str, ok: tuple[int, ...] = (0,)) -> int:
    return git(
        *arguments,
        git_dir=checkout.git_dir,
        work_tree=checkout.path,
        ok=ok,
        configuration=_without_filters(checkout),
        timeout_seconds=CHECKOUT_TIMEOUT_SECONDS,
    ).exit_code


def _some(paths: list[bytes]) -> str:
    """A few of `paths` for a message."""
    shown = ", ".join(readable_path(path) for path in paths[:3])
    return shown if len(paths) <= 3 else f"{shown} and {len(paths) - 3} more"  # noqa: PLR2004
