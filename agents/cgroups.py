"""A limit for the number of processes that also holds for root: a control group of a command's own.

The kernel's limit per user (RLIMIT_NPROC) exempts root, and outside a user namespace it counts what
the user runs besides. A group counts just the command and its descendants. It needs the right to
make one beside or below our own; where there is none, nothing is made and the answer is None.
A group that a command has left is used again, so nobody waits for the last of the killed to go.
"""

import atexit
import contextlib
import os
import secrets
import shlex
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_EMPTY_SECONDS = 1.0  # how long the killed may take to leave a group when we end
_MOST_IDLE = 32
_MEMBERSHIP = Path("/proc/self/cgroup")
_MOUNTS = Path("/proc/self/mountinfo")

_idle: list[Path] = []
_idle_lock = threading.Lock()


@contextlib.contextmanager
def process_limit(most: int) -> Iterator[str | None]:
    """A line of shell that puts the shell into a group of at most `most` processes, or None."""
    group = _take(most)
    if group is None:
        yield None
        return
    try:
        yield f"echo 0 >{shlex.quote(str(_entrance(group)))} || exit 126"
    finally:
        _give_back(group)


def _entrance(group: Path) -> Path:
    """The file into which the shell that becomes the command writes "0", which means itself.

    A single thread that moves itself ("tasks", first version only) is spared the kernel's wait for all
    the others, which takes 10 to 20 ms for a process named by its number.
    """
    tasks = group / "tasks"
    return tasks if tasks.exists() else group / "cgroup.procs"


def _take(most: int) -> Path | None:
    """A group in which nothing runs."""
    parent = parent_group()
    if parent is None:
        return None
    with _idle_lock:
        for group in _idle:
            if _is_empty(group):
                _idle.remove(group)
                (group / "pids.max").write_text(str(most))
                return group
    return _made(parent, most)


def _give_back(group: Path) -> None:
    with _idle_lock:
        if len(_idle) < _MOST_IDLE:
            _idle.append(group)
            return
    _remove(group)


def _is_empty(group: Path) -> bool:
    try:
        return (group / "pids.current").read_text().strip() == "0"
    except OSError:  # somebody has cleared it away
        return False


@atexit.register
def remove_idle() -> None:
    """Remove the groups that wait to be used again."""
    with _idle_lock:
        while _idle:
            _remove(_idle.pop())


@cache
def parent_group() -> Path | None:
    """The folder below which a group with a limit of processes can be made; None if nowhere."""
    for candidate in _candidates():
        group = _made(candidate, 2)
        if group is not None:
            _remove(group)
            _sweep(candidate)
            return candidate
    return None


def _candidates() -> Iterator[Path]:
    """Our own group, in the first version of control groups; below or beside it in the second."""
    try:
        lines = _MEMBERSHIP.read_text().splitlines()
        mounts = _MOUNTS.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        number, controllers, own = line.split(":", 2)
        if "pids" in controllers.split(","):
            if (mount := _mount_of(mounts, "cgroup", "pids")) is not None:
                yield mount / own.lstrip("/")
        elif number == "0" and (mount := _mount_of(mounts, "cgroup2", "")) is not None:
            here = mount / own.lstrip("/")
            yield from (here, here.parent) if here != mount else (here,)


def _mount_of(mounts: list[str], kind: str, controller: str) -> Path | None:
    for line in mounts:
        before, _, after = line.partition(" - ")
        filesystem, _, options = after.split(" ", 2)
        if filesystem == kind and (not controller or controller in options.split(",")):
            return Path(before.split(" ")[4])
    return None


def _made(parent: Path, most: int) -> Path | None:
    group = parent / f"pullcord-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        group.mkdir()
    except OSError:
        return None
    try:
        (group / "pids.max").write_text(str(most))
    except OSError:  # the controller is not passed on to groups here
        _remove(group)
        return None
    return group


def _sweep(parent: Path) -> None:
    """Remove what processes left that were killed; a group with somebody in it stays by itself."""
    for group in parent.glob("pullcord-*-*"):
        owner = group.name.split("-")[1]
        if not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                group.rmdir()


def _remove(group: Path) -> None:
    deadline = time.monotonic() + _EMPTY_SECONDS
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:  # an empty one is harmless; a full one is a bug
                return
            time.sleep(0.005)
        else:
            return
