"""What the sandbox adds to a command: python -m benchmarks.sandbox [ROUNDS]

Each command runs directly and at each level by turns, so that a busy machine slows all of them.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agents import processes
from agents.sandbox import Sandbox
from agents.sandbox_levels import SandboxLevel
from agents.sandbox_probe import probe
from benchmarks import machine

COMMANDS = (
    "true",
    "git --version",
    "/usr/bin/python3 -c pass",
    "for i in {1..500}; do : >f$i; done",
)
BASE = "direct"
GOAL_MS = 12


def main(rounds: int) -> None:
    """Measure and print."""
    machine.describe()
    with tempfile.TemporaryDirectory() as folder:
        ways: dict[str, Callable[[str], int | None]] = {BASE: _direct(Path(folder))}
        for level in (probe(), probe(only="landlock")):
            if level.name != "none":
                ways[level.name] = _held(Path(folder, level.name), level)
        for command in COMMANDS:
            seconds: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name, way in ways.items():
                    started = time.perf_counter()
                    way(command)
                    seconds[name].append(time.perf_counter() - started)
            for name, found in seconds.items():
                machine.figure(f"{command[:36]}: {name}", found)
                if name != BASE:
                    _added(name, found, seconds[BASE])


def _direct(folder: Path) -> Callable[[str], int | None]:
    environment = {"PATH": os.defpath}
    return lambda command: processes.run(
        ["bash", "--noprofile", "--norc", "-c", command],
        cwd=folder, env=environment, timeout_seconds=60, die_with_parent=False,
    ).exit_code  # fmt: skip


def _held(folder: Path, level: SandboxLevel) -> Callable[[str], int | None]:
    for part in ("work", "scratch", "outputs"):
        (folder / part).mkdir(parents=True)
    shell = Sandbox(
        folder / "work", scratch=folder / "scratch", outputs=folder / "outputs", level=level
    )
    return lambda command: shell.run(command, timeout_seconds=60).exit_code


def _added(name: str, found: list[float], base: list[float]) -> None:
    """The 10th percentile is what it takes when nothing else wants the processors."""
    low, median = (
        1000 * (statistics.quantiles(found, n=10)[at] - statistics.quantiles(base, n=10)[at])
        for at in (0, 4)
    )
    machine.value(
        f"  added by {name}",
        f"{low:.1f} ms (10th percentiles), {median:.1f} ms (medians)",
        goal=f"<= {GOAL_MS} ms" if name == "bubblewrap" else "",
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
