"""Finds the best sandbox that works on this machine, by running a command in it.

A level is never dropped silently: it stands on the board, on the workers' page and in every question,
and the policy asks more where it is lower. `python -m agents.sandbox_probe` says it at a terminal,
unless it is the best.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from agents import cgroups, landlock, seccomp
from agents.sandbox import Sandbox
from agents.sandbox_levels import BUBBLEWRAP, LANDLOCK, NONE, SandboxLevel

_PROBE_SECONDS = 10.0
_NO_NESTED_NAMESPACES = "--disable-userns"  # bubblewrap 0.8 and later
# What engines leave in the containers that they start: Docker and podman.
_CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
# bubblewrap makes namespaces and mounts a /proc of its own, which the default profiles forbid.
CONTAINER_OPTIONS = ("seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined")
_ASKS = "so each shell command that does more than read has to be approved"


@cache
def probe(*, only: str = BUBBLEWRAP) -> SandboxLevel:
    """Find the best level, or the best not above `only`, by running a command in it. Cached."""
    return _find(only)


def look_again() -> SandboxLevel:
    """Find the best level as things are now; what `probe` says stays as it was."""
    return _find(BUBBLEWRAP)


def _find(best: str) -> SandboxLevel:
    why = ""
    if best == BUBBLEWRAP:
        level, why = _bubblewrap()
        if level is not None:
            return level
    if best != NONE:
        level, missing = _landlock(why)
        if level is not None:
            return level
        why = f"{why} {missing}".strip()
    return SandboxLevel(NONE, why or f"No sandbox was asked for, {_ASKS}.")


def _bubblewrap() -> tuple[SandboxLevel | None, str]:
    """The level, or None and why not."""
    program = shutil.which("bwrap")
    if program is None:
        return None, (
            "bubblewrap is not installed. Install it (for example: apt install bubblewrap) and start again."
        )
    filters = seccomp.namespaced_filter() is not None
    why = ""
    for flags, filtered in (
        ((_NO_NESTED_NAMESPACES,), filters),
        ((), filters),
        ((_NO_NESTED_NAMESPACES,), False),
        ((), False),
    ):
        lacks = [] if flags else [f"this version does not know {_NO_NESTED_NAMESPACES}"]
        lacks += [] if filtered else ["system calls are not filtered on this machine"]
        lacks += _lacks_limit()
        note = f" But {', and '.join(lacks)}." if lacks else ""
        level = SandboxLevel(
            BUBBLEWRAP, f"Commands run in bubblewrap.{note}", program, flags, filtered
        )
        why = _try(level)
        if not why:
            return level, ""
    return None, f"bubblewrap does not work here ({why}). {remedy()}"


def remedy(container_marks: Iterable[Path] = _CONTAINER_MARKS) -> str:
    """Return what to do for bubblewrap. No engine says what it forbids in a container, so all is named."""
    allow = "The machine must allow unprivileged user namespaces"
    if any(mark.exists() for mark in container_marks):
        options = " ".join(f"--security-opt {option}" for option in CONTAINER_OPTIONS)
        return f"This is a container: start it with {options} and look again. {allow} too."
    return f"{allow} (kernel, container or AppArmor)."


def _landlock(why_not_better: str) -> tuple[SandboxLevel | None, str]:
    why = landlock.missing()
    if not why:
        abi = landlock.version()
        lacks = "".join(f" And {one}." for one in _lacks_limit())
        level = SandboxLevel(
            LANDLOCK,
            f"Commands are held by Landlock, version {abi}: less than by bubblewrap.{lacks} {why_not_better}".strip(),
            filters=True,
            abi=abi,
        )
        why = _try(level)
        if not why:
            return level, ""
    return None, f"Landlock cannot take its place ({why}), {_ASKS}."


def _lacks_limit() -> list[str]:
    """The limit of processes exempts root, unless a control group can be made."""
    if landlock.is_root() and cgroups.parent_group() is None:
        return ["the worker runs as root, so the number of processes is not limited"]
    return []


def _try(level: SandboxLevel) -> str:
    """Run one command at `level`; return why it failed, or an empty string."""
    with tempfile.TemporaryDirectory(prefix="pullcord-probe-") as name:
        folder = Path(name).resolve()
        for part in ("workspace", "scratch", "outputs", "etc"):
            (folder / part).mkdir()
        sandbox = Sandbox(
            folder / "workspace",
            scratch=folder / "scratch",
            outputs=folder / "outputs",
            level=level,
            etc=folder / "etc",  # to copy the real one takes longer than all the rest
        )
        # What must not work is tried too: a kernel may accept a rule and not keep it.
        outside = folder / "outside"
        command = f"echo works; echo x 2>/dev/null >{outside}"
        try:
            result = sandbox.run(command, timeout_seconds=_PROBE_SECONDS)
        except OSError as error:
            return str(error)
        if outside.exists():
            return "a command could write outside its folder"
    if result.output == b"works\n":
        return ""
    return result.output.decode(errors="replace").strip()[-300:] or f"it {result.ended_by}"


def remark() -> str:
    """Return a line on a level that is not the best, with what to do about it."""
    level = probe()
    return "" if level.name == BUBBLEWRAP else f"  Sandbox level {level.name}: {level.message}\n"


if __name__ == "__main__":
    sys.stdout.write(remark())
