"""What a worktree is, and the record by which it is known: written last when one is made, and renamed first
when one goes, so that nothing half made or half removed is ever taken for an agent's work.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PRIVATE = ".private"
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


def find_worktree(root: Path, branch: str) -> Worktree | None:
    """The worktree below `root` (the folder of a project's worktrees) that is on `branch`.

    A run that continues on the same machine finds its files there, also those never committed.
    """
    return next((tree for tree in recorded(root) if tree.branch == branch), None)


def recorded(root: Path) -> Iterator[Worktree]:
    """All finished worktrees below `root` whose folders exist."""
    for private in sorted((root / PRIVATE).glob("*")):
        worktree = find_record(root / private.name)
        if worktree is not None and worktree.path.is_dir():
            yield worktree


def mark_for_removal(worktree: Worktree) -> None:
    """From now on nothing of `worktree` is anybody's work, also if deleting it is interrupted."""
    record = worktree.private / _RECORD
    if record.exists():
        record.rename(worktree.private / _BEING_REMOVED)


def is_unfinished(path: Path) -> bool:
    """Whether `path` is what an interrupted creation or removal left."""
    return private_of(path).exists() and find_record(path) is None


def private_of(path: Path) -> Path:
    """Return the folder of the worktree at `path` for what must not be in the clone."""
    return path.parent / PRIVATE / path.name


def write_record(worktree: Worktree) -> None:
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
