"""Merging in the hub, with the checks in between."""

import pytest

from agents.workspaces import (
    Author,
    Candidate,
    Conflict,
    WorkspaceError,
    check_out,
    land_merge,
    prepare_merge,
)
from tests.agents.workspaces.conftest import Place
from tests.agents.workspaces.repos import ALICE, make_repository, run_git


def prepare(place: Place, branch: str) -> Candidate | Conflict:
    return prepare_merge(
        place.hub, "main", branch, message=f"KEY-1 Title\n\n{branch}", author=ALICE
    )


def test_a_candidate_can_be_checked_out_before_the_target_moves(place: Place) -> None:
    base = place.fetch()
    worktree = place.start()
    sha = place.hand_in(worktree, {"new.txt": "x\n"})

    candidate = prepare(place, worktree.branch)

    assert isinstance(candidate, Candidate)
    assert run_git(place.hub, "rev-parse", "main") == base
    checks = check_out(place.clone, place.hub, place.root / "checks-KEY-1", candidate.sha)
    assert (checks.path / "new.txt").read_text() == "x\n"
    assert land_merge(place.hub, candidate)
    assert run_git(place.hub, "rev-parse", "main") == candidate.sha
    parents = run_git(place.hub, "log", "-1", "--format=%P|%an|%ae|%s", "main")
    assert parents == f"{base} {sha}|Alice|alice@example.org|KEY-1 Title"


def test_two_cards_that_touch_different_files_are_both_merged(place: Place) -> None:
    first, second = place.start("KEY-1-1"), place.start("KEY-2-1")
    place.hand_in(first, {"a.txt": "a\n"})
    place.hand_in(second, {"b.txt": "b\n"})
    place.merge(first.branch)
    sha = place.merge(second.branch)
    assert run_git(place.hub, "ls-tree", "--name-only", sha).split() == [
        "README.md", "a.txt", "b.txt", "src",
    ]  # fmt: skip


def test_a_conflict_names_the_files_and_changes_nothing(place: Place) -> None:
    first, second = place.start("KEY-1-1"), place.start("KEY-2-1")
    place.hand_in(first, {"README.md": "one\n", "naïve\n.txt": "1\n"})
    place.hand_in(second, {"README.md": "two\n", "naïve\n.txt": "2\n", "fine.txt": "x\n"})
    sha = place.merge(first.branch)

    assert prepare(place, second.branch) == Conflict(("README.md", "naïve\\n.txt"))
    assert run_git(place.hub, "rev-parse", "main") == sha


def test_a_merge_does_not_land_on_a_target_that_has_moved(place: Place) -> None:
    first, second = place.start("KEY-1-1"), place.start("KEY-2-1")
    place.hand_in(first, {"a.txt": "a\n"})
    place.hand_in(second, {"b.txt": "b\n"})
    late = prepare(place, second.branch)
    sha = place.merge(first.branch)

    assert isinstance(late, Candidate)
    assert not land_merge(place.hub, late)
    assert run_git(place.hub, "rev-parse", "main") == sha
    place.merge(second.branch)


def test_a_branch_that_the_target_holds_already_makes_no_commit(place: Place) -> None:
    worktree = place.start()
    place.hand_in(worktree, {})
    candidate = prepare(place, worktree.branch)
    assert isinstance(candidate, Candidate)
    assert candidate.sha == candidate.target_sha == place.fetch()
    assert land_merge(place.hub, candidate)


def test_what_does_not_exist_or_does_not_belong_is_refused(place: Place) -> None:
    with pytest.raises(WorkspaceError) as caught:
        prepare(place, "cards/none")
    assert caught.value.code == "no_such_branch"
    other = make_repository(place.source.with_name("other"), {"x": "y"})
    run_git(place.hub, "fetch", "--quiet", str(other), "main:refs/heads/cards/other")
    with pytest.raises(WorkspaceError) as caught:
        prepare(place, "cards/other")
    assert caught.value.code == "unrelated"


@pytest.mark.parametrize("name", ["", "<>\n", "  ", "A <x> \0B"])
def test_any_name_of_a_person_can_sign_a_merge(place: Place, name: str) -> None:
    worktree = place.start()
    place.hand_in(worktree, {"x": "y"})
    author = Author(name, "a@b")
    candidate = prepare_merge(place.hub, "main", worktree.branch, message="", author=author)
    assert isinstance(candidate, Candidate)
