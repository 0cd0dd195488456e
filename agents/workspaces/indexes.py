"""What is known of the harness's own index of a worktree: whether it is whole, and which commit it is equal to."""

import hashlib
import threading
from pathlib import Path

_CHECKSUM_BYTES = 20  # at the end of an index
_MOST_KNOWN = 256

# By index: its checksum, and the commit whose tree it held then. The same checksum is the same index.
_known: dict[Path, tuple[bytes, str]] = {}
_lock = threading.Lock()


def is_intact(index: Path) -> bool:
    """Whether the index is as git wrote it. Git does not look, and a damaged one may read as empty:
    every file would be taken as deleted.
    """
    try:
        content = index.read_bytes()
    except FileNotFoundError:
        return False
    checksum = content[-_CHECKSUM_BYTES:]
    return hashlib.sha1(content[:-_CHECKSUM_BYTES], usedforsecurity=False).digest() == checksum


def note_equal(index: Path, sha: str) -> None:
    """Remember, in this process, that the index holds exactly the tree of the commit `sha`."""
    with _lock:
        _known.pop(index, None)
        _known[index] = (_checksum(index), sha)
        while len(_known) > _MOST_KNOWN:
            _known.pop(next(iter(_known)))


def is_equal(index: Path, sha: str) -> bool:
    """Whether the index is known to hold exactly the tree of the commit `sha`."""
    with _lock:
        known = _known.get(index)
    now = _checksum(index)
    return known == (now, sha) and any(now)  # git can be told to write zeros instead


def _checksum(index: Path) -> bytes:
    with index.open("rb") as file:
        file.seek(-_CHECKSUM_BYTES, 2)
        return file.read()
