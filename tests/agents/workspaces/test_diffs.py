"""Diffs of everything that can differ between two commits."""

import os
from pathlib import Path

import pytest

from agents.workspaces import FileDiff, diff, diffs
from tests.agents.workspaces.repos import commit_files, make_repository, run_git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


def compare(repository: Path) -> dict[str, FileDiff]:
    found = diff(repository / ".git", "HEAD~1", "HEAD")
    return {file.path: file for file in found.files}


def test_added_changed_deleted_and_renamed_files_are_told_apart(repository: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(20))
    commit_files(repository, {"old name.txt": lines, "gone.txt": "x\n"})
    run_git(repository, "mv", "old name.txt", "new name.txt")
    (repository / "gone.txt").unlink()
    commit_files(
        repository, {"new name.txt": lines + "more\n", "a.txt": "1\n2\n", "README.md": "H"}
    )

    files = compare(repository)

    statuses = {path: file.status for path, file in files.items()}
    assert statuses == {"new name.txt": "R", "gone.txt": "D", "a.txt": "A", "README.md": "M"}
    renamed = files["new name.txt"]
    assert (renamed.old_path, renamed.additions, renamed.deletions) == ("old name.txt", 1, 0)
    assert renamed.hunks.endswith("+more\n")
    assert files["a.txt"].hunks == "@@ -0,0 +1,2 @@\n+1\n+2\n"
    assert "\\ No newline at end of file" in files["README.md"].hunks
    total = diff(repository / ".git", "HEAD~1", "HEAD")
    assert (total.additions, total.deletions, total.omitted_files) == (4, 2, 0)


def test_binary_files_modes_links_and_submodules_are_told(repository: Path, tmp_path: Path) -> None:
    (repository / "image.bin").write_bytes(bytes(range(256)))
    (repository / "src/app.py").chmod(0o755)
    (repository / "README.md").unlink()
    (repository / "README.md").symlink_to("src/app.py")
    library = make_repository(tmp_path / "library")
    run_git(repository, "submodule", "--quiet", "add", str(library), "lib")
    commit_files(repository, {"after.txt": "z\n"})

    files = compare(repository)

    assert files["image.bin"].is_binary
    assert files["image.bin"].hunks == ""
    mode = files["src/app.py"]
    assert (mode.old_mode, mode.new_mode, mode.hunks) == ("100644", "100755", "")
    link = files["README.md"]
    assert (link.status, link.new_mode) == ("M", "120000")
    assert "-hello\n" in link.hunks
    assert "+src/app.py\n" in link.hunks
    assert files["lib"].new_mode == "160000"
    assert "+Subproject commit " in files["lib"].hunks
    assert files["src/app.py"].hunks == ""
    assert files["after.txt"].hunks == "@@ -0,0 +1 @@\n+z\n"


def test_odd_paths_and_contents_become_text_that_can_be_stored(repository: Path) -> None:
    (repository / os.fsdecode(b"latin\xe9.txt")).write_bytes(b"caf\xe9\n")
    commit_files(repository, {"line\nbreak\t": "x\n", "日本.txt": "y\n", "x -> y": "z\n"})

    files = compare(repository)

    assert set(files) == {"latin\\xe9.txt", "line\\nbreak\\t", "日本.txt", "x -> y"}
    assert "caf\N{REPLACEMENT CHARACTER}" in files["latin\\xe9.txt"].hunks
    for file in files.values():
        (file.path + file.hunks).encode()


def test_content_that_looks_like_a_patch_does_not_confuse(repository: Path) -> None:
    text = "diff --git a/x b/x\n@@ -1 +1 @@\n--- a\n+++ b\n"
    commit_files(repository, {"a.patch": text, "b.txt": "b\n"})
    files = compare(repository)
    assert files["a.patch"].hunks.count("\n+") == 4
    assert files["b.txt"].hunks == "@@ -0,0 +1 @@\n+b\n"


def test_huge_changes_are_cut_and_say_so(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_files(
        repository,
        {
            "a-small.txt": "s\n",
            "b-long.txt": "some words\n" * 60_000,
            "c-line.txt": "x" * 600_000,
            "d-big.txt": "y" * 2_000_000,
            "e-small.txt": "e\n",
        },
    )
    files = compare(repository)
    assert not files["a-small.txt"].is_cut
    long = files["b-long.txt"]
    assert long.is_cut
    assert long.additions == 60_000
    assert len(long.hunks) <= diffs.MAX_FILE_BYTES
    assert long.hunks.endswith("+some words\n")
    assert files["c-line.txt"].is_cut
    assert files["d-big.txt"].is_binary  # larger than 1 MB: not looked into
    assert files["e-small.txt"].hunks == "@@ -0,0 +1 @@\n+e\n"

    monkeypatch.setattr(diffs, "MAX_TOTAL_BYTES", 300_000)
    files = compare(repository)
    assert not files["a-small.txt"].is_cut
    assert files["e-small.txt"].is_cut
    assert files["e-small.txt"].hunks == ""
    assert not files["d-big.txt"].is_cut


def test_more_files_than_can_be_shown_are_counted(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diffs, "MAX_FILES", 10)
    commit_files(repository, {f"f{number:02}.txt": "x\n" for number in range(25)})
    found = diff(repository / ".git", "HEAD~1", "HEAD")
    assert (len(found.files), found.omitted_files, found.additions) == (10, 15, 25)


def test_two_equal_commits_differ_in_nothing(repository: Path) -> None:
    assert diff(repository / ".git", "HEAD", "HEAD").files == ()
