"""Keeps two processes of one machine from changing the same part of a bare repository at once.

The hub has two locks, so that a long fetch does not hold up a merge: `fetch` for what mirrors the
user's repository, `work` for the branches of the cards and of the target.
"""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

from agents.workspaces.errors import WorkspaceError

WAIT_SECONDS = 60.0  # what is done under a `work` lock takes milliseconds

_POLL_SECONDS = 0.02
_STALE_SECONDS = 3600.0  # an unfinished pack may belong to somebody who does not hold our lock

# What only the holder of each lock changes, so a lock file of git found there is a dead one's.
_PARTS = {
    "fetch": (
        ("HEAD", "packed-refs", "config", "shallow"),
        ("refs/remotes", "refs/tags"),
    ),
    "delivery": ((), ()),
    "work": ((), ("refs/heads", "refs/kept", "refs/runs")),
}


@contextlib.contextmanager
def locked(
    repository: Path, part: str = "work", *, timeout_seconds: float = WAIT_SECONDS
) -> Iterator[None]:
    """Hold the lock of a `part` of `repository`, which need not exist yet.

    What a killed git left in that part is swept away first. Raises as `holding`.
    """
    repository.parent.mkdir(parents=True, exist_ok=True)
    file = repository.with_name(f".{repository.name}.{part}.lock")
    with holding(file, timeout_seconds=timeout_seconds):
        _sweep(repository, part)
        yield


@contextlib.contextmanager
def holding(lock_file: Path, *, timeout_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold `lock_file`. The kernel gives it free when the process ends, however it ends.

    Raises WorkspaceError with code `busy` when somebody else holds it for too long.
    """
    deadline = time.monotonic() + timeout_seconds
    with lock_file.open("ab") as file:
        while not _try_lock(file.fileno()):
            if time.monotonic() > deadline:
                message = "The project's repository is busy with other work. Try again in a minute."
                raise WorkspaceError(message, code="busy")
            time.sleep(_POLL_SECONDS)
        yield


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep(repository: Path, part: str) -> None:
    files, folders = _PARTS[part]
    for name in files:
        (repository / f"{name}.lock").unlink(missing_ok=True)
    for folder in folders:
        for file in (repository / folder).rglob("*.lock"):
            file.unlink(missing_ok=True)
    if part == "fetch":
        oldest = time.time() - _STALE_SECONDS
        for file in (repository / "objects").glob("*/tmp_*"):
            with contextlib.suppress(FileNotFoundError):
                if file.stat().st_mtime < oldest:
                    file.unlink()
