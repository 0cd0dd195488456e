"""Starts processes, reads their output, leaves nothing of them behind. No other module does.

A command gets an argument list (never a shell string), a session of its own, no terminal and no
inherited variables. Its output is read until it exits plus a short grace, never until the end of
a pipe that a background child still holds. When it ends, for any reason, its whole tree is killed.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from agents.process_output import Filter, Output, Pipes, Spool
from agents.process_trees import MARKER, kill_tree

KEEP_BYTES = 1_000_000  # of each stream, in memory: half from its beginning, half from its end
MAX_OUTPUT_BYTES = 64 * 1024 * 1024  # a command that writes more is stuck in a loop

_TERM_GRACE_SECONDS = 2.0  # cancelling a card must end its processes within 5 s
_DRAIN_SECONDS = 0.1  # how long a background child may add to the output after the command's end

# The variables that a child may always inherit. Anything else is passed by name, on purpose.
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")


@dataclass(frozen=True)
class Limits:
    """Resource limits of a command and each of its descendants. None leaves a limit as it is.

    `memory_bytes` counts writable private memory of one process (RLIMIT_DATA): address space is no
    measure, because Node and Java reserve far more of it than they use. `processes` counts per
    user and user namespace, so it is of use inside the sandbox only.
    """

    cpu_seconds: int | None = None
    file_bytes: int | None = None
    open_files: int | None = None
    memory_bytes: int | None = None
    processes: int | None = None

    def wrap(self, argv: Sequence[str], *, first: str = "") -> list[str]:
        """`argv` behind a small shell that sets the limits before anything of the command runs.

        `first` is a line of shell that it does before.

        Setting them from outside (prlimit) would come too late for a child that forks at once, and
        `preexec_fn` is not safe in a program with threads.
        """
        wanted = [
            ("-t", self.cpu_seconds),
            ("-f", self.file_bytes and self.file_bytes // 512),
            ("-n", self.open_files),
            ("-d", self.memory_bytes and self.memory_bytes // 1024),
        ]
        lines = [first] if first else []
        lines.append("ulimit -c 0")
        # A hard limit that is lower already is kept.
        lines += [f"ulimit {flag} {n} 2>/dev/null || :" for flag, n in wanted if n is not None]
        if self.processes is not None:  # bash says -u, dash says -p
            n = self.processes
            lines.append(f"ulimit -u {n} 2>/dev/null || ulimit -p {n} 2>/dev/null || :")
        lines.append('exec "$@"')
        return ["/bin/sh", "-c", "; ".join(lines), "sh", *argv]


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


def base_environment() -> dict[str, str]:
    """The few variables of our own environment that any child may see: paths and language."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


def own_environment() -> dict[str, str]:
    """The whole environment, for the product's own processes; no agent's command gets it."""
    return dict(os.environ)


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_seconds: float | None,
    input: bytes | None = None,  # noqa: A002  the name that subprocess.run gives it
    on_output: Callable[[bytes], None] | None = None,
    cancel: threading.Event | None = None,
    limits: Limits | None = None,
    spool: Path | None = None,
    merge_stderr: bool = False,
    keep_bytes: int = KEEP_BYTES,
    max_output_bytes: int = MAX_OUTPUT_BYTES,
    die_with_parent: bool = True,
    make_filter: Callable[[], Filter] | None = None,
    pass_fds: Sequence[int] = (),
) -> ProcessResult:
    """Run `argv` to its end and return what became of it; kill its whole tree.

    `env` is the complete environment, plus a mark by which the tree is found. `on_output` hears
    the chunks of both streams as they come. `spool` is a file for the whole output, both streams
    as they came. `die_with_parent` costs 1 ms; it kills the command (not its children) when the
    calling *thread* ends, so that nothing outlives a worker that is killed. `make_filter` makes what
    each stream goes through before anything else gets it. `pass_fds` are descriptors that the child
    inherits under the same numbers.
    Raises OSError if the command cannot be started, and ValueError for a NUL in `argv`.
    """
    marker = uuid.uuid4().hex
    full = list(argv) if limits is None else limits.wrap(argv)
    if die_with_parent:
        full = _die_with_parent(full, "KILL")
    started = time.monotonic()
    with Spool(spool, max_output_bytes) as sink:
        process = subprocess.Popen(
            full,
            cwd=cwd,
            env={**env, MARKER: marker},
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        try:
            pipes = _pipes(process, sink, input, on_output=on_output, keep_bytes=keep_bytes)
            if make_filter is not None:
                pipes.filters = {fd: make_filter() for fd in pipes.outputs}
        except OSError:  # there are no more file descriptors
            kill_tree(process.pid, marker=marker, reaped=False)
            process.wait()
            raise
        deadline = None if timeout_seconds is None else started + timeout_seconds
        ended_by = _Running(process, marker, pipes).finish(deadline, cancel)
    stdout, *rest = pipes.outputs.values()
    return ProcessResult(
        exit_code=process.returncode if ended_by == "exit" else None,
        stdout=stdout.joined(),
        stderr=rest[0].joined() if rest else b"",
        ended_by=ended_by,
        seconds=time.monotonic() - started,
        omitted_bytes=sum(output.omitted for output in pipes.outputs.values()),
    )


def _pipes(
    process: subprocess.Popen[bytes],
    spool: Spool,
    input: bytes | None,  # noqa: A002
    *,
    on_output: Callable[[bytes], None] | None,
    keep_bytes: int,
) -> Pipes:
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    return Pipes(
        outputs={stream.fileno(): Output(keep_bytes) for stream in streams},
        spool=spool,
        on_output=on_output,
        stdin=process.stdin,
        pending=memoryview(input or b""),
        pid=process.pid,
        has_exited=lambda: process.poll() is not None,
    )


@dataclass
class _Running:
    """A started command with its pipes."""

    process: subprocess.Popen[bytes]
    marker: str
    pipes: Pipes

    def finish(self, deadline: float | None, cancel: threading.Event | None) -> str:
        """Pump until the command ends, kill what is left, and say what ended it."""
        try:
            ended_by = self.pipes.pump(deadline, cancel)
            if ended_by == "exit":
                self.pipes.pump(time.monotonic() + _DRAIN_SECONDS, None, until_closed=True)
            else:
                self._ask_to_stop()
            return "output" if self.pipes.spool.is_full else ended_by
        finally:
            self._close()

    def _ask_to_stop(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)
        if not self.pipes.spool.is_full:
            self.pipes.pump(time.monotonic() + _TERM_GRACE_SECONDS, None)

    def _close(self) -> None:
        # Without a pidfd the process may have been reaped already, and its number be free.
        reaped = self.process.returncode is not None
        kill_tree(self.process.pid, marker=self.marker, reaped=reaped)
        self.process.wait()
        self.pipes.close()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


class Child:
    """A long-lived process of the supervisor."""

    def __init__(self, process: subprocess.Popen[bytes], marker: str) -> None:
        self._process = process
        self._marker = marker
        self.pid = process.pid

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        return self._process.poll()

    def wait(self, timeout_seconds: float) -> int | None:
        """Wait for its end; None if it still runs after `timeout_seconds`."""
        try:
            return self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self, *, grace_seconds: float) -> int:
        """Ask it to stop, kill its tree after `grace_seconds`, and return the exit code."""
        if self.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self.wait(grace_seconds)
        return self.kill()

    def kill(self) -> int:
        """Kill it and everything it started, and return the exit code."""
        kill_tree(self.pid, marker=self._marker, reaped=self._process.returncode is not None)
        return self._process.wait()


def spawn(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    output: Path | None = None,
    errors_only: bool = False,
    pass_fds: Sequence[int] = (),
) -> Child:
    """Start a long-lived child in a session of its own, its output appended to `output` or ours.

    With `errors_only` what it prints to standard output is dropped. `pass_fds` are descriptors that it
    inherits under the same numbers.
    Call it from a thread that lives as long as the child should: the child gets SIGTERM when that
    thread ends, however it ends (Linux only).
    Raises OSError if it cannot be started.
    """
    marker = uuid.uuid4().hex
    with contextlib.ExitStack() as stack:
        sink: IO[bytes] | int | None = subprocess.DEVNULL if errors_only else None
        if output is not None:
            sink = stack.enter_context(output.open("ab"))
        process = subprocess.Popen(
            _die_with_parent(list(argv), "TERM"),
            cwd=cwd,
            env={**env, MARKER: marker},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=None if output is None else subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    return Child(process, marker)


def _die_with_parent(argv: list[str], name: str) -> list[str]:
    """`argv` behind setpriv, which asks the kernel to signal it when we die."""
    setpriv = _setpriv()
    return argv if setpriv is None else [setpriv, "--pdeathsig", name, "--", *argv]


@cache
def _setpriv() -> str | None:
    return shutil.which("setpriv") if sys.platform == "linux" else None
