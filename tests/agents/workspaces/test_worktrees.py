"""Worktrees: many at once, after crashes, on odd repositories."""

import json
import os
import threading
from pathlib import Path

import pytest

from agents.workspaces import (
    WorkspaceError,
    add_worktree,
    check_out,
    commit_all,
    diff,
    find_worktree,
    leftovers,
    remove_remains,
)
from tests.agents.workspaces.conftest import Place
from tests.agents.workspaces.repos import commit_files, make_repository, run_git, set_traps


def test_a_worktree_holds_the_files_of_its_base_on_a_branch_of_its_own(place: Place) -> None:
    worktree = place.start()

    assert (worktree.path / "src/app.py").read_text() == "print(1)\n"
    assert run_git(worktree.path, "branch", "--show-current") == "cards/KEY-1-1"
    assert run_git(worktree.path, "status", "--porcelain") == ""
    assert run_git(worktree.path, "rev-parse", "HEAD") == worktree.base_sha
    assert str(worktree.path) in run_git(place.clone, "worktree", "list", "--porcelain")


def test_eight_worktrees_can_be_made_at_once(place: Place) -> None:
    made = []
    errors = []

    def start(number: int) -> None:
        try:
            made.append(place.start(f"KEY-{number}-1"))
        except WorkspaceError as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert len({worktree.path for worktree in made}) == 8
    assert all((worktree.path / "README.md").exists() for worktree in made)
    assert all(run_git(worktree.path, "status", "--porcelain") == "" for worktree in made)


def test_asking_again_for_a_worktree_returns_it_with_its_files(place: Place) -> None:
    worktree = place.start()
    (worktree.path / "README.md").write_text("mine\n")

    assert place.start() == worktree
    assert (worktree.path / "README.md").read_text() == "mine\n"
    assert find_worktree(place.root, "cards/KEY-1-1") == worktree
    assert find_worktree(place.root, "cards/KEY-2-1") is None


def test_a_second_worktree_of_one_branch_gets_a_name_of_its_own(place: Place) -> None:
    first = place.start()
    commit_all(first, "Nothing")

    second = add_worktree(
        place.clone,
        place.hub,
        place.root / "KEY-1-1-2",
        branch="cards/KEY-1-1",
        base_sha=first.base_sha,
    )

    assert second.branch == "cards/KEY-1-1-2"
    assert find_worktree(place.root, "cards/KEY-1-1") == first


def test_what_a_killed_creation_left_is_replaced(place: Place) -> None:
    worktree = place.start()
    (worktree.private / "worktree.json").unlink()  # the last thing that is written
    (worktree.path / "src/app.py").unlink()
    (worktree.entry / "locked").write_text("initializing\n")

    again = place.start()

    assert (again.path / "src/app.py").exists()
    assert (again.path, again.branch) == (worktree.path, worktree.branch)


def test_a_folder_deleted_by_hand_comes_back_with_what_was_saved(place: Place) -> None:
    worktree = place.start()
    (worktree.path / "new.txt").write_text("work\n")
    saved = commit_all(worktree, "Work")
    worktree.path.rename(place.root / "moved-away")

    again = place.start()

    assert (again.path / "new.txt").read_text() == "work\n"
    assert again.base_sha == saved.sha


def test_a_foreign_folder_in_the_way_is_left_alone(place: Place) -> None:
    foreign = place.root / "KEY-1-1-1"
    foreign.mkdir(parents=True)
    (foreign / "note.txt").write_text("mine\n")

    worktree = place.start()

    assert worktree.path == place.root / "KEY-1-1-1-2"
    assert (foreign / "note.txt").read_text() == "mine\n"


def test_a_branch_may_have_more_than_one_slash(place: Place) -> None:
    worktree = place.start(branch="cards/feature/KEY-1-1")

    assert run_git(worktree.path, "branch", "--show-current") == "cards/feature/KEY-1-1"


def test_a_name_that_git_refuses_is_refused_before_anything_is_made(place: Place) -> None:
    for name in ("-x", "a..b", "a b", "x.lock", "@{-1}"):
        with pytest.raises(WorkspaceError) as caught:
            place.start(branch=name)
        assert caught.value.code == "bad_branch"
    assert not place.root.exists()


def test_an_unknown_base_leaves_nothing_behind(place: Place) -> None:
    with pytest.raises(WorkspaceError):
        place.start(base_sha="1" * 40)
    assert leftovers(place.root, place.clone) == []
    assert run_git(place.clone, "worktree", "list").count("\n") == 0


def test_filters_and_hooks_of_the_repository_do_not_run_at_checkout(
    empty_place: Place, tmp_path: Path
) -> None:
    marker = tmp_path / "ran"
    make_repository(empty_place.source, {"x.bin": "raw\n", ".gitattributes": "*.bin filter=trap\n"})
    set_traps(empty_place.source / ".git", marker)
    empty_place.fetch()
    worktree = empty_place.start()
    (worktree.path / "x.bin").write_text("changed\n")

    assert commit_all(worktree, "Work").has_changed
    assert not marker.exists()
    assert not (empty_place.hub / "hooks").exists()


def test_a_changed_configuration_of_the_clone_is_put_back(place: Place) -> None:
    place.start()
    run_git(place.clone, "config", "core.fsmonitor", "touch /tmp/never")
    (place.clone / "info/attributes").write_text("* filter=x\n")

    place.start("KEY-2-1")

    assert "touch" not in (place.clone / "config").read_text()
    assert (place.clone / "info/attributes").read_text() == "* -filter\n"


def test_files_with_odd_names_and_kinds_arrive(empty_place: Place) -> None:
    source = make_repository(empty_place.source, {"naïve/日本.txt": "a\n", "line\nbreak": "b\n"})
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("README.md")
    (source / os.fsdecode(b"latin\xe9.txt")).write_text("c\n")
    commit_files(source, {})
    empty_place.fetch()

    worktree = empty_place.start()

    assert (worktree.path / "naïve/日本.txt").read_text() == "a\n"
    assert (worktree.path / "line\nbreak").read_text() == "b\n"
    assert (worktree.path / os.fsdecode(b"latin\xe9.txt")).read_text() == "c\n"
    assert os.access(worktree.path / "run.sh", os.X_OK)
    assert (worktree.path / "link").readlink() == Path("README.md")
    assert not commit_all(worktree, "Nothing").has_changed


def test_a_history_that_starts_empty_gives_a_worktree_that_saves_files(empty_place: Place) -> None:
    empty_place.source.mkdir()
    run_git(empty_place.source, "init", "--quiet", "--initial-branch=main")
    run_git(empty_place.source, "commit", "--quiet", "--allow-empty", "--message", "Start")
    empty_place.fetch()
    worktree = empty_place.start()
    assert not commit_all(worktree, "Nothing").has_changed
    (worktree.path / "first.txt").write_text("x\n")

    saved = commit_all(worktree, "First file")

    changed = diff(worktree.git_dir, worktree.base_sha, saved.sha)
    assert [(file.status, file.path) for file in changed.files] == [("A", "first.txt")]


def test_a_submodule_is_an_empty_folder_and_stays_recorded(
    empty_place: Place, tmp_path: Path
) -> None:
    library = make_repository(tmp_path / "library")
    make_repository(empty_place.source)
    run_git(empty_place.source, "submodule", "--quiet", "add", str(library), "lib")
    commit_files(empty_place.source, {})
    empty_place.fetch()
    worktree = empty_place.start()

    assert list((worktree.path / "lib").iterdir()) == []
    assert not commit_all(worktree, "Nothing").has_changed
    (worktree.path / "lib/file.txt").write_text("x\n")
    assert commit_all(worktree, "Nothing").skipped == ("lib: files in a submodule",)


def test_checks_run_on_a_fresh_worktree_each_time(place: Place) -> None:
    base = run_git(place.hub, "rev-parse", "main")
    path = place.root / "checks-KEY-1"
    first = check_out(place.clone, place.hub, path, base)
    (first.path / "built.txt").write_text("x\n")

    second = check_out(place.clone, place.hub, path, base)

    assert second.path == path
    assert not (path / "built.txt").exists()
    assert second.branch == ""


def test_checks_never_replace_the_work_of_a_card(place: Place) -> None:
    worktree = place.start()
    with pytest.raises(WorkspaceError, match="in use for something else"):
        check_out(place.clone, place.hub, worktree.path, worktree.base_sha)
    assert worktree.path.exists()


def test_remains_are_told_from_work_and_from_foreign_folders(place: Place) -> None:
    worktree = place.start("KEY-1-1")
    unfinished = place.start("KEY-2-1")
    (unfinished.private / "worktree.json").unlink()
    (place.root / "foreign").mkdir()

    found = {item.path.name: item.kind.value for item in leftovers(place.root, place.clone)}

    assert found == {"KEY-1-1-1": "worktree", "KEY-2-1-1": "remains", "foreign": "foreign"}
    remove_remains(place.clone, unfinished.path)
    assert not unfinished.path.exists()
    for path in (worktree.path, place.root / "foreign"):
        with pytest.raises(WorkspaceError):
            remove_remains(place.clone, path)
        assert path.exists()


def test_the_record_names_what_a_later_process_needs(place: Place) -> None:
    worktree = place.start()
    record = json.loads((worktree.private / "worktree.json").read_text())
    assert record["branch"] == "cards/KEY-1-1"
    assert Path(record["entry"]).is_dir()
