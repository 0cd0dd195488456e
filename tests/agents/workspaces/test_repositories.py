"""What a person types as a repository, and what they are told when it is wrong."""

import socket
from pathlib import Path

import pytest

from agents.workspaces import SourceKind, WorkspaceError, check_repository, create_first_commit
from agents.workspaces.sources import read_address
from tests.agents.workspaces.repos import (
    ALICE,
    commit_files,
    fingerprint,
    make_repository,
    run_git,
    set_traps,
)


def refusal(typed: str, target: str = "") -> WorkspaceError:
    with pytest.raises(WorkspaceError) as caught:
        check_repository(typed, target, timeout_seconds=5)
    return caught.value


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "Write the path"),
        ("--upload-pack=touch /tmp/x", "dash"),
        ("ext::sh -c touch% /tmp/x", "runs a program"),
        ("fd::3", "runs a program"),
        ("gopher://host/x", "not supported"),
        ("http://example.org/x.git", "https://"),
        ("https:///x.git", "no host"),
        ("https://host:port/x", "cannot be read"),
        ("ssh://-oProxyCommand=x/y", "no host"),
        ("host:-x", "user@host:path"),
        ("code/repo", "whole path"),
        ("./repo", "whole path"),
        ("/a\nb", "line break"),
        ("file://server/x", "on this server"),
    ],
)
def test_what_cannot_be_a_repository_is_refused_with_a_reason(typed: str, words: str) -> None:
    error = refusal(typed)
    assert words in error.message
    assert error.field == "repository"
    assert error.code == "bad_repository"


def test_a_path_that_is_no_repository_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    repository = make_repository(tmp_path / "repository")

    assert refusal(str(tmp_path / "none")).code == "missing_path"
    assert refusal(str(tmp_path / "file")).code == "not_a_repository"
    assert "git init" in refusal(str(tmp_path / "folder")).message
    assert f"Use {repository}." in refusal(str(repository / "src")).message


def test_a_damaged_repository_is_told_from_a_folder(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    (repository / ".git/HEAD").unlink()
    assert "not a repository that git can read" in refusal(str(repository)).message


def test_a_good_repository_is_recognised_and_not_changed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    run_git(repository, "branch", "feature/x")
    before = fingerprint(repository)

    source = check_repository(f"  {repository}/ ")

    assert source.kind is SourceKind.CHECKOUT
    assert source.target_branch == "main"
    assert source.branches == ("feature/x", "main")
    assert check_repository(str(repository / ".git")).location == str(repository)
    assert check_repository(f"file://{repository}").location == str(repository)
    assert check_repository(str(repository), "feature/x").target_branch == "feature/x"
    assert fingerprint(repository) == before


def test_a_bare_repository_and_a_linked_worktree_are_recognised(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    run_git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare.git")
    run_git(repository, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "linked"))

    assert check_repository(str(tmp_path / "bare.git")).kind is SourceKind.BARE
    linked = check_repository(str(tmp_path / "linked"))
    assert linked.kind is SourceKind.CHECKOUT
    assert linked.branches == ("main", "other")


def test_a_tilde_stands_for_the_servers_home(tmp_path: Path) -> None:
    make_repository(tmp_path / "repository")
    source = check_repository("~/repository", environment={"HOME": str(tmp_path)})
    assert source.location == str(tmp_path / "repository")


def test_a_detached_head_does_not_hide_the_branches(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    run_git(repository, "checkout", "--quiet", "--detach")
    assert check_repository(str(repository)).target_branch == "main"


def test_a_missing_target_branch_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    error = refusal(str(repository), "release")
    assert error.field == "target_branch"
    assert "It has: main." in error.message

    for number in range(20):
        run_git(repository, "branch", f"b{number:02}")
    assert "and 9 more" in refusal(str(repository), "release").message


@pytest.mark.parametrize("name", ["-x", "a..b", "a b", "cards", "cards/x", "HEAD", "@{u}", "a\nb"])
def test_an_impossible_target_branch_is_refused(tmp_path: Path, name: str) -> None:
    repository = make_repository(tmp_path / "repository")
    error = refusal(str(repository), name)
    assert (error.code, error.field) == ("bad_branch", "target_branch")


def test_a_repository_without_commits_is_offered_a_first_one(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    run_git(repository, "init", "--quiet", "--initial-branch=trunk")
    (repository / "mine.txt").write_text("x\n")
    error = refusal(str(repository))
    assert error.code == "no_commits"
    assert "“trunk”" in error.message

    assert create_first_commit(str(repository), author=ALICE) == "trunk"

    assert check_repository(str(repository)).target_branch == "trunk"
    assert run_git(repository, "log", "--format=%an") == "Alice"
    assert run_git(repository, "status", "--porcelain") == "?? mine.txt"
    with pytest.raises(WorkspaceError, match="has commits by now"):
        create_first_commit(str(repository))


def test_a_first_commit_can_be_on_another_branch_than_git_init_chose(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    run_git(repository, "init", "--quiet", "--bare", "--initial-branch=master")

    assert create_first_commit(str(repository), "main") == "main"
    assert check_repository(str(repository)).target_branch == "main"


def test_looking_at_a_repository_runs_nothing_of_it(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    set_traps(repository / ".git", tmp_path / "ran")
    check_repository(str(repository))
    assert not (tmp_path / "ran").exists()


def test_an_unreachable_host_is_reported_in_time() -> None:
    assert refusal("http://127.0.0.1:9/x.git").code == "unreachable"
    assert refusal("https://no-such-host.invalid/x.git").code == "unreachable"


def test_a_host_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
        with pytest.raises(WorkspaceError, match="did not answer in time") as caught:
            check_repository(url, timeout_seconds=0.5)
    assert caught.value.field == "repository"


def test_a_password_is_kept_out_of_what_is_shown() -> None:
    address = read_address("https://me:s%40cret@example.org:8443/x.git")
    assert address.text == address.location == "https://example.org:8443/x.git"
    assert (address.username, address.password) == ("me", "s@cret")
    assert "cret" not in str(address.configuration)
    assert "cret" not in repr(address)


def test_a_token_in_place_of_a_user_name_is_in_no_message_and_no_command_line() -> None:
    address = read_address("https://ghp_abcd1234@example.org/x.git")
    assert (address.text, address.url) == ("https://example.org/x.git",) * 2
    assert "ghp_abcd1234" not in repr(address)
    assert address.configuration
    assert address.variables({})["PULLCORD_GIT_USERNAME"] == "ghp_abcd1234"


def test_the_short_ssh_form_is_a_url(tmp_path: Path) -> None:
    assert read_address("git@example.org:team/x.git").url == "git@example.org:team/x.git"
    assert read_address("/srv/a:b").path == Path("/srv/a:b")


def test_commits_made_meanwhile_are_seen(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    commit_files(repository, {"x": "y"})
    assert check_repository(str(repository)).branches == ("main",)
