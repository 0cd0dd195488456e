"""Where everything has to be there, nothing can be left out without being seen."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.completeness import ALLOWED
from tests.databases import REQUIRE_ALL, uses_database
from tests.order import HEAVY, longest_first
from tests.product import ROOT

SKIPS = {
    "by a mark": "@pytest.mark.skipif(True, reason='no bubblewrap')\ndef test_it(): pass",
    "while it runs": "def test_it():\n    pytest.skip('no bubblewrap')",
    "by a fixture": (
        "@pytest.fixture\ndef level(): pytest.skip('no bubblewrap')\ndef test_it(level): pass"
    ),
    "with its file": ("pytest.skip('no bubblewrap', allow_module_level=True)\ndef test_it(): pass"),
    "as a known failure": (
        "@pytest.mark.xfail(reason='no bubblewrap')\ndef test_it(): assert False"
    ),
}


def outcome(folder: Path, text: str, *, required: bool) -> subprocess.CompletedProcess[str]:
    """Run a file of tests in a pytest of its own that has the hooks."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(f"import pytest\n{text}\n")
    environment = {name: value for name, value in os.environ.items() if name != REQUIRE_ALL}
    environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if required:
        environment[REQUIRE_ALL] = "1"
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.completeness",
            "-p",
            "no:cacheprovider",
        ],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("way", SKIPS)
def test_what_is_left_out_fails_where_nothing_may_be(tmp_path: Path, way: str):
    done = outcome(tmp_path, SKIPS[way], required=True)
    assert done.returncode != 0, done.stdout
    assert "no bubblewrap" in done.stdout
    assert f"{REQUIRE_ALL}=1" in done.stdout


def test_elsewhere_a_machine_runs_what_it_can(tmp_path: Path):
    done = outcome(tmp_path, SKIPS["by a mark"], required=False)
    assert done.returncode == 0, done.stdout
    assert "1 skipped" in done.stdout


def test_what_passes_still_passes_where_nothing_may_be_left_out(tmp_path: Path):
    done = outcome(tmp_path, "def test_it(): pass", required=True)
    assert done.returncode == 0, done.stdout


def test_what_may_be_left_out_exists():
    for name in ALLOWED:
        path, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), name


class Item:
    """As much of a test as is looked at."""

    def __init__(self, nodeid: str = "", *, fixtures: tuple[str, ...] = (), mark: str = "") -> None:
        self.nodeid = nodeid
        self.fixturenames = fixtures
        self._mark = mark

    def get_closest_marker(self, name: str) -> object:
        return name == self._mark or None


@pytest.mark.parametrize("mark", ["django_db", "process", "browser", "postgres"])
def test_what_reaches_the_database_in_any_way_runs_on_each(mark: str):
    assert uses_database(Item(mark=mark))  # type: ignore[arg-type]
    assert uses_database(Item(fixtures=("tmp_path", "db")))  # type: ignore[arg-type]
    assert not uses_database(Item(fixtures=("tmp_path",)))  # type: ignore[arg-type]


def test_what_says_that_one_database_is_enough_runs_on_the_first_only():
    assert not uses_database(Item(mark="one_database", fixtures=("db",)))  # type: ignore[arg-type]


def test_the_longest_files_come_first_and_the_others_stay_in_their_order():
    longest, long = sorted(HEAVY, key=lambda path: -HEAVY[path])[:2]
    names = ["tests/b.py::test_1", f"{long}::test_1", "tests/a.py::test_1", f"{longest}::test_2"]
    shuffled: Any = [Item(name) for name in names]
    ordered = longest_first(shuffled)
    assert [item.nodeid for item in ordered] == [names[3], names[1], names[0], names[2]]


def test_the_long_files_exist():
    assert [path for path in HEAVY if not (ROOT / path).is_file()] == []
