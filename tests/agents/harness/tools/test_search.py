"""Searching the workspace."""

import contextlib
import re
import shutil
import time

import pytest

from agents.harness.errors import ToolError
from agents.harness.tools import search


@pytest.fixture(autouse=True)
def files(context):
    for name, text in {
        "src/app.py": "def claim():\n    return 1\n",
        "src/deep/more.py": "claim()\n",
        "src/style.css": "a{}\n",
        "src/page.html": "<p>\n",
        "notes [x].txt": "claim\n",
        ".env": "TOKEN=claim\n",
        "sub/.ENV": "TOKEN=claim\n",
        ".gitignore": "ignored/\n",
        "ignored/x.py": "claim\n",
        "é.py": "claim\n",
    }.items():
        path = context.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (context.workspace / "picture.png").write_bytes(b"\0claim")
    (context.workspace / "link.py").symlink_to("/etc/passwd")


def glob(context, pattern):
    return search.glob(context, {"pattern": pattern}).text.split("\n")


def grep(context, pattern, **arguments):
    return search.grep(context, {"pattern": pattern, **arguments}).text.split("\n")


def test_a_pattern_without_a_slash_matches_in_every_folder(context):
    assert glob(context, "*.py") == ["link.py", "src/app.py", "src/deep/more.py", "é.py"]


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("src/*.py", ["src/app.py"]),
        ("src/**/*.py", ["src/app.py", "src/deep/more.py"]),
        ("**/more.*", ["src/deep/more.py"]),
        ("*.{css,html}", ["src/page.html", "src/style.css"]),
        ("notes \\[x\\].txt", ["notes [x].txt"]),
    ],
)
def test_globs_work_as_people_expect(context, pattern, paths):
    assert glob(context, pattern) == paths


def test_a_glob_that_finds_nothing_says_so(context):
    assert glob(context, "*.rs")[0].startswith("[no file matches")
    assert glob(context, "ignored/*")[0].startswith("[no file matches")


def test_a_glob_outside_the_workspace_is_refused(context):
    for pattern in ("../*", "/etc/*"):
        with pytest.raises(ToolError, match="outside"):
            glob(context, pattern)


def test_lines_are_found_in_text_files_that_git_does_not_ignore(context):
    assert grep(context, r"\bclaim\b") == [
        "notes [x].txt:1:claim",
        "src/app.py:1:def claim():",
        "src/deep/more.py:1:claim()",
        "é.py:1:claim",
    ]


def test_secrets_are_not_searched(context):
    assert not any(".env" in line.casefold() for line in grep(context, "claim"))
    assert grep(context, "TOKEN", path=".env")[0].startswith("[no line matches")


def test_a_search_can_be_narrowed_to_a_folder_and_a_pattern(context):
    assert grep(context, "claim", path="src/deep") == ["src/deep/more.py:1:claim()"]
    assert grep(context, "claim", path="src", glob="app*") == ["src/app.py:1:def claim():"]
    assert grep(context, "claim", glob="*.txt") == ["notes [x].txt:1:claim"]
    assert grep(context, "claim", path="notes [x].txt") == ["notes [x].txt:1:claim"]


def test_a_search_does_not_leave_the_workspace(context):
    for arguments in ({"path": ".."}, {"path": "/etc"}, {"glob": "../*"}):
        with pytest.raises(ToolError, match="outside"):
            grep(context, "root", **arguments)
    with pytest.raises(ToolError, match="symbolic link"):
        grep(context, "root", path="link.py")
    assert grep(context, "root:")[0].startswith("[no line matches")


def test_a_broken_pattern_is_explained(context):
    with pytest.raises(ToolError, match="missing"):
        grep(context, "(")


@pytest.mark.parametrize(
    "pattern", ["$(touch pwned)", "'; touch pwned; '", "-f/etc/passwd", "`id`"]
)
def test_a_pattern_is_never_read_by_the_shell(context, pattern):
    assert grep(context, f"claim{re.escape(pattern)}")
    search.glob(context, {"pattern": f"{pattern}.py"})
    assert not (context.workspace / "pwned").exists()


def test_a_pattern_that_takes_forever_ends(context):
    (context.workspace / "a.txt").write_text("a" * 40 + "b\n")
    started = time.monotonic()
    with contextlib.suppress(ToolError):
        grep(context, "(a+)+$")
    assert time.monotonic() - started < 20


def test_many_matches_and_long_lines_are_cut(context):
    for number in range(20):
        (context.workspace / f"m{number:02}.txt").write_text("match\n" * 100)
    (context.workspace / "wide.txt").write_text("wide " + "x" * 5000 + "\n")
    assert grep(context, "match")[-1] == "[600 more lines; narrow the search down]"
    assert len(grep(context, "wide")[0]) < 600


def test_a_folder_that_is_no_repository_can_be_searched(context):
    shutil.rmtree(context.workspace / ".git")
    assert glob(context, "src/*.py") == ["src/app.py"]
    assert grep(context, "return") == ["src/app.py:2:    return 1"]
    assert not (context.workspace / ".git").exists()
