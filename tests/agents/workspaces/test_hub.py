"""The hub: fetched whole or not at all, kept up to date, robust against being killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.workspaces import HubState, WorkspaceError, commit_all, fetch_hub, take_over
from agents.workspaces.hub import restore_configuration
from tests.agents.workspaces.conftest import Place
from tests.agents.workspaces.repos import (
    commit_files,
    fingerprint,
    make_repository,
    run_git,
    set_traps,
    write_files,
)


def refs(repository: Path) -> dict[str, str]:
    lines = run_git(repository, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines)


def test_a_hub_mirrors_the_branches_and_holds_the_target(place: Place) -> None:
    head = run_git(place.source, "rev-parse", "main")
    run_git(place.source, "tag", "v1")
    run_git(place.source, "branch", "feature/x")
    place.fetch()

    assert refs(place.hub) == {
        "refs/heads/main": head,
        "refs/remotes/source/main": head,
        "refs/remotes/source/feature/x": head,
        "refs/tags/v1": head,
    }
    assert run_git(place.hub, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_a_branch_deleted_by_the_user_disappears_and_one_may_take_its_place(place: Place) -> None:
    run_git(place.source, "branch", "topic")
    place.fetch()
    run_git(place.source, "branch", "--delete", "--force", "topic")
    run_git(place.source, "branch", "topic/part")
    place.fetch()
    assert "refs/remotes/source/topic" not in refs(place.hub)
    assert "refs/remotes/source/topic/part" in refs(place.hub)


def test_progress_rises_to_100(empty_place: Place) -> None:
    make_repository(empty_place.source, {f"f{n}": f"{n}\n" for n in range(200)})
    told: list[tuple[int, str]] = []

    fetch_hub(
        empty_place.hub,
        str(empty_place.source),
        "main",
        on_progress=lambda percent, text: told.append((percent, text)),
    )

    percents = [percent for percent, _ in told]
    assert percents == sorted(percents)
    assert told[-1] == (100, "Ready")
    assert len(told) > 3


def test_new_commits_of_the_user_are_taken_when_the_target_only_moves_forward(place: Place) -> None:
    sha = commit_files(place.source, {"new.txt": "x\n"})
    fetched = fetch_hub(place.hub, str(place.source), "main")
    assert (fetched.state, fetched.target_sha) == (HubState.CURRENT, sha)
    assert refs(place.hub)["refs/heads/main"] == sha


def test_merged_work_that_is_not_delivered_stays_and_is_told(place: Place) -> None:
    merged = place.merge_work("KEY-1-1", {"a.txt": "a\n"})
    fetched = fetch_hub(place.hub, str(place.source), "main")
    assert (fetched.state, fetched.target_sha) == (HubState.AHEAD, merged)

    theirs = commit_files(place.source, {"b.txt": "b\n"})
    fetched = fetch_hub(place.hub, str(place.source), "main")
    assert (fetched.state, fetched.target_sha) == (HubState.DIVERGED, merged)
    assert fetched.source_sha == theirs
    assert "refs/heads/cards/KEY-1-1" in refs(place.hub)

    merged = place.merge("refs/remotes/source/main")
    assert run_git(place.hub, "show", f"{merged}:a.txt") == "a"
    assert run_git(place.hub, "show", f"{merged}:b.txt") == "b"


def test_a_missing_target_or_an_empty_repository_creates_nothing(empty_place: Place) -> None:
    make_repository(empty_place.source)
    with pytest.raises(WorkspaceError, match="It has: main") as caught:
        fetch_hub(empty_place.hub, str(empty_place.source), "release")
    assert caught.value.field == "target_branch"
    empty = empty_place.source.with_name("empty")
    empty.mkdir()
    run_git(empty, "init", "--quiet")
    with pytest.raises(WorkspaceError) as caught:
        fetch_hub(empty_place.hub, str(empty), "main")
    assert caught.value.code == "no_commits"
    with pytest.raises(WorkspaceError) as caught:
        fetch_hub(empty_place.hub, str(empty / "none"), "main")
    assert caught.value.code == "missing_path"
    left = [path for path in empty_place.hub.parent.iterdir() if path.suffix != ".lock"]
    assert left == []


def test_fetching_runs_nothing_of_the_source_and_changes_nothing_there(
    empty_place: Place, tmp_path: Path
) -> None:
    source = make_repository(empty_place.source)
    set_traps(source / ".git", tmp_path / "ran")
    before = fingerprint(source)
    empty_place.fetch()
    commit_bypassing_traps(source)
    empty_place.fetch()
    assert not (tmp_path / "ran").exists()
    assert set(fingerprint(source)) >= set(before)


def commit_bypassing_traps(source: Path) -> None:
    tree = run_git(source, "rev-parse", "main^{tree}")
    sha = run_git(source, "commit-tree", tree, "-p", "main", "-m", "more")
    (source / ".git/refs/heads/main").write_text(f"{sha}\n")


def test_a_shallow_source_can_be_worked_on(empty_place: Place, tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    commit_files(origin, {"a": "1"})
    commit_files(origin, {"a": "2"})
    run_git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{origin}", str(empty_place.source))
    empty_place.fetch()
    merged = empty_place.merge_work("KEY-1-1", {"b.txt": "b\n"})
    assert run_git(empty_place.hub, "show", f"{merged}:b.txt") == "b"


def test_a_bare_source_can_be_worked_on(empty_place: Place, tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    run_git(tmp_path, "clone", "--quiet", "--bare", str(origin), str(empty_place.source))
    assert empty_place.fetch() == run_git(origin, "rev-parse", "main")


def test_a_repository_of_another_user_can_be_fetched(empty_place: Place) -> None:
    make_repository(empty_place.source)
    if os.geteuid() == 0:  # elsewhere every file is ours, and the test is the plain case
        for path in (empty_place.source, *empty_place.source.rglob("*")):
            os.chown(path, 12345, 12345, follow_symlinks=False)
    assert empty_place.fetch()


def test_stale_locks_of_a_killed_git_do_not_stop_the_next_fetch(place: Place) -> None:
    sha = commit_files(place.source, {"x": "y"})
    for name in ("packed-refs", "refs/remotes/source/main", "refs/heads/main", "shallow"):
        (place.hub / f"{name}.lock").write_text("")
    assert place.fetch() == sha


_FETCH = """
import sys
from pathlib import Path
from agents.workspaces import fetch_hub
fetch_hub(Path(sys.argv[1]), sys.argv[2], "main", on_progress=lambda n, text: print(n, flush=True))
"""


@pytest.mark.parametrize("is_first", [True, False])
def test_a_fetch_that_was_killed_can_be_repeated(
    empty_place: Place, tmp_path: Path, *, is_first: bool
) -> None:
    source = make_repository(empty_place.source)
    if not is_first:
        empty_place.fetch()
    (source / "big.bin").write_bytes(os.urandom(6_000_000))
    sha = commit_files(source, {})
    process = subprocess.Popen(
        [sys.executable, "-c", _FETCH, str(empty_place.hub), str(source)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline()  # it is under way
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert empty_place.hub.exists() is not is_first

    deadline = time.monotonic() + 20
    while True:  # the killed git may need a moment to notice
        try:
            assert empty_place.fetch() == sha
            break
        except WorkspaceError:
            assert time.monotonic() < deadline
    run_git(empty_place.hub, "fsck", "--no-progress", "--connectivity-only")


def test_take_over_touches_one_branch_and_refuses_other_work_on_it(place: Place) -> None:
    worktree = place.start()
    other = place.start("KEY-2-1")
    write_files(worktree.path, {"a.txt": "a\n"})
    saved = commit_all(worktree, "Work")
    before = refs(place.hub)

    take_over(place.hub, place.clone, sha=saved.sha, branch="cards/KEY-1-1")

    assert refs(place.hub) == {**before, "refs/heads/cards/KEY-1-1": saved.sha}
    write_files(other.path, {"b.txt": "b\n"})
    different = commit_all(other, "Other work")
    with pytest.raises(WorkspaceError) as caught:
        take_over(place.hub, place.clone, sha=different.sha, branch="cards/KEY-1-1")
    assert caught.value.code == "branch_moved"
    assert refs(place.hub)["refs/heads/cards/KEY-1-1"] == saved.sha


def test_take_over_refuses_malformed_objects(place: Place) -> None:
    worktree = place.start()
    evil = '[submodule "a"]\n\tpath = a\n\turl = -u./payload\n'
    blob = run_git(place.clone, "hash-object", "-w", "--stdin", stdin=evil)
    tree = run_git(place.clone, "mktree", stdin=f"100644 blob {blob}\t.gitmodules\n")
    sha = run_git(place.clone, "commit-tree", tree, "-p", worktree.base_sha, "-m", "evil")
    with pytest.raises(WorkspaceError) as caught:
        take_over(place.hub, place.clone, sha=sha, branch="cards/KEY-1-1")
    assert caught.value.code == "unsafe_objects"
    assert "refs/heads/cards/KEY-1-1" not in refs(place.hub)


def test_our_configuration_is_restored_only_when_it_differs(place: Place) -> None:
    assert not restore_configuration(place.hub)
    (place.hub / "config").write_text("[core]\n\tbare = true\n")
    assert restore_configuration(place.hub)
