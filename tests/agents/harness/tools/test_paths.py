"""Paths: nothing outside the workspace can be reached, whatever happens meanwhile."""

import ctypes
import os
import sys
import threading
from pathlib import Path

import pytest

from agents.harness.errors import ToolError
from agents.harness.tools.paths import folder_inside, parts_inside, read_inside, write_inside

LIBC = ctypes.CDLL(None)
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "folder").mkdir(parents=True)
    (tmp_path / "root" / "folder" / "file").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("a/b", ("a", "b")),
        ("./a//b/", ("a", "b")),
        ("a/../b", ("b",)),
        (".", ()),
        ("ROOT/a", ("a",)),
        ("ROOT", ()),
        ("...", ("...",)),
        ("a b\n", ("a b\n",)),
    ],
)
def test_a_path_inside_is_split(root, written, parts):
    assert parts_inside(root, written.replace("ROOT", str(root))) == parts


@pytest.mark.parametrize(
    "written",
    ["..", "../x", "a/../../x", "/etc/passwd", "ROOTx/a", "ROOT/../secret", "", " ", "\0"],
)
def test_a_path_that_leads_out_is_refused(root, written):
    with pytest.raises(ToolError, match=r"outside|empty"):
        parts_inside(root, written.replace("ROOT", str(root)))


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "folder/file", "nowhere"])
def test_a_link_is_neither_read_nor_written_and_the_error_names_its_target(root, target):
    (root / "link").symlink_to(target)
    with pytest.raises(ToolError, match=f"symbolic link to {target}"):
        read_inside(root, ("link",), most_bytes=10)
    with pytest.raises(ToolError, match=f"symbolic link to {target}"):
        write_inside(root, ("link",), b"x")
    assert (root / "link").is_symlink()
    assert (root.parent / "secret").read_text() == "outside"


def test_a_link_among_the_folders_is_not_followed(root):
    (root / "up").symlink_to("..")
    with pytest.raises(ToolError, match="symbolic link"):
        read_inside(root, ("up", "secret"), most_bytes=10)
    with pytest.raises(ToolError, match="symbolic link"):
        write_inside(root, ("up", "new"), b"x")
    assert not (root.parent / "new").exists()


def test_a_dangling_link_among_the_folders_is_not_made_into_a_folder(root):
    (root / "gone").symlink_to("../new")
    with pytest.raises(ToolError, match="symbolic link"):
        write_inside(root, ("gone", "file"), b"x")
    assert not (root.parent / "new").exists()


def test_writing_keeps_the_mode_and_leaves_no_draft(root):
    (root / "script").write_text("old")
    (root / "script").chmod(0o755)
    write_inside(root, ("script",), b"new")
    assert (root / "script").read_text() == "new"
    assert (root / "script").stat().st_mode & 0o777 == 0o755
    assert names_in(root) == ["folder", "script"]


def test_writing_does_not_change_another_name_of_the_same_file(root):
    os.link(root.parent / "secret", root / "hard")
    write_inside(root, ("hard",), b"changed")
    assert (root.parent / "secret").read_text() == "outside"


def test_missing_folders_are_made_for_writing_only(root):
    with pytest.raises(ToolError, match="new does not exist"):
        read_inside(root, ("new", "file"), most_bytes=10)
    write_inside(root, ("new", "deep", "file"), b"x")
    assert (root / "new/deep/file").read_text() == "x"


def test_special_files_are_refused_without_waiting(root):
    os.mkfifo(root / "pipe")
    with pytest.raises(ToolError, match="not a regular file"):
        read_inside(root, ("pipe",), most_bytes=10)
    with pytest.raises(ToolError, match="special file"):
        write_inside(root, ("pipe",), b"x")


def test_a_file_is_not_a_folder_and_a_folder_not_a_file(root):
    with pytest.raises(ToolError, match="is not a folder"):
        read_inside(root, ("folder", "file", "x"), most_bytes=10)
    with pytest.raises(ToolError, match="is a folder"):
        read_inside(root, ("folder",), most_bytes=10)
    with pytest.raises(ToolError, match="is a folder"):
        write_inside(root, ("folder",), b"x")


def test_a_link_that_comes_and_goes_is_never_followed(root, tmp_path):
    """A thread exchanges a folder for a link that leads out, as fast as it can."""
    if sys.platform != "linux":
        return  # only Linux can exchange two names at once
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("outside")
    (root / "spare").symlink_to(outside)
    stop = threading.Event()

    def exchange() -> None:
        here, there = (os.fsencode(root / name) for name in ("folder", "spare"))
        while not stop.is_set():
            LIBC.renameat2(AT_FDCWD, here, AT_FDCWD, there, RENAME_EXCHANGE)

    thread = threading.Thread(target=exchange)
    thread.start()
    outcomes: set[bytes | str] = set()
    try:
        for number in range(1500):
            try:
                outcomes.add(read_inside(root, ("folder", "file"), most_bytes=10))
                write_inside(root, ("folder", "new"), b"%d" % number)
            except ToolError as error:
                outcomes.add(str(error).split()[1])
    finally:
        stop.set()
        thread.join()
    assert b"inside" in outcomes
    assert b"outside" not in outcomes
    assert names_in(outside) == ["file"]


def test_descriptors_are_closed_whatever_happens(root):
    before = len(names_in(Path("/dev/fd")))
    for _ in range(3):
        with folder_inside(root, ("folder",)):
            pass
        with pytest.raises(ToolError):
            read_inside(root, ("folder", "missing", "x"), most_bytes=1)
        write_inside(root, ("folder", "file"), b"x")
    assert len(names_in(Path("/dev/fd"))) == before
