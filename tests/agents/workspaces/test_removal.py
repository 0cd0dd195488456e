"""Removing worktrees: nothing of an agent's work is deleted before it is in the hub."""

import os
from pathlib import Path

import pytest

from agents.workspaces import (
    LeftoverKind,
    WorkspaceError,
    Worktree,
    commit_all,
    leftovers,
    private_git,
    remove_remains,
    remove_worktree,
)
from agents.workspaces.records import mark_for_removal
from tests.agents.workspaces.conftest import Place
from tests.agents.workspaces.repos import commit_files, run_git, write_files


def kept(place: Place) -> list[str]:
    return run_git(place.hub, "for-each-ref", "--format=%(refname)", "refs/kept").splitlines()


def agent_git(worktree: Worktree, *arguments: str) -> str:
    """Git as an agent runs it in a sandbox, where the private folders cover the clone's."""
    private = private_git(worktree)
    covered = worktree.private / "covered"
    if not covered.exists():
        covered.mkdir()
        run_git(covered, "init", "--quiet", "--bare", "--template=", ".")
        (covered / "refs").rename(covered / "refs-unused")
        (covered / "refs").symlink_to(private.refs)
        (covered / "logs").symlink_to(private.logs)
        (covered / "HEAD").write_text(f"ref: refs/heads/{worktree.branch}\n")
        run_git(covered, "config", "core.logAllRefUpdates", "true")
    variables = {
        "GIT_DIR": str(covered),
        "GIT_WORK_TREE": str(worktree.path),
        "GIT_OBJECT_DIRECTORY": str(private.objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(private.common / "objects"),
    }
    return run_git(worktree.path, *arguments, variables=variables)


def test_work_that_was_taken_over_needs_no_other_ref(place: Place) -> None:
    worktree = place.start()
    place.hand_in(worktree, {"x.txt": "x\n"})

    remove_worktree(worktree, place.hub)

    assert kept(place) == []
    assert not worktree.path.exists()
    assert not worktree.private.exists()
    assert not worktree.entry.exists()
    assert leftovers(place.root, place.clone) == []
    assert "refs/runs" not in run_git(place.clone, "for-each-ref")


def test_an_unchanged_worktree_is_simply_removed(place: Place) -> None:
    worktree = place.start()
    remove_worktree(worktree, place.hub)
    assert kept(place) == []
    assert not worktree.path.exists()


def test_unsaved_and_unhanded_work_is_kept_in_the_hub(place: Place) -> None:
    worktree = place.start()
    write_files(worktree.path, {"saved.txt": "1\n"})
    commit_all(worktree, "Turn")
    write_files(worktree.path, {"unsaved.txt": "2\n", ".env": "KEY=1"})

    remove_worktree(worktree, place.hub)

    (ref,) = kept(place)
    assert ref.startswith("refs/kept/KEY-1-1-1/")
    names = run_git(place.hub, "ls-tree", "--name-only", ref).split()
    assert names == ["README.md", "saved.txt", "src", "unsaved.txt"]


def test_a_worktree_with_something_git_cannot_take_is_kept(place: Place) -> None:
    worktree = place.start()
    (worktree.path / "README.md").unlink()
    os.mkfifo(worktree.path / "README.md")
    with pytest.raises(WorkspaceError, match=r"could not be saved: README\.md"):
        remove_worktree(worktree, place.hub)
    assert worktree.path.exists()


def test_commits_and_stashes_of_the_agent_are_kept(place: Place) -> None:
    worktree = place.start()
    agent_git(worktree, "read-tree", "HEAD")
    for number in (1, 2):
        write_files(worktree.path, {"README.md": f"stashed {number}\n"})
        agent_git(worktree, "stash")
    write_files(worktree.path, {"README.md": "committed\n"})
    agent_git(worktree, "commit", "--quiet", "--all", "--message", "Mine")
    agent_git(worktree, "checkout", "--quiet", "-b", "elsewhere", worktree.base_sha)
    assert (worktree.path / "README.md").read_text() == "hello\n"

    remove_worktree(worktree, place.hub)

    texts = {run_git(place.hub, "show", f"{ref}:README.md") for ref in kept(place)}
    assert texts == {"committed", "stashed 1", "stashed 2"}
    run_git(place.hub, "fsck", "--no-progress")


def test_commits_of_the_agent_that_cannot_be_read_keep_the_worktree(place: Place) -> None:
    worktree = place.start()
    (private_git(worktree).refs / "heads/broken").write_text("1" * 40 + "\n")
    with pytest.raises(WorkspaceError) as caught:
        remove_worktree(worktree, place.hub)
    assert caught.value.code == "unsaved"
    assert worktree.path.exists()


def test_refs_that_are_links_or_nonsense_are_not_followed(place: Place, tmp_path: Path) -> None:
    worktree = place.start()
    heads = private_git(worktree).refs / "heads"
    (tmp_path / "other").write_text("2" * 40 + "\n")
    (heads / "link").symlink_to(tmp_path / "other")
    (heads / "folder").symlink_to("/")
    (heads / "text").write_text("hello\n")
    os.mkfifo(heads / "pipe")
    remove_worktree(worktree, place.hub)
    assert kept(place) == []


def test_removing_one_leaves_its_siblings_whole(place: Place) -> None:
    first, second = place.start("KEY-1-1"), place.start("KEY-2-1")
    write_files(second.path, {"x.txt": "x\n"})
    place.hand_in(first, {"y.txt": "y\n"})

    remove_worktree(first, place.hub)

    assert (second.path / "x.txt").read_text() == "x\n"
    assert run_git(second.path, "status", "--porcelain") == "?? x.txt"
    assert commit_all(second, "Turn").has_changed
    run_git(place.clone, "fsck", "--no-progress", "--connectivity-only")


def test_a_removal_that_was_killed_never_saves_the_rest_as_deletions(place: Place) -> None:
    worktree = place.start()
    mark_for_removal(worktree)
    (worktree.path / "README.md").unlink()

    (item,) = leftovers(place.root, place.clone)

    assert item.kind is LeftoverKind.REMAINS
    remove_remains(place.clone, item.path)
    assert leftovers(place.root, place.clone) == []
    assert kept(place) == []


def test_read_only_folders_are_removed_too(place: Place) -> None:
    worktree = place.start()
    write_files(worktree.path, {".gitignore": "cache/\n", "cache/deep/file": "x"})
    (worktree.path / "cache/deep").chmod(0o500)
    (worktree.path / "cache").chmod(0o000)
    remove_worktree(worktree, place.hub)
    assert not worktree.path.exists()


def test_a_folder_that_was_deleted_by_hand_is_cleaned_up_with_its_work_kept(place: Place) -> None:
    worktree = place.start()
    write_files(worktree.path, {"x.txt": "x\n"})
    commit_all(worktree, "Turn")
    worktree.path.rename(place.root.with_name("moved"))

    remove_worktree(worktree, place.hub)

    (ref,) = kept(place)
    assert run_git(place.hub, "show", f"{ref}:x.txt") == "x"
    assert leftovers(place.root, place.clone) == []


def test_leftovers_say_how_much_room_they_take(place: Place) -> None:
    worktree = place.start()
    (worktree.path / "big").write_bytes(b"x" * 3_000_000)
    commit_files(worktree.path, {})
    (item,) = leftovers(place.root, place.clone)
    assert 3_000_000 < item.size_bytes < 4_000_000
    assert item.worktree == worktree
    assert item.changed_at > 0
