"""A process that was started: its output is read to its end, and then nothing of it is left.

It is read until the process exits plus a short grace, never until the end of a pipe that a background
child still holds.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from agents.process_output import Filter, Output, Pipes, Spool
from agents.process_trees import kill_tree

KEEP_BYTES = 1_000_000  # of each stream, in memory: half from its beginning, half from its end
MAX_OUTPUT_BYTES = 64 * 1024 * 1024  # a command that writes more is stuck in a loop

_TERM_GRACE_SECONDS = 2.0  # cancelling a card must end its processes within 5 s
_DRAIN_SECONDS = 0.1  # how long a background child may add to the output after the command's end


@dataclass(frozen=True)
class ProcessResult:
    """How a command ended. `exit_code` is None if we killed it, negative if a signal did.

    `ended_by` is `exit`, `timeout`, `cancelled` or `output` (it wrote more than the maximum).
    A stream that was too long holds a note in its middle; `omitted_bytes` counts what is missing.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    ended_by: str
    seconds: float
    omitted_bytes: int = 0


class Process(Protocol):
    """What `agents.processes` has started."""

    pid: int
    returncode: int | None
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""

    def wait(self) -> int:
        """Wait for its end and return the exit code."""


class Started:
    """A command that runs, or waits in a pipe for what it is to run."""

    def __init__(self, process: Process, marker: str, input: bytes) -> None:  # noqa: A002
        self._process = process
        self._marker = marker
        self._input = input
        self._is_killed = False

    def has_ended(self) -> bool:
        """Whether it is over, by whatever cause."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill it and all that it has started."""
        if self._is_killed:
            return
        self._is_killed = True
        # Without a pidfd the process may have been reaped already, and its number be free.
        reaped = self._process.returncode is not None
        kill_tree(self._process.pid, marker=self._marker, reaped=reaped)
        self._process.wait()

    def see_through(
        self,
        *,
        timeout_seconds: float | None,
        on_output: Callable[[bytes], None] | None = None,
        cancel: threading.Event | None = None,
        spool: Path | None = None,
        keep_bytes: int = KEEP_BYTES,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        make_filter: Callable[[], Filter] | None = None,
    ) -> ProcessResult:
        """Wait for its end, at most `timeout_seconds`, kill its whole tree, and say what became of it.

        `on_output` hears the chunks of both streams as they come. `spool` is a file for the whole
        output, both streams as they came. `make_filter` makes what each stream goes through before
        anything else gets it.
        Raises OSError if there is no place for the output; the tree is killed then too.
        """
        began = time.monotonic()
        deadline = None if timeout_seconds is None else began + timeout_seconds
        try:
            with Spool(spool, max_output_bytes) as sink:
                pipes = self._pipes(sink, on_output=on_output, keep_bytes=keep_bytes)
                if make_filter is not None:
                    pipes.filters = {fd: make_filter() for fd in pipes.outputs}
                ended_by = self._pump(pipes, deadline, cancel)
        finally:
            self.kill()
            self.close()
        stdout, *rest = pipes.outputs.values()
        return ProcessResult(
            exit_code=self._process.returncode if ended_by == "exit" else None,
            stdout=stdout.joined(),
            stderr=rest[0].joined() if rest else b"",
            ended_by=ended_by,
            seconds=time.monotonic() - began,
            omitted_bytes=sum(output.omitted for output in pipes.outputs.values()),
        )

    def close(self) -> None:
        """Let go of the pipes."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _pipes(
        self, spool: Spool, *, on_output: Callable[[bytes], None] | None, keep_bytes: int
    ) -> Pipes:
        process = self._process
        streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
        return Pipes(
            outputs={stream.fileno(): Output(keep_bytes) for stream in streams},
            spool=spool,
            on_output=on_output,
            stdin=process.stdin,
            pending=memoryview(self._input),
            pid=process.pid,
            has_exited=self.has_ended,
        )

    def _pump(self, pipes: Pipes, deadline: float | None, cancel: threading.Event | None) -> str:
        """Move output until the command ends, kill what is left, and say what ended it."""
        try:
            ended_by = pipes.pump(deadline, cancel)
            if ended_by == "exit":
                pipes.pump(time.monotonic() + _DRAIN_SECONDS, None, until_closed=True)
            else:
                self._ask_to_stop(pipes)
            return "output" if pipes.spool.is_full else ended_by
        finally:
            self.kill()
            pipes.close()

    def _ask_to_stop(self, pipes: Pipes) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGTERM)
        if not pipes.spool.is_full:
            pipes.pump(time.monotonic() + _TERM_GRACE_SECONDS, None)
