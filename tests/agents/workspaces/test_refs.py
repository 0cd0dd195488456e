"""Refs of our own repositories, read without a process, are what git says they are."""

from pathlib import Path

import pytest

from agents.workspaces.git import commit_tree, git
from agents.workspaces.hub import create_bare
from agents.workspaces.refs import is_branch_name, is_plain_name, tip


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    create_bare(tmp_path / "bare.git")
    return tmp_path / "bare.git"


def commit(bare: Path, message: str) -> str:
    from agents.workspaces.git import PRODUCT

    tree = git("hash-object", "-t", "tree", "-w", "--stdin", git_dir=bare, input=b"").line
    return commit_tree(bare, tree, [], message=message, author=PRODUCT)


def point(bare: Path, ref: str, sha: str) -> None:
    git("update-ref", ref, sha, git_dir=bare)


def test_a_ref_is_found_in_its_file_and_when_it_is_packed_and_the_file_wins(bare: Path) -> None:
    first, second = commit(bare, "first"), commit(bare, "second")
    point(bare, "refs/heads/cards/BIL-1-1", first)
    assert tip(bare, "refs/heads/cards/BIL-1-1") == first
    git("pack-refs", "--all", git_dir=bare)
    assert not (bare / "refs/heads/cards/BIL-1-1").exists()
    assert tip(bare, "refs/heads/cards/BIL-1-1") == first
    point(bare, "refs/heads/cards/BIL-1-1", second)
    assert tip(bare, "refs/heads/cards/BIL-1-1") == second


def test_the_end_or_the_beginning_of_a_name_is_another_ref(bare: Path) -> None:
    sha = commit(bare, "first")
    point(bare, "refs/remotes/source/refs/heads/main", sha)
    point(bare, "refs/heads/cards/x", sha)
    git("pack-refs", "--all", git_dir=bare)
    assert tip(bare, "refs/heads/main") is None
    assert tip(bare, "refs/heads/cards") is None
    assert tip(bare, "refs/heads/cards/x/y") is None
    point(bare, "refs/heads/cards/x", sha)
    assert tip(bare, "refs/heads/cards") is None
    assert tip(bare, "refs/heads/cards/x/y") is None


def test_what_is_no_plain_ref_is_left_to_git(bare: Path) -> None:
    sha = commit(bare, "first")
    point(bare, "refs/heads/main", sha)
    git("symbolic-ref", "refs/heads/other", "refs/heads/main", git_dir=bare)
    assert tip(bare, "refs/heads/other") == sha
    point(bare, "refs/heads/ünlaut+x", sha)
    assert tip(bare, "refs/heads/ünlaut+x") == sha
    (bare / "refs/heads/broken").write_text("nonsense\n")
    assert tip(bare, "refs/heads/broken") is None
    assert tip(bare, "refs/heads/../heads/main") is None


@pytest.mark.parametrize(
    "name", ["main", "v1.2", "cards/BIL-1-1", "a_b/c.d-e", "x.locker", "x.lock.y", "0"]
)
def test_a_plain_name_is_one_that_git_accepts(name: str) -> None:
    assert is_plain_name(name)
    assert is_branch_name(name)
    git("check-ref-format", f"refs/heads/{name}", git_dir=None)


@pytest.mark.parametrize(
    "name",
    ["", "a..b", "a.", ".a", "a/.b", "a.lock", "a.lock/b", "a//b", "/a", "a/", "a b", "a~", "@{", "a\n", "HEAD",
     "-a", "a\0b", "a*", "a:b", "a\\b"],
)  # fmt: skip
def test_a_name_that_git_refuses_is_no_name_of_a_branch(name: str) -> None:
    assert not is_branch_name(name)
    assert not is_plain_name(name) or name == "HEAD"


def test_a_name_that_is_valid_and_not_plain_is_asked_of_git() -> None:
    assert not is_plain_name("grün+blau")
    assert is_branch_name("grün+blau")
