"""Reads what a command writes, and keeps it within bounds.

The two ends of its output are kept in memory, all of it in a file.
"""

import os
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

_CHUNK = 65_536  # the size of a Linux pipe
_CANCEL_POLL_SECONDS = 0.1  # an Event cannot be waited for together with pipes
_BLIND_POLL_SECONDS = 0.01  # where there is no pidfd (macOS)


class Filter(Protocol):
    """Changes a stream on its way; it may keep back an end of it until more comes."""

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk and return what may leave now."""

    def close(self) -> bytes:
        """Return the rest."""


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


@dataclass
class Pipes:
    """The ends of a command's pipes that are ours.

    `outputs` is by file descriptor, `pending` what is left of the input. `has_exited` is asked
    where the system cannot tell by itself.
    """

    outputs: dict[int, Output]
    spool: Spool
    on_output: Callable[[bytes], None] | None
    stdin: IO[bytes] | None
    pending: memoryview
    pid: int
    has_exited: Callable[[], bool]
    filters: dict[int, Filter] = field(default_factory=dict)  # by file descriptor
    _open: set[int] = field(default_factory=set)
    _poller: select.poll = field(default_factory=select.poll)
    _pidfd: int | None = None

    def __post_init__(self) -> None:
        for fd in self.outputs:
            os.set_blocking(fd, False)
            self._poller.register(fd, select.POLLIN)
            self._open.add(fd)
        if self.stdin is not None:
            os.set_blocking(self.stdin.fileno(), False)
            self._poller.register(self.stdin.fileno(), select.POLLOUT)
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self.pid)
            self._poller.register(self._pidfd, select.POLLIN)

    def pump(
        self,
        deadline: float | None,
        cancel: threading.Event | None,
        *,
        until_closed: bool = False,
    ) -> str:
        """Move bytes until the process exits (or, `until_closed`, until its pipes are closed).

        Returns why it stopped: `exit`, `timeout`, `cancelled` or `output`.
        """
        while True:
            if cancel is not None and cancel.is_set():
                return "cancelled"
            if self.spool.is_full:
                return "output"
            if until_closed and not self._open:
                return "exit"
            wait = self._wait_seconds(deadline, sliced=cancel is not None)
            if wait is not None and wait <= 0:
                return "timeout"
            exited = self._step(wait)
            if exited and not until_closed:
                return "exit"

    def close(self) -> None:
        """Forget the process; the streams are closed by their owner."""
        for fd, one in self.filters.items():
            self._take(fd, one.close())
        if self._pidfd is not None:
            os.close(self._pidfd)

    def _wait_seconds(self, deadline: float | None, *, sliced: bool) -> float | None:
        waits = [] if deadline is None else [deadline - time.monotonic()]
        if sliced:
            waits.append(_CANCEL_POLL_SECONDS)
        if self._pidfd is None:
            waits.append(_BLIND_POLL_SECONDS)
        return min(waits, default=None)

    def _step(self, wait: float | None) -> bool:
        """Wait for one event and serve it; say whether the process has exited."""
        exited = False
        for fd, _ in self._poller.poll(None if wait is None else max(1, round(wait * 1000))):
            if fd in self.outputs:
                self._read(fd)
            elif fd == self._pidfd:
                self._poller.unregister(fd)
                exited = True
            else:
                self._write(fd)
        return exited or (self._pidfd is None and self.has_exited())

    def _read(self, fd: int) -> None:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._poller.unregister(fd)
            self._open.discard(fd)
            return
        self._take(fd, self.filters[fd].feed(chunk) if fd in self.filters else chunk)

    def _take(self, fd: int, chunk: bytes) -> None:
        chunk = self.spool.write(chunk)
        self.outputs[fd].add(chunk)
        if self.on_output is not None and chunk:
            self.on_output(chunk)

    def _write(self, fd: int) -> None:
        try:
            self.pending = self.pending[os.write(fd, self.pending[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want the rest, as `head` does not
            self.pending = self.pending[:0]
        if not self.pending:
            self._poller.unregister(fd)
            if self.stdin is not None:
                self.stdin.close()
