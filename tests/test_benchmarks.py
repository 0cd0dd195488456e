"""Every program in benchmarks/ starts and does one tiny round, so that a figure can be had when it is needed.

How fast something is, no test asserts: the machine is busy with other tests.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases import SHARED
from tests.product import ROOT
from tests.warm import SHARED_TEMPLATE

# The smallest round of each, and the start of a line that only a whole round prints.
ROUNDS = {
    "board": ("--cards 12", "the page's css"),
    "live": ("--cards 12 --watchers 2 --moves 7 --lines 50 --seconds 0.5", "log: written"),
    "redaction": ("", "  of a core"),
    "sandbox": ("2", "for i in"),
    "start": ("--repeat 1 --idle-seconds 0.2 --settle-seconds 0", "second `make run` -> a worker"),
    "way": ("--repeat 1 --files 40 --turns 3", "reply received"),
    "workspaces": ("--files 40 --rounds 1", "remove_worktree"),
}
# What the tests have made ready, and nothing else that they have set.
ENVIRONMENT = {
    name: os.environ[name] for name in ("PATH", SHARED, SHARED_TEMPLATE) if name in os.environ
}


def programs() -> set[str]:
    """Return the names of what can be run."""
    return {
        path.stem for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text()
    }


def test_each_benchmark_has_a_round_here() -> None:
    assert programs() == set(ROUNDS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(ROUNDS))
def test_a_benchmark_does_a_round(name: str, tmp_path: Path) -> None:
    arguments, last = ROUNDS[name]
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments.split()],
        cwd=ROOT,
        env=ENVIRONMENT | {"HOME": os.environ.get("HOME", str(tmp_path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert any(line.startswith(last) for line in done.stdout.splitlines()), done.stdout
