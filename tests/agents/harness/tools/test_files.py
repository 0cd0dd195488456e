"""The file tools."""

import os

import pytest

from agents.harness.errors import ToolError
from agents.harness.tools import files
from agents.harness.tools.registry import OUTPUT_CHARACTERS, seen_in


def read(context, path, **arguments):
    return files.read_file(context, {"path": path, **arguments})


def write(context, path, content):
    return files.write_file(context, {"path": path, "content": content})


def edit(context, path, old, new, **arguments):
    return files.edit_file(context, {"path": path, "old": old, "new": new, **arguments})


@pytest.fixture
def file(context):
    path = context.workspace / "file.py"
    path.write_text("one\ntwo\nthree\n")
    return path


def test_a_file_is_shown_with_line_numbers(context, file):
    assert read(context, "file.py").text == "1\tone\n2\ttwo\n3\tthree"
    assert read(context, str(file)).text == "1\tone\n2\ttwo\n3\tthree"


def test_a_page_says_how_to_go_on(context, file):
    assert read(context, "file.py", offset=2, limit=1).text == (
        "2\ttwo\n[1 more lines; go on with offset 3]"
    )
    with pytest.raises(ToolError, match="has 3 lines"):
        read(context, "file.py", offset=9)


def test_a_long_file_is_cut_at_whole_lines(context):
    (context.workspace / "long").write_text("x" * 100 + "\n" + ("y" * 99 + "\n") * 5000)
    text = read(context, "long").text
    assert len(text) < OUTPUT_CHARACTERS + 100
    last = text.rpartition("\n")[2]
    shown = text.count("\n")
    assert last == f"[{5001 - shown} more lines; go on with offset {shown + 1}]"


def test_a_page_has_at_most_2000_lines(context):
    (context.workspace / "long").write_text("a\n" * 3000)
    assert read(context, "long").text.endswith("\n[1000 more lines; go on with offset 2001]")


def test_an_endless_line_is_cut(context):
    (context.workspace / "minified.js").write_text("x" * 100_000)
    assert read(context, "minified.js").text.endswith("x [98000 more characters]")


def test_an_empty_file_says_so(context):
    (context.workspace / "empty").touch()
    assert read(context, "empty").text == "[the file is empty]"


def test_a_binary_file_is_not_shown(context):
    (context.workspace / "x.png").write_bytes(b"\x89PNG\0\0")
    assert read(context, "x.png").text == "x.png is a binary file, 6 bytes."


def test_text_in_another_encoding_is_shown_as_well_as_can_be(context):
    (context.workspace / "latin").write_bytes("café\n".encode("latin-1"))
    assert read(context, "latin").text == "1\tcaf\N{REPLACEMENT CHARACTER}"


def test_an_earlier_result_can_be_read_by_its_name(context):
    (context.outputs / "result-1.txt").write_text("all of it\n")
    assert read(context, "output://result-1.txt").text == "1\tall of it"
    for name in ("../secret", "/etc/passwd", ".etc", ""):
        with pytest.raises(ToolError, match="does not name a result"):
            read(context, f"output://{name}")


def test_a_new_file_is_written_with_its_folders(context):
    assert write(context, "src/new.py", "a\nb\n").text == "Created src/new.py: 2 lines, 4 bytes."
    assert (context.workspace / "src/new.py").read_text() == "a\nb\n"


def test_an_existing_file_must_be_read_before_it_is_replaced(context, file):
    with pytest.raises(ToolError, match="Read it before"):
        write(context, "file.py", "new\n")
    read(context, "file.py")
    assert write(context, "file.py", "new").text == "Replaced file.py: 1 lines, 3 bytes."
    assert write(context, "file.py", "newer").text.startswith("Replaced")


def test_writing_what_is_there_already_needs_no_reading(context, file):
    """So a write that a crash has interrupted can run again."""
    assert write(context, "file.py", file.read_text()).text.startswith("Replaced")


def test_a_file_that_somebody_changed_is_not_overwritten(context, file):
    read(context, "file.py")
    file.write_text("one\ntwo\nthree!\n")
    with pytest.raises(ToolError, match="has changed since you read it"):
        write(context, "file.py", "new\n")
    with pytest.raises(ToolError, match="has changed since you read it"):
        edit(context, "file.py", "one", "1")
    read(context, "file.py")
    edit(context, "file.py", "one", "1")


def test_touching_a_file_is_not_changing_it(context, file):
    read(context, "file.py")
    file.touch()
    edit(context, "file.py", "two", "2")
    assert file.read_text() == "one\n2\nthree\n"


def test_an_edit_needs_a_text_that_occurs_once(context, file):
    file.write_text("a = 1\nb = 1\n")
    with pytest.raises(ToolError, match="occurs 2 times"):
        edit(context, "file.py", "1", "2")
    with pytest.raises(ToolError, match="does not occur"):
        edit(context, "file.py", "c = 1", "c = 2")
    with pytest.raises(ToolError, match="the same"):
        edit(context, "file.py", "a", "a")
    with pytest.raises(ToolError, match="empty"):
        edit(context, "file.py", "", "a")
    assert edit(context, "file.py", "b = 1", "b = 2").text == "Changed file.py: line 2."
    assert file.read_text() == "a = 1\nb = 2\n"


def test_an_edit_can_replace_every_occurrence(context, file):
    file.write_text("x y\nx\n")
    assert edit(context, "file.py", "x", "z", replace_all=True).text == (
        "Changed file.py: 2 places, the first on line 1."
    )
    assert file.read_text() == "z y\nz\n"


def test_an_edit_keeps_windows_line_ends_and_bytes_that_are_not_utf8(context, file):
    file.write_bytes(b"caf\xe9\r\none\r\ntwo\r\n")
    edit(context, "file.py", "one\ntwo", "1\n2")
    assert file.read_bytes() == b"caf\xe9\r\n1\r\n2\r\n"


def test_gits_own_files_cannot_be_written(context):
    (context.workspace / "sub").mkdir()
    for path in (".git", ".git/config", "sub/.GIT/hooks/x", "./sub/../.git/config"):
        with pytest.raises(ToolError, match="Git's own files"):
            write(context, path, "x")


def test_a_missing_file_is_named_in_the_error(context):
    for act in (lambda: read(context, "no/such"), lambda: edit(context, "such", "a", "b")):
        with pytest.raises(ToolError, match="does not exist"):
            act()


def test_a_folder_is_listed_with_folders_first(context):
    (context.workspace / "src").mkdir()
    (context.workspace / "b.txt").write_text("12345")
    (context.workspace / "a link").symlink_to("/etc")
    text = files.list_files(context, {"path": "."}).text
    assert text == ".git/\nsrc/\na link\t(symbolic link)\nb.txt\t5"
    assert files.list_files(context, {"path": "src"}).text == "[the folder is empty]"
    with pytest.raises(ToolError, match="symbolic link"):
        files.list_files(context, {"path": "a link"})


def test_a_name_that_is_no_text_is_listed(context):
    (context.workspace / "x").mkdir()
    os.close(os.open(os.fsencode(context.workspace) + b"/x/\xff", os.O_CREAT))
    assert files.list_files(context, {"path": "x"}).text == "\\udcff\t0"


def test_a_long_folder_is_cut(context):
    (context.workspace / "many").mkdir()
    for number in range(1005):
        (context.workspace / "many" / f"{number:04}").touch()
    text = files.list_files(context, {"path": "many"}).text
    assert text.endswith("[5 more entries; use glob to narrow it down]")


def test_what_was_seen_can_be_restored_from_the_results(context, file):
    outputs = [read(context, "file.py"), write(context, "new", "x"), read(context, "new")]
    assert seen_in({"details": output.details} for output in outputs) == context.seen
