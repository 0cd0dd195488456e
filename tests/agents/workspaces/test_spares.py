"""A spare working tree: made ahead, taken once, and what a run finds in it is its own commit."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from agents.workspaces import WorkspaceError, Worktree, commit_all
from agents.workspaces import spares as spares_module
from agents.workspaces.records import find_record
from agents.workspaces.spares import UNUSED_SECONDS, drop_unused, prepare
from agents.workspaces.worktrees import delete_worktree, ensure_clone
from tests.agents.workspaces.conftest import Place
from tests.agents.workspaces.repos import run_git, write_files


def have_spare(place: Place) -> str:
    """A spare of what the hub's main is now; return its commit."""
    sha = run_git(place.hub, "rev-parse", "main")
    ensure_clone(place.clone, place.hub)
    prepare(place.clone, place.root, sha)
    return sha


def change_source(place: Place, files: dict[str, str]) -> None:
    write_files(place.source, files)
    run_git(place.source, "add", "-A")
    run_git(place.source, "commit", "-qm", "Change")
    place.fetch()


def spare_inode(place: Place) -> int:
    return (place.root / ".spare" / "ready" / "tree").stat().st_ino


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def status(worktree: Worktree) -> str:
    return run_git(worktree.path, "status", "--porcelain", "--untracked-files=all")


def test_a_worktree_takes_the_files_of_the_spare(place: Place) -> None:
    have_spare(place)
    spare = spare_inode(place)
    worktree = place.start()
    assert worktree.path.stat().st_ino == spare
    assert find_record(worktree.path) == worktree
    assert status(worktree) == ""
    assert list((place.root / ".spare").glob("*")) == [place.root / ".spare" / "lock"]
    other = place.start("KEY-2-1")  # there is none for it
    assert status(other) == ""
    assert names_in(worktree.path) == names_in(other.path)


def test_a_spare_of_an_older_commit_becomes_what_the_run_needs(place: Place) -> None:
    change_source(place, {"stays.txt": "1\n", "goes.txt": "1\n", "changes.txt": "1\n"})
    have_spare(place)
    spare = spare_inode(place)
    (place.source / "goes.txt").unlink()
    change_source(place, {"changes.txt": "2\n", "deep/new.txt": "2\n"})
    worktree = place.start()
    assert worktree.path.stat().st_ino == spare
    assert status(worktree) == ""
    assert (worktree.path / "changes.txt").read_text() == "2\n"
    assert (worktree.path / "deep" / "new.txt").read_text() == "2\n"
    assert not (worktree.path / "goes.txt").exists()


def test_a_spare_is_not_used_where_the_rules_for_writing_files_differ(place: Place) -> None:
    change_source(place, {"a.txt": "one\ntwo\n"})
    have_spare(place)
    spare = spare_inode(place)
    change_source(place, {".gitattributes": "*.txt text eol=crlf\n"})
    worktree = place.start()
    assert worktree.path.stat().st_ino != spare
    assert (worktree.path / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert status(worktree) == ""


def test_a_spare_follows_the_target(place: Place) -> None:
    have_spare(place)
    spare = spare_inode(place)
    change_source(place, {"new.txt": "1\n"})
    sha = have_spare(place)
    assert spare_inode(place) == spare
    assert (place.root / ".spare" / "ready" / "sha").read_text() == sha
    assert (place.root / ".spare" / "ready" / "tree" / "new.txt").read_text() == "1\n"


def test_what_was_changed_after_the_spare_was_made_is_seen(place: Place) -> None:
    """The stored times of the spare's files must not hide a change of the same size."""
    change_source(place, {"a.txt": "one\n"})
    have_spare(place)
    worktree = place.start()
    (worktree.path / "a.txt").write_text("two\n")
    saved = commit_all(worktree, "Work")
    assert run_git(place.clone, "show", f"{saved.sha}:a.txt") == "two"


def test_a_spare_is_taken_once_by_many_at_the_same_time(place: Place) -> None:
    have_spare(place)
    spare = spare_inode(place)
    made: list[Worktree] = []
    threads = [
        threading.Thread(target=lambda n=number: made.append(place.start(f"KEY-{n}-1")))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [tree.path.stat().st_ino for tree in made].count(spare) == 1
    assert [status(tree) for tree in made] == [""] * 4


@pytest.mark.parametrize("moment", ["rename", "copy2"])
def test_a_worktree_that_was_interrupted_while_it_took_the_spare_is_made_anew(
    place: Place, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_spare(place)
    with monkeypatch.context() as patch:
        if moment == "copy2":
            patch.setattr(shutil, "copy2", _killed)
        else:
            real = Path.rename
            patch.setattr(
                Path, "rename", lambda a, b: _killed() if a.name == "tree" else real(a, b)
            )
        with pytest.raises(KeyboardInterrupt):
            place.start()
    worktree = place.start()
    assert worktree.path.name == "KEY-1-1-1"
    assert status(worktree) == ""


def _killed(*_arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_spare_that_could_not_be_made_leaves_nothing(place: Place) -> None:
    ensure_clone(place.clone, place.hub)
    with pytest.raises(WorkspaceError):
        prepare(place.clone, place.root, "0" * 39 + "1")
    stop = threading.Event()
    stop.set()
    with pytest.raises(WorkspaceError):
        prepare(place.clone, place.root, run_git(place.hub, "rev-parse", "main"), cancel=stop)
    assert [path.name for path in (place.root / ".spare").iterdir()] == ["lock"]


def test_remains_of_a_killed_process_go_and_fresh_ones_stay(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.root / ".spare"
    (folder / "making-1" / "tree").mkdir(parents=True)
    have_spare(place)
    assert (folder / "making-1").exists()
    monkeypatch.setattr(spares_module, "_HALF_DONE_SECONDS", -1.0)
    have_spare(place)
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "ready"]


def test_a_full_disk_gets_no_spare(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spares_module, "LEAST_FREE", 1.1)
    have_spare(place)
    assert not (place.root / ".spare" / "ready").exists()


def test_a_spare_that_nobody_needs_goes(place: Place) -> None:
    drop_unused(place.root)  # there is none yet
    have_spare(place)
    drop_unused(place.root)
    assert (place.root / ".spare" / "ready").exists()
    old = (place.root / ".spare" / "lock").stat().st_mtime - UNUSED_SECONDS - 60
    os.utime(place.root / ".spare" / "lock", (old, old))
    drop_unused(place.root)
    assert not (place.root / ".spare").exists()
    worktree = place.start()
    delete_worktree(place.clone, worktree.path)
