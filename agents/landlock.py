"""What a command may touch where bubblewrap does not work: rules for Landlock, and how to start with them.

Landlock takes rights away from a process that otherwise stays where it is: it sees the machine's
processes and names of files, and can read and change only what is listed here.
"""

import contextlib
import ctypes
import os
import platform
import secrets
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from agents.sandbox_mounts import PrivateGit, etc_paths, system_folders
from agents.seccomp import shared_filter

LAUNCHER = Path(__file__).with_name("landlock_launcher.py")
# Below 3 (Linux 6.2) any file of the user's can be emptied: only opening for writing is held.
LOWEST_ABI = 3
SIGNALS_SINCE = 6  # Linux 6.12; before it a command may send no signal at all

_CREATE_RULESET, _VERSION_ONLY = 444, 1
# Git must not want to refresh its index, which it may only read.
VARIABLES = {"GIT_OPTIONAL_LOCKS": "0"}
_DEVICES = ("null", "zero", "full", "random", "urandom")


@cache
def version() -> int:
    """The version of Landlock that the kernel offers; 0 if it has none or it is switched off."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    number = libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), _VERSION_ONLY)
    return max(int(number), 0)


def missing() -> str:
    """Why Landlock cannot be used here, as the end of a sentence; empty if it can."""
    if not version():
        return "the kernel has no Landlock, or it is switched off"
    if version() < LOWEST_ABI:
        return f"Landlock is of version {version()} here, and {LOWEST_ABI} is needed (Linux 6.2)"
    if shared_filter(signals=True, network=False) is None:
        return f"there is no system-call filter for {platform.machine()}"
    return ""


def system_filter(abi: int, *, network: bool) -> bytes:
    """The filter of system calls that belongs to a version of Landlock."""
    program = shared_filter(signals=abi >= SIGNALS_SINCE, network=network)
    assert program is not None  # noqa: S101  `missing` was asked before
    return program


def rules(
    abi: int,
    *,
    writable: Sequence[Path],
    readable: Sequence[Path],
    git: PrivateGit | None,
    hidden: Sequence[Path],
    network: bool,
) -> bytes:
    """The text of the rules, as the launcher reads it."""
    fields = [str(abi), "net" if network else ""]
    for folder in writable:
        fields += ["w", str(folder)]
    for path in [*_system(), *readable]:
        for visible in without(path, hidden):
            fields += ["r", str(visible)]
    for path in _git(git) if git is not None else ():
        fields += ["r", str(path)]
    for name in _DEVICES:
        fields += ["d", f"/dev/{name}"]
    return "\0".join(fields).encode(errors="surrogateescape")


def command(argv: Sequence[str], *, rules_fd: int, filter_fd: int) -> list[str]:
    """`argv` behind the launcher."""
    python = sys.executable
    return [python, "-I", "-S", str(LAUNCHER), str(rules_fd), str(filter_fd), *argv]


def without(path: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """`path`, or what is in it except what is `hidden`: Landlock knows no exceptions."""
    if any(path.is_relative_to(one) for one in hidden):
        return
    if not any(one.is_relative_to(path) for one in hidden):
        yield path
        return
    for child in sorted(path.iterdir()):
        if not child.is_symlink():
            yield from without(child, hidden)


def _system() -> Iterator[Path]:
    yield from system_folders()
    yield from etc_paths()
    # Programs look for the machine's processors and memory there. Of other processes it shows no
    # environment and no files, for Landlock refuses to trace them.
    yield Path("/proc")


def _git(git: PrivateGit) -> Iterator[Path]:
    """The shared repository to read, without the entries of other cards."""
    try:
        children = sorted(git.common.iterdir())
    except OSError:
        return
    yield from (child for child in children if child.name != "worktrees")
    yield git.entry
    yield from git.alternates()


@contextlib.contextmanager
def unchanged(file: Path, *, aside: Path) -> Iterator[None]:
    """Put `file` back if a command replaces it; what lies there instead is moved to `aside`.

    In a folder that may be changed Landlock cannot protect a single file. Git of a person who
    looks into a worktree reads its `.git`, and would run what another one names.
    """
    before = _content(file)
    try:
        yield
    finally:
        if before is not None and _content(file) != before:
            if file.is_symlink() or file.exists():
                file.rename(aside / f"replaced{file.name}-{secrets.token_hex(4)}")
            file.write_bytes(before)


def _content(file: Path) -> bytes | None:
    """What a regular file holds; None if it is something else."""
    return file.read_bytes() if file.is_file() and not file.is_symlink() else None


def is_root() -> bool:
    """Whether commands would have the rights of root over what they may touch."""
    return os.geteuid() == 0
