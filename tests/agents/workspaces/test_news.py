"""What is fetched although nothing is asked of git: everything new, and nothing where nothing is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agents.workspaces.hub import SOURCE_REFS, fetch_hub
from agents.workspaces.news import has_nothing_new
from tests.agents.workspaces.conftest import Place
from tests.agents.workspaces.repos import commit_files, run_git


def is_quiet(place: Place) -> bool:
    return has_nothing_new(place.source / ".git", place.hub, source_refs=SOURCE_REFS)


def test_where_nothing_is_new_no_process_is_started(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(place.source, "branch", "feature/x")
    run_git(place.source, "tag", "v1")
    place.fetch()
    run_git(place.source, "pack-refs", "--all")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert fetch_hub(place.hub, str(place.source), "main").source_sha


def amend(source: Path) -> None:
    run_git(source, "commit", "--quiet", "--amend", "--message", "another")


def move_tag(source: Path) -> None:
    commit_files(source, {"new.txt": "new\n"})
    run_git(source, "branch", "--force", "kept")
    run_git(source, "reset", "--quiet", "--hard", "HEAD~1")
    run_git(source, "tag", "--force", "v1", "kept")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a commit": lambda source: commit_files(source, {"new.txt": "new\n"}),
    "another commit in its place": amend,
    "a branch": lambda source: run_git(source, "branch", "topic"),
    "a branch that is gone": lambda source: run_git(source, "branch", "-D", "kept"),
    "a tag": lambda source: run_git(source, "tag", "v2"),
    "a tag with a message": lambda source: run_git(source, "tag", "-a", "v2", "-m", "two"),
    "a tag that has moved": move_tag,
    "a tag that is gone": lambda source: run_git(source, "tag", "-d", "v1"),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_new_is_fetched(place: Place, what: str, *, packed: bool) -> None:
    run_git(place.source, "branch", "kept")
    run_git(place.source, "tag", "v1")
    place.fetch()
    assert is_quiet(place)
    CHANGES[what](place.source)
    if packed:
        run_git(place.source, "pack-refs", "--all")
    assert not is_quiet(place)
    place.fetch()
    assert is_quiet(place)
    wanted = run_git(place.source, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)")
    names = "--format=%(refname:lstrip={}) %(objectname)"
    branches = run_git(place.hub, "for-each-ref", names.format(3), SOURCE_REFS)
    tags = run_git(place.hub, "for-each-ref", names.format(2), "refs/tags")
    assert "\n".join(filter(None, [branches, tags])) == wanted


def test_what_is_not_simply_a_file_is_left_to_git(place: Place, tmp_path: Path) -> None:
    place.fetch()
    git_dir = place.source / ".git"
    linked = tmp_path / "linked"
    run_git(place.source, "worktree", "add", "--quiet", "-b", "side", str(linked))
    place.fetch()
    assert is_quiet(place)
    assert not has_nothing_new(linked / ".git", place.hub, source_refs=SOURCE_REFS)
    run_git(place.source, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    assert not is_quiet(place)
    (git_dir / "refs/heads/alias").unlink()
    assert is_quiet(place)
    (git_dir / "refs/heads/more").symlink_to(git_dir / "refs/tags")
    assert not is_quiet(place)
    (git_dir / "refs/heads/more").unlink()
    (git_dir / "shallow").write_text(run_git(place.source, "rev-parse", "main") + "\n")
    assert not is_quiet(place)
