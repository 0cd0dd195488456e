"""A user's repository, a project's hub and a place for worktrees, all real."""

import shutil
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


def place_in(folder: Path) -> Place:
    """The places of a project below `folder`."""
    trees = folder / "data/trees"
    return Place(folder / "source", folder / "data/hub.git", trees / "clone.git", trees)


@pytest.fixture
def empty_place(tmp_path: Path) -> Place:
    """A place without hub."""
    return place_in(tmp_path)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A small repository on main, fetched; to be copied."""
    template = place_in(tmp_path_factory.mktemp("template"))
    make_repository(template.source)
    template.fetch()
    return template


@pytest.fixture
def place(empty_place: Place, template: Place) -> Place:
    """A place with a small repository on main, fetched."""
    shutil.copytree(template.source, empty_place.source, symlinks=True)
    shutil.copytree(template.hub, empty_place.hub, symlinks=True)
    run_git(empty_place.source, "status")  # a copy has other times than its index says
    return empty_place
