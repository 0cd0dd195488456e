"""Local files come into a worktree as copies, for their owner only, and never into a commit."""

import os
import stat

import pytest

from agents.harness.redaction import Redactor, Secret
from agents.workspaces import commit_all
from agents.workspaces.copies import MAX_BYTES, copy_files
from tests.agents.workspaces.conftest import Place
from tests.agents.workspaces.repos import run_git, write_files


def test_a_local_file_is_copied_for_its_owner_only_and_the_original_stays(place: Place) -> None:
    write_files(place.source, {".env": "A=1\n", "conf/local.ini": "b=2\n"})
    worktree = place.start()
    assert copy_files(place.source, worktree, [".env", "conf/local.ini"]) == []
    copy = worktree.path / ".env"
    assert copy.read_text() == "A=1\n"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    copy.write_text("changed by an agent")
    assert (place.source / ".env").read_text() == "A=1\n"
    assert (worktree.path / "conf/local.ini").read_text() == "b=2\n"


def test_copied_files_are_in_no_commit_and_no_list_of_changes(place: Place) -> None:
    write_files(place.source, {".env": "A=1\n", "conf/local.ini": "b=2\n"})
    worktree = place.start()
    copy_files(place.source, worktree, [".env", "conf/local.ini"])
    (worktree.path / "new.txt").write_text("work")
    saved = commit_all(worktree, "Turn")
    files = run_git(place.clone, "ls-tree", "-r", "--name-only", saved.sha).split()
    assert "new.txt" in files
    assert not {".env", "conf/local.ini"} & set(files)
    assert saved.skipped == ()
    assert run_git(worktree.path, "status", "--porcelain") == "?? new.txt"


def test_a_copy_with_an_ordinary_name_stays_out_even_where_the_exclude_is_lost(
    place: Place,
) -> None:
    write_files(place.source, {"local.ini": "token: tok-4f8a91c2d3e4b5a6\n"})
    worktree = place.start()
    copy_files(place.source, worktree, ["local.ini"])
    (place.clone / "info/exclude").unlink()
    redactor = Redactor([Secret("token", "tok-4f8a91c2d3e4b5a6")])
    saved = commit_all(worktree, "Turn", redactor=redactor)
    assert saved.skipped == ("local.ini: holds a secret (token)",)
    assert not saved.has_changed


def test_links_devices_and_large_files_are_not_copied(place: Place) -> None:
    (place.source / ".env").symlink_to("/etc/passwd")
    os.mkfifo(place.source / "pipe")
    (place.source / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    (place.source / "folder").symlink_to("/etc")
    worktree = place.start()
    names = [".env", "pipe", "large", "folder/passwd", "gone"]
    problems = copy_files(place.source, worktree, names)
    assert [problem.split()[0] for problem in problems] == names
    assert not any((worktree.path / name).exists() for name in names)


def test_a_copy_never_goes_through_a_link_of_the_repository(place: Place) -> None:
    """The worktree holds what a commit says, also a link out of it in place of a folder."""
    write_files(place.source, {"real/.env": "A=1\n"})
    outside = place.root / "outside"
    worktree = place.start()
    outside.mkdir()
    (worktree.path / "real").symlink_to(outside)
    (problem,) = copy_files(place.source, worktree, ["real/.env"])
    assert "cannot be written" in problem
    assert list(outside.iterdir()) == []


def test_what_the_repository_has_committed_is_not_replaced(place: Place) -> None:
    write_files(place.source, {"README.md": "changed, not committed"})
    worktree = place.start()
    assert copy_files(place.source, worktree, ["README.md"]) == []
    assert (worktree.path / "README.md").read_text() == "hello\n"


KEY = f"ghp_{'a1B2' * 9}"


@pytest.mark.parametrize(
    ("files", "left_out"),
    [
        ({"notes.txt": f"use {KEY} for it"}, "notes.txt: holds a secret (GitHub token)"),
        ({"conf.py": "X = 'tok-4f8a91c2d3e4b5a6'"}, "conf.py: holds a secret (token)"),
        ({"tok-4f8a91c2d3e4b5a6.txt": "x"}, "tok-4f8a91c2d3e4b5a6.txt: holds a secret (token)"),
        ({"src/app.py": "X = 'tok-4f8a91c2d3e4b5a6'"}, "src/app.py: now holds a secret (token)"),
        ({"server.key": "x"}, "server.key: named like a file of secrets"),
    ],
)
def test_what_looks_like_a_secret_is_left_out_of_commits_with_the_reason(
    place: Place, files: dict[str, str], left_out: str
) -> None:
    worktree = place.start()
    write_files(worktree.path, {**files, "fine.txt": "x"})
    saved = commit_all(
        worktree, "Turn", redactor=Redactor([Secret("token", "tok-4f8a91c2d3e4b5a6")])
    )
    assert saved.skipped == (left_out,)
    shown = run_git(place.clone, "log", "-p", saved.sha)
    assert "fine.txt" in shown
    assert KEY not in shown
    assert "tok-4f8a91c2d3e4b5a6" not in shown


def test_a_secret_that_the_user_has_committed_does_not_stop_work_on_that_file(place: Place) -> None:
    write_files(place.source, {"src/app.py": "X = 'tok-4f8a91c2d3e4b5a6'\n"})
    run_git(place.source, "commit", "-q", "-a", "-m", "Theirs")
    place.fetch()
    worktree = place.start()
    write_files(worktree.path, {"src/app.py": "X = 'tok-4f8a91c2d3e4b5a6'\nY = 1\n"})
    redactor = Redactor([Secret("token", "tok-4f8a91c2d3e4b5a6")])
    saved = commit_all(worktree, "Turn", redactor=redactor)
    assert saved.skipped == ()
    assert saved.has_changed
