"""Keeps the output of a command within bounds: its two ends in memory, all of it in a file."""

from pathlib import Path
from types import TracebackType
from typing import IO, Self


class Output:
    """The beginning and the end of a stream, at most `keep_bytes` in all."""

    def __init__(self, keep_bytes: int) -> None:
        self._head = bytearray()
        self._head_room = keep_bytes // 2
        self._tail = bytearray()
        self._tail_room = keep_bytes - self._head_room
        self.omitted = 0

    def add(self, chunk: bytes) -> None:
        """Append `chunk`, forgetting bytes from the middle when there are too many."""
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * self._tail_room:  # not each time: a deletion moves all the rest
            self._trim()

    def _trim(self) -> None:
        surplus = max(0, len(self._tail) - self._tail_room)
        del self._tail[:surplus]
        self.omitted += surplus

    def joined(self) -> bytes:
        """The stream; if bytes are missing, a line in the middle says how many."""
        self._trim()
        note = f"\n[... {self.omitted} bytes left out ...]\n".encode() if self.omitted else b""
        return bytes(self._head) + note + bytes(self._tail)


class Spool:
    """A file for all that a command writes, up to `max_bytes`; without a path it only counts."""

    def __init__(self, path: Path | None, max_bytes: int) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._left = max_bytes

    def __enter__(self) -> Self:
        if self._path is not None:
            self._file = self._path.open("wb")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def is_full(self) -> bool:
        """Whether the command has written more than it may."""
        return self._left < 0

    def write(self, chunk: bytes) -> bytes:
        """Keep `chunk`, or as much of it as there is room for, and return what was kept."""
        if self.is_full:
            return b""
        kept = chunk[: self._left]
        self._left -= len(chunk)
        if self._file is not None:
            self._file.write(kept)
        return kept
