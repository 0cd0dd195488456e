"""The control groups that limit processes: one for each command at a time, used again, never left."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agents import cgroups

PARENT = cgroups.parent_group()
pytestmark = pytest.mark.skipif(PARENT is None, reason="no control group can be made here")


def group_of(line: str | None) -> Path:
    assert line is not None
    return Path(shlex.split(line)[2].removeprefix(">")).parent


def behind(line: str, *argv: str) -> list[str]:
    return ["/bin/sh", "-c", f'{line}; exec "$@"', "sh", *argv]


def test_a_group_holds_what_is_started_behind_its_line():
    with cgroups.process_limit(7) as line:
        assert line is not None
        group = group_of(line)
        assert (group / "pids.max").read_text().strip() == "7"
        seen = subprocess.run(
            behind(line, "cat", "/proc/self/cgroup"), capture_output=True, text=True, check=True
        )
        assert group.name in seen.stdout


def test_a_group_is_used_again_when_it_is_empty_and_by_one_command_at_a_time():
    cgroups.remove_idle()  # what other tests of this process have left
    with cgroups.process_limit(7) as first:
        with cgroups.process_limit(8) as second:
            assert group_of(first) != group_of(second)
        with cgroups.process_limit(9) as third:
            assert group_of(third) == group_of(second)
            assert (group_of(third) / "pids.max").read_text().strip() == "9"


def test_a_group_in_which_something_still_runs_is_not_used_again():
    with cgroups.process_limit(7) as line:
        assert line is not None
        group = group_of(line)
        left = subprocess.Popen(behind(line, "sleep", "60"))
        while (group / "pids.current").read_text().strip() == "0":
            assert left.poll() is None
    try:
        with cgroups.process_limit(7) as other:
            assert group_of(other) != group
    finally:
        left.kill()
        left.wait()


def test_a_group_that_somebody_removed_is_not_used_again():
    with cgroups.process_limit(7) as line:
        group = group_of(line)
    group.rmdir()
    with cgroups.process_limit(7) as other:
        assert group_of(other) != group
        assert group_of(other).exists()


def test_a_process_that_ends_leaves_no_group_and_the_next_clears_up_after_one_that_was_killed():
    made = "from agents import cgroups\nwith cgroups.process_limit(7) as p: pass\n"
    say = "print(p.split()[2][1:].rpartition('/')[0], flush=True)\n"
    ended = run_python(made + say)
    assert not ended.exists()
    killed = run_python(made + say + "import os; os.kill(os.getpid(), 9)\n")
    assert killed.exists()
    run_python(made + say)
    assert not killed.exists()


def run_python(program: str) -> Path:
    """Run `program` in a process of its own and return the group that it names."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(cgroups.__file__).parents[1])},
    )
    assert done.stdout, done.stderr
    return Path(done.stdout.strip())
