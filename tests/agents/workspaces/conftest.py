"""A user's repository, a project's hub and a place for worktrees, all real."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.workspaces import (
    Candidate,
    Worktree,
    add_worktree,
    commit_all,
    fetch_hub,
    land_merge,
    prepare_merge,
    take_over,
)
from tests.agents.workspaces.repos import ALICE, make_repository, run_git, write_files


@dataclass
class Place:
    """Where one project's repositories are."""

    source: Path
    hub: Path
    clone: Path
    root: Path

    def fetch(self) -> str:
        """Bring the hub up to date; return the target's sha."""
        return fetch_hub(self.hub, str(self.source), "main").target_sha

    def start(self, name: str = "KEY-1-1", **options: str) -> Worktree:
        """A worktree for the card's attempt `name`, from the hub's target."""
        base = run_git(self.hub, "rev-parse", "main")
        arguments = {"branch": f"cards/{name}", "base_sha": base, **options}
        return add_worktree(self.clone, self.hub, self.root / f"{name}-1", **arguments)

    def hand_in(self, worktree: Worktree, files: dict[str, str]) -> str:
        """Work, save, and take over into the hub; return the sha."""
        write_files(worktree.path, files)
        saved = commit_all(worktree, "Work")
        return take_over(self.hub, self.clone, sha=saved.sha, branch=worktree.branch)

    def merge(self, branch: str) -> str:
        """Merge a card's branch into the hub's main; return the sha."""
        candidate = prepare_merge(self.hub, "main", branch, message=f"Merge {branch}", author=ALICE)
        assert isinstance(candidate, Candidate)
        assert land_merge(self.hub, candidate)
        return candidate.sha

    def merge_work(self, name: str, files: dict[str, str]) -> str:
        """All the way of one card up to the hub's main."""
        worktree = self.start(name)
        self.hand_in(worktree, files)
        return self.merge(worktree.branch)


@pytest.fixture
def empty_place(tmp_path: Path) -> Place:
    """A place without hub."""
    data = tmp_path / "data"
    return Place(tmp_path / "source", data / "hub", data / "clone", data / "trees")


@pytest.fixture
def place(empty_place: Place) -> Place:
    """A place with a small repository on main, fetched."""
    make_repository(empty_place.source)
    empty_place.fetch()
    return empty_place
