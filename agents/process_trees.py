"""Find and kill every process that a command left behind, also those that left its session.

A command is recognised by three marks: its process group, its session, and the variable
`PULLCORD_RUN` that all its descendants inherit (a double fork or `setsid` keeps it). Where there is
no `/proc` (macOS) only the process group is killed.
"""

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

MARKER = "PULLCORD_RUN"
_PR_SET_DUMPABLE = 4  # prctl(2); a program that is started begins anew

# A process that forks as fast as it can may slip through one pass; each pass kills all it sees.
_MAX_PASSES = 50

_PROC = Path("/proc")
_LAST_PID_FIELD = 4  # of /proc/loadavg: the pid that was given out last


def kill_tree(root: int, *, marker: str, reaped: bool) -> None:
    """Kill the group and the session that `root` leads, and every process that carries `marker`.

    When `root` has been `reaped`, its number may belong to somebody else by now, so only the
    marker counts; as long as it is alive or a zombie, the number is safe to use.
    """
    if not reaped:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(root, signal.SIGKILL)
    if not hasattr(os, "pidfd_open"):
        return
    wanted = f"{MARKER}={marker}".encode()
    session = None if reaped else root
    for _ in range(_MAX_PASSES):
        killed = [pid for pid in _younger_than(root) if _kill_if_ours(pid, session, wanted)]
        if not killed:
            return


def tasks_of(uid: int) -> int:
    """How many processes and threads a user has now: what the kernel's limit of processes counts."""
    count = 0
    for name in os.listdir(_PROC):  # noqa: PTH208  this runs for every command
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"{_PROC}/{name}").st_uid == uid:  # noqa: PTH116
                count += len(os.listdir(f"{_PROC}/{name}/task"))  # noqa: PTH208
    return count


def kill_left_in(folder: Path) -> int:
    """Kill the commands that a lost or frozen worker left in `folder`; return how many.

    Only what carries a mark of ours: a person's own shell may be there too.
    """
    if not hasattr(os, "pidfd_open"):
        return 0
    pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    return sum(_kill_if_left(pid, str(folder).encode()) for pid in pids if pid != os.getpid())


def _kill_if_left(pid: int, folder: bytes) -> bool:
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if _is_left(_PROC / str(pid), folder):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
        finally:
            os.close(handle)
    return False


def _is_left(process: Path, folder: bytes) -> bool:
    """Whether it is a marked process that works in `folder`, or a sandbox made for it."""
    if f"\0{MARKER}=".encode() not in b"\0" + (process / "environ").read_bytes():
        return False
    if folder in (process / "cmdline").read_bytes().split(b"\0"):
        return True
    place = os.fsencode((process / "cwd").readlink())
    return place == folder or place.startswith(folder + b"/")


def _younger_than(root: int) -> list[int]:
    """Pids that were given out after `root`, or all pids if the counter has wrapped since then."""
    try:
        last = int((_PROC / "loadavg").read_bytes().split()[_LAST_PID_FIELD])
        names = os.listdir(_PROC)  # noqa: PTH208  this runs for every command; strings are enough
    except (OSError, ValueError, IndexError):
        return []
    pids = [int(name) for name in names if name.isdigit()]
    if last < root:
        return [pid for pid in pids if pid not in (root, os.getpid())]
    return [pid for pid in pids if root < pid <= last and pid != os.getpid()]


def _kill_if_ours(pid: int, session: int | None, wanted: bytes) -> bool:
    """Kill `pid` if it is a living descendant of the command; say whether it was.

    The process is held by a pidfd before it is looked at, so a pid that is reused in between
    can neither be mistaken for ours nor be killed.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _is_ours(pid, session, wanted):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _is_ours(pid: int, session: int | None, wanted: bytes) -> bool:
    folder = _PROC / str(pid)
    # The name in parentheses may itself hold blanks and parentheses; the fields start after it.
    fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
    state, _parent, _group, its_session = fields[:4]
    if state in (b"Z", b"X"):
        return False
    if int(its_session) == session:
        return True
    return wanted in (folder / "environ").read_bytes().split(b"\0")


def hide_own_environment() -> None:
    """Keep commands of the same user from reading our variables and memory in /proc (Linux only).

    In the sandbox our processes are not there at all; this is for machines without one.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
