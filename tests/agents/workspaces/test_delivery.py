"""Delivery to the user's repository, which must never lose anything of theirs."""

import os
from pathlib import Path

import pytest

from agents.workspaces import (
    Delivery,
    DeliveryState,
    WorkspaceError,
    check_repository,
    deliver,
    fetch_hub,
)
from agents.workspaces.checkouts import advance, checkouts_of
from tests.agents.workspaces.conftest import Place
from tests.agents.workspaces.http_git import SIGN_IN, serve
from tests.agents.workspaces.repos import (
    commit_files,
    fingerprint,
    make_repository,
    run_git,
    set_traps,
    write_files,
)

NEW = {"new.txt": "new\n", "README.md": "better\n"}


def send(place: Place, sha: str) -> Delivery:
    return deliver(place.hub, str(place.source), "main", sha)


def without_git(folder: Path) -> dict[str, object]:
    return {name: value for name, value in fingerprint(folder).items() if name[:4] != ".git"}


def assert_untouched(place: Place, sha: str, why: str) -> Delivery:
    """Deliver `sha` and see that neither files nor index nor branch have changed."""
    before = without_git(place.source)
    index = (place.source / ".git/index").read_bytes()
    head = run_git(place.source, "rev-parse", "main")
    delivery = send(place, sha)
    assert without_git(place.source) == before
    assert (place.source / ".git/index").read_bytes() == index
    assert run_git(place.source, "rev-parse", "main") == head
    assert delivery.state is DeliveryState.LEFT_ALONE
    assert why in delivery.message
    return delivery


def test_a_clean_checkout_follows(place: Place) -> None:
    write_files(place.source, {"mine.txt": "untracked\n"})
    sha = place.merge_work("KEY-1-1", NEW)

    delivery = send(place, sha)

    assert delivery.state is DeliveryState.DELIVERED
    assert (place.source / "new.txt").read_text() == "new\n"
    assert (place.source / "README.md").read_text() == "better\n"
    assert run_git(place.source, "status", "--porcelain") == "?? mine.txt"
    assert run_git(place.source, "rev-parse", "HEAD") == sha
    assert run_git(place.source, "for-each-ref", "refs/pullcord") == ""
    assert "deliver" in run_git(place.source, "reflog", "-1", "main")
    assert send(place, sha).state is DeliveryState.DELIVERED


def test_a_checkout_whose_files_were_only_touched_is_clean(place: Place) -> None:
    sha = place.merge_work("KEY-1-1", NEW)
    os.utime(place.source / "README.md", (1, 1))
    assert send(place, sha).state is DeliveryState.DELIVERED
    assert run_git(place.source, "status", "--porcelain") == ""


def test_a_dirty_checkout_is_left_alone_and_told_what_to_do(place: Place) -> None:
    sha = place.merge_work("KEY-1-1", NEW)
    write_files(place.source, {"src/app.py": "my edit\n"})

    delivery = assert_untouched(place, sha, "uncommitted changes (src/app.py)")

    assert delivery.message.endswith("git merge --ff-only pullcord/main")
    run_git(place.source, "stash")
    run_git(place.source, "merge", "--ff-only", "pullcord/main")
    assert run_git(place.source, "rev-parse", "main") == sha
    assert send(place, sha).state is DeliveryState.DELIVERED


def test_staged_changes_are_dirty_too(place: Place) -> None:
    sha = place.merge_work("KEY-1-1", NEW)
    write_files(place.source, {"staged.txt": "x\n"})
    run_git(place.source, "add", "staged.txt")
    assert_untouched(place, sha, "uncommitted changes (staged.txt)")


@pytest.mark.parametrize("obstacle", ["new.txt", "folder/new.txt", "folder"])
def test_files_that_git_does_not_know_are_never_overwritten(place: Place, obstacle: str) -> None:
    name = "folder/new.txt" if obstacle.startswith("folder") else "new.txt"
    sha = place.merge_work("KEY-1-1", {name: "theirs\n"})
    (place.source / ".git/info/exclude").write_text("new.txt\nfolder\n")  # also when ignored
    write_files(place.source, {obstacle: "precious\n"})
    assert_untouched(place, sha, f"would be overwritten ({name})")
    assert (place.source / obstacle).read_text() == "precious\n"


def test_a_merge_under_way_is_not_disturbed(place: Place) -> None:
    sha = place.merge_work("KEY-1-1", NEW)
    (place.source / ".git/MERGE_HEAD").write_text(sha + "\n")
    assert_untouched(place, sha, "a merge is under way")


def test_a_rebase_of_the_target_is_not_disturbed(place: Place) -> None:
    run_git(place.source, "checkout", "--quiet", "-b", "other")
    commit_files(place.source, {"README.md": "other\n"})
    run_git(place.source, "checkout", "--quiet", "main")
    commit_files(place.source, {"README.md": "main\n"})
    place.fetch()
    sha = place.merge_work("KEY-1-1", {"new.txt": "x\n"})
    run_git(place.source, "rebase", "other", ok=False)  # stops at a conflict, HEAD detached
    assert_untouched(place, sha, "a rebase is under way")


def test_another_branch_checked_out_stays_as_it_is(place: Place) -> None:
    run_git(place.source, "checkout", "--quiet", "-b", "mine")
    write_files(place.source, {"README.md": "half done\n"})
    before = without_git(place.source)
    sha = place.merge_work("KEY-1-1", NEW)

    assert send(place, sha).state is DeliveryState.DELIVERED

    assert run_git(place.source, "rev-parse", "main") == sha
    assert without_git(place.source) == before
    assert run_git(place.source, "branch", "--show-current") == "mine"


def test_a_detached_checkout_stays_as_it_is(place: Place) -> None:
    run_git(place.source, "checkout", "--quiet", "--detach")
    head = run_git(place.source, "rev-parse", "HEAD")
    sha = place.merge_work("KEY-1-1", NEW)
    assert send(place, sha).state is DeliveryState.DELIVERED
    assert run_git(place.source, "rev-parse", "HEAD") == head
    assert run_git(place.source, "status", "--porcelain") == ""


def test_the_target_checked_out_in_a_linked_worktree_is_found(place: Place, tmp_path: Path) -> None:
    run_git(place.source, "checkout", "--quiet", "-b", "mine")
    linked = tmp_path / "linked tree"
    run_git(place.source, "worktree", "add", "--quiet", str(linked), "main")
    sha = place.merge_work("KEY-1-1", NEW)
    write_files(linked, {"README.md": "edit\n"})

    delivery = send(place, sha)
    assert delivery.state is DeliveryState.LEFT_ALONE
    assert str(linked) in delivery.message
    assert (linked / "README.md").read_text() == "edit\n"

    run_git(linked, "checkout", "--quiet", "README.md")
    assert send(place, sha).state is DeliveryState.DELIVERED
    assert (linked / "new.txt").exists()
    assert run_git(linked, "status", "--porcelain") == ""


def test_a_linked_worktree_whose_folder_is_gone_is_no_obstacle(
    place: Place, tmp_path: Path
) -> None:
    run_git(place.source, "checkout", "--quiet", "-b", "mine")
    run_git(place.source, "worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    (tmp_path / "linked").rename(tmp_path / "gone")
    sha = place.merge_work("KEY-1-1", NEW)
    assert send(place, sha).state is DeliveryState.DELIVERED


def test_a_bare_repository_gets_the_branch(empty_place: Place, tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    run_git(tmp_path, "clone", "--quiet", "--bare", str(origin), str(empty_place.source))
    empty_place.fetch()
    sha = empty_place.merge_work("KEY-1-1", NEW)
    assert send(empty_place, sha).state is DeliveryState.DELIVERED
    assert run_git(empty_place.source, "rev-parse", "main") == sha


def test_new_commits_of_the_user_are_not_overwritten(place: Place) -> None:
    sha = place.merge_work("KEY-1-1", NEW)
    theirs = commit_files(place.source, {"theirs.txt": "x\n"})

    assert send(place, sha).state is DeliveryState.DIVERGED
    assert run_git(place.source, "rev-parse", "main") == theirs

    place.fetch()
    sha = place.merge("refs/remotes/source/main")
    assert send(place, sha).state is DeliveryState.DELIVERED
    assert (place.source / "new.txt").exists()
    assert (place.source / "theirs.txt").exists()


def test_nothing_of_the_users_repository_is_executed(place: Place, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    commit_files(place.source, {".gitattributes": "*.dat filter=trap diff=trap\n", "a.dat": "x\n"})
    place.fetch()
    sha = place.merge_work("KEY-1-1", NEW)
    set_traps(place.source / ".git", marker)
    (place.source / "a.dat").touch()  # so that git has to look into it

    assert send(place, sha).state is DeliveryState.DELIVERED
    assert (place.source / "new.txt").exists()
    assert not marker.exists()


def test_a_checkout_that_needs_a_filter_is_left_alone(place: Place) -> None:
    commit_files(place.source, {".gitattributes": "*.dat filter=lfs\n", "a.dat": "x\n"})
    place.fetch()
    sha = place.merge_work("KEY-1-1", {"a.dat": "y\n"})
    assert_untouched(place, sha, "a filter such as Git LFS (a.dat)")


def test_a_delivery_killed_between_files_and_branch_goes_on(place: Place) -> None:
    old = place.fetch()
    sha = place.merge_work("KEY-1-1", NEW)
    run_git(place.source, "fetch", "--quiet", str(place.hub), sha)
    (checkout,) = checkouts_of(place.source / ".git", "main")
    advance(checkout, old=old, new=sha)
    assert run_git(place.source, "status", "--porcelain") != ""

    assert send(place, sha).state is DeliveryState.DELIVERED
    assert run_git(place.source, "status", "--porcelain") == ""


def test_deleted_and_renamed_files_follow_in_a_checkout(place: Place) -> None:
    worktree = place.start()
    (worktree.path / "src/app.py").rename(worktree.path / "app.py")
    place.hand_in(worktree, {})
    sha = place.merge(worktree.branch)
    assert send(place, sha).state is DeliveryState.DELIVERED
    assert not (place.source / "src").exists()
    assert (place.source / "app.py").read_text() == "print(1)\n"


def test_a_user_branch_called_pullcord_is_no_obstacle(place: Place) -> None:
    run_git(place.source, "branch", "pullcord")
    sha = place.merge_work("KEY-1-1", NEW)
    write_files(place.source, {"src/app.py": "edit\n"})
    assert_untouched(place, sha, "uncommitted")


def test_a_remote_gets_a_push_with_the_sign_in_of_its_url(
    empty_place: Place, tmp_path: Path
) -> None:
    make_repository(tmp_path / "origin")
    served = tmp_path / "served"
    served.mkdir()
    run_git(tmp_path, "clone", "--quiet", "--bare", "origin", str(served / "x.git"))
    with serve(served) as port:
        name, _, password = SIGN_IN.partition(":")
        url = f"http://{name}:{password.replace('@', '%40').replace('/', '%2F')}@127.0.0.1:{port}/x.git"
        assert check_repository(url).kind.value == "remote"
        fetch_hub(empty_place.hub, url, "main")
        sha = empty_place.merge_work("KEY-1-1", NEW)

        delivery = deliver(empty_place.hub, url, "main", sha)

        assert delivery.state is DeliveryState.DELIVERED
        assert "cret" not in delivery.message
        assert run_git(served / "x.git", "rev-parse", "main") == sha
        assert "cret" not in (empty_place.hub / "config").read_text()

        hook = served / "x.git/hooks/pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\necho main is protected >&2\nexit 1\n")
        hook.chmod(0o755)
        sha = empty_place.merge_work("KEY-2-1", {"more.txt": "x\n"})
        delivery = deliver(empty_place.hub, url, "main", sha)
        assert delivery.state is DeliveryState.REFUSED
        assert "main is protected" in delivery.message
        hook.unlink()

        run_git(tmp_path / "origin", "pull", "--quiet", str(served / "x.git"), "main")
        commit_files(tmp_path / "origin", {"theirs.txt": "x\n"})
        run_git(tmp_path / "origin", "push", "--quiet", str(served / "x.git"), "main")
        assert deliver(empty_place.hub, url, "main", sha).state is DeliveryState.DIVERGED


def test_a_remote_that_wants_a_sign_in_says_so(tmp_path: Path) -> None:
    with serve(tmp_path) as port:
        for sign_in in ("", "robot:wrong@"):
            with pytest.raises(WorkspaceError) as caught:
                check_repository(f"http://{sign_in}127.0.0.1:{port}/x.git")
            assert caught.value.code == "needs_sign_in"
            assert "wrong" not in caught.value.message
    with serve(tmp_path, sign_in="") as port:
        with pytest.raises(WorkspaceError) as caught:
            check_repository(f"http://127.0.0.1:{port}/none.git")
        assert caught.value.code == "not_a_repository"
