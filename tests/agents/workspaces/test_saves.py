"""Saving a worktree: everything an agent did, nothing that it tricked us into."""

import os
import subprocess
from pathlib import Path

import pytest

from agents.workspaces import Saved, WorkspaceError, Worktree, commit_all, diff
from agents.workspaces.git import git
from agents.workspaces.indexes import is_equal
from agents.workspaces.saves import holds_more_than_saved
from tests.agents.workspaces.conftest import Place
from tests.agents.workspaces.repos import (
    ALICE,
    commit_files,
    make_repository,
    run_git,
    set_traps,
    write_files,
)


def changes(worktree: Worktree, saved: Saved) -> dict[str, str]:
    """Path -> status, against the base."""
    found = diff(worktree.git_dir, worktree.base_sha, saved.sha)
    return {file.path: file.status for file in found.files}


def test_new_changed_and_deleted_files_are_saved_on_top_of_each_other(place: Place) -> None:
    worktree = place.start()
    write_files(worktree.path, {"new.txt": "x\n", "src/app.py": "print(2)\n"})
    first = commit_all(worktree, "Turn 1", author=ALICE)
    (worktree.path / "README.md").unlink()
    second = commit_all(worktree, "Turn 2")

    assert first.has_changed
    assert second.has_changed
    assert changes(worktree, second) == {"new.txt": "A", "src/app.py": "M", "README.md": "D"}
    log = run_git(place.clone, "log", "--format=%s %an", f"{worktree.base_sha}..{second.sha}")
    assert log == "Turn 2 Pullcord\nTurn 1 Alice"


def test_without_changes_there_is_no_commit(place: Place) -> None:
    worktree = place.start()
    assert commit_all(worktree, "Nothing") == Saved(worktree.base_sha, has_changed=False)
    os.utime(worktree.path / "README.md", (1, 1))
    assert not commit_all(worktree, "Nothing").has_changed


@pytest.mark.parametrize(
    ("path", "more"), [("kept.txt", False), ("README.md", False), ("a.log", True), (".env", True)]
)
def test_a_worktree_may_hold_more_than_its_commit(
    empty_place: Place, path: str, *, more: bool
) -> None:
    make_repository(empty_place.source, {".gitignore": "*.log\n", "README.md": "# A\n"})
    empty_place.fetch()
    worktree = empty_place.start()
    commit_all(worktree, "Turn")
    assert not holds_more_than_saved(worktree)
    write_files(worktree.path, {path: "changed\n"})
    assert holds_more_than_saved(worktree)
    commit_all(worktree, "Turn")
    assert holds_more_than_saved(worktree) is more


def test_saving_does_not_disturb_what_the_agent_sees(place: Place) -> None:
    worktree = place.start()
    write_files(worktree.path, {"new.txt": "x\n"})
    run_git(worktree.path, "add", "new.txt")
    commit_all(worktree, "Turn")
    assert run_git(worktree.path, "status", "--porcelain") == "A  new.txt"
    assert run_git(worktree.path, "rev-parse", "HEAD") == worktree.base_sha


def test_ignored_files_and_new_secrets_are_left_out(empty_place: Place) -> None:
    make_repository(empty_place.source, {".gitignore": "*.log\n", "conf/.env.test": "A=1\n"})
    empty_place.fetch()
    worktree = empty_place.start()
    write_files(
        worktree.path,
        {
            "x.log": "x",
            ".env": "KEY=1",
            "sub/.env.local": "KEY=1",
            "sub/.env.example": "KEY=",
            "key.pem": "x",
            "conf/.env.test": "A=2\n",
        },
    )
    saved = commit_all(worktree, "Turn")
    assert changes(worktree, saved) == {"sub/.env.example": "A", "conf/.env.test": "M"}
    assert {text.partition(":")[0] for text in saved.skipped} == {
        ".env",
        "sub/.env.local",
        "key.pem",
    }


def test_odd_names_modes_links_and_kinds_are_saved(place: Place) -> None:
    worktree = place.start()
    odd = {"a\nb": "1", "-rf": "2", "naïve": "3", ":(top)x": "4", '"quoted"': "5", "*": "6"}
    write_files(worktree.path, odd)
    (worktree.path / os.fsdecode(b"latin\xe9")).write_text("7")
    (worktree.path / "README.md").chmod(0o755)
    (worktree.path / "link").symlink_to("/etc/passwd")
    os.mkfifo(worktree.path / "pipe")

    saved = commit_all(worktree, "Turn")

    assert saved.skipped == ()
    assert set(changes(worktree, saved)) == {
        "a\\nb", "-rf", "naïve", ":(top)x", '"quoted"', "*", "latin\\xe9", "README.md", "link",
    }  # fmt: skip
    assert run_git(place.clone, "show", f"{saved.sha}:link") == "/etc/passwd"


def test_a_file_may_become_a_folder_or_a_link_and_back(place: Place) -> None:
    worktree = place.start()
    (worktree.path / "README.md").unlink()
    write_files(worktree.path, {"README.md/part.txt": "x\n"})
    (worktree.path / "src").rename(worktree.path / "lib")
    (worktree.path / "src").symlink_to("lib")

    saved = commit_all(worktree, "Turn")

    assert changes(worktree, saved) == {
        "README.md": "D",
        "README.md/part.txt": "A",
        "lib/app.py": "R",
        "src": "A",
    }
    assert not commit_all(worktree, "Nothing").has_changed


def test_a_tracked_file_that_became_a_pipe_is_reported(place: Place) -> None:
    worktree = place.start()
    (worktree.path / "README.md").unlink()
    os.mkfifo(worktree.path / "README.md")
    write_files(worktree.path, {"x.txt": "x\n"})
    saved = commit_all(worktree, "Turn")
    assert saved.skipped == ("README.md: a socket, pipe or device",)
    assert changes(worktree, saved) == {"x.txt": "A"}


def test_a_file_that_git_cannot_take_does_not_stop_the_others(place: Place) -> None:
    worktree = place.start()
    write_files(worktree.path, {f"f{number}.txt": "x\n" for number in range(20)})
    write_files(worktree.path, {".gitattributes": "bad.txt working-tree-encoding=UTF-16\n"})
    (worktree.path / "bad.txt").write_bytes(b"odd")  # no UTF-16: git refuses it
    saved = commit_all(worktree, "Turn")
    assert [text.partition(":")[0] for text in saved.skipped] == ["bad.txt"]
    assert len(changes(worktree, saved)) == 21


def test_a_repository_made_inside_is_taken_as_files(place: Place) -> None:
    worktree = place.start()
    make_repository(worktree.path / "app", {".gitignore": "node_modules/\n"})
    write_files(worktree.path / "app", {"later.txt": "x\n", "node_modules/m.js": "x\n"})
    make_repository(worktree.path / "app/deeper")

    saved = commit_all(worktree, "Turn")

    assert set(changes(worktree, saved)) == {
        "app/.gitignore", "app/README.md", "app/src/app.py", "app/later.txt",
        "app/deeper/README.md", "app/deeper/src/app.py",
    }  # fmt: skip
    assert not commit_all(worktree, "Nothing").has_changed
    (worktree.path / "app/later.txt").write_text("y\n")
    assert commit_all(worktree, "Turn").has_changed


def test_nothing_that_an_agent_configured_runs(place: Place, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    worktree = place.start()
    attributes = "* filter=trap diff=trap merge=trap\n"
    write_files(worktree.path, {".gitattributes": attributes, "x.txt": "x\n"})
    inner = make_repository(worktree.path / "inner")
    commit_files(inner, {".gitattributes": attributes})
    set_traps(inner / ".git", marker)
    commit_all(worktree, "Turn")
    # The worktree's own link points to a repository of the agent's, and so does a gitlink.
    (worktree.path / ".git").write_text(f"gitdir: {inner / '.git'}\n")
    write_files(worktree.path, {"inner/more.txt": "x\n", "x.txt": "y\n"})

    saved = commit_all(worktree, "Turn")

    assert saved.has_changed
    assert diff(worktree.git_dir, worktree.base_sha, saved.sha).files
    assert not marker.exists()


def test_the_agents_index_and_head_are_not_believed(place: Place, tmp_path: Path) -> None:
    worktree = place.start()
    write_files(worktree.path, {"README.md": "changed\n"})
    run_git(worktree.path, "update-index", "--assume-unchanged", "README.md")
    (worktree.entry / "HEAD").write_text("ref: refs/heads/main\n")
    (worktree.entry / "index").write_bytes(b"broken")
    (worktree.entry / "commondir").write_text(str(tmp_path))
    saved = commit_all(worktree, "Turn")
    assert changes(worktree, saved) == {"README.md": "M"}


def test_a_save_that_was_killed_can_be_repeated(place: Place) -> None:
    worktree = place.start()
    write_files(worktree.path, {"x.txt": "x\n"})
    worktree.index.write_bytes(worktree.index.read_bytes()[:50])
    worktree.index.with_name("index.lock").write_text("")
    (place.clone / f"{worktree.saved_ref}.lock").write_text("")
    saved = commit_all(worktree, "Turn")
    assert changes(worktree, saved) == {"x.txt": "A"}


def test_the_work_tree_is_only_read(place: Place) -> None:
    worktree = place.start()
    write_files(worktree.path, {"crlf.txt": "a\r\n", ".gitattributes": "*.txt text\n"})
    commit_all(worktree, "Turn")
    assert (worktree.path / "crlf.txt").read_bytes() == b"a\r\n"


def test_a_worktree_that_is_gone_is_not_saved_as_empty(place: Place) -> None:
    worktree = place.start()
    worktree.path.rename(place.root / "elsewhere")
    with pytest.raises(WorkspaceError) as caught:
        commit_all(worktree, "Turn")
    assert caught.value.code == "missing_path"


def test_an_agents_own_commits_do_not_matter_for_what_is_saved(place: Place) -> None:
    worktree = place.start()
    sha = commit_files(worktree.path, {"x.txt": "x\n"}, "Mine")
    run_git(worktree.path, "checkout", "--quiet", "--detach")
    saved = commit_all(worktree, "Turn")
    assert changes(worktree, saved) == {"x.txt": "A"}
    assert saved.sha != sha


def test_files_outside_are_not_reached_through_a_link(place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    write_files(secret, {"app.py": "password\n"})
    worktree = place.start()
    (worktree.path / "src/app.py").unlink()
    (worktree.path / "src").rmdir()
    (worktree.path / "src").symlink_to(secret)
    saved = commit_all(worktree, "Turn")
    assert changes(worktree, saved) == {"src/app.py": "D", "src": "A"}
    patch = subprocess.run(
        ["git", "--git-dir", str(place.clone), "show", saved.sha],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "password" not in patch


def test_work_that_was_staged_and_not_committed_is_in_the_next_save(place: Place) -> None:
    tree = place.start()
    first = commit_all(tree, "Nothing yet")
    assert is_equal(tree.index, first.sha)
    (tree.path / "new.txt").write_text("new\n")
    # As a save that was interrupted behind its first half leaves it.
    git(
        "update-index",
        "--add",
        "new.txt",
        git_dir=tree.git_dir,
        work_tree=tree.path,
        index=tree.index,
    )
    assert not is_equal(tree.index, first.sha)
    saved = commit_all(tree, "All of it")
    assert saved.has_changed
    assert is_equal(tree.index, saved.sha)
    assert run_git(tree.git_dir, "show", f"{saved.sha}:new.txt") == "new"
