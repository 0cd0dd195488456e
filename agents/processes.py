"""Starts processes, reads their output, leaves nothing of them behind. No other module does.

A command gets an argument list (never a shell string), a session of its own, no terminal and no
inherited variables. When it ends, for any reason, its whole tree is killed: see `process_running`.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from agents.process_limits import Limits
from agents.process_output import Filter
from agents.process_running import KEEP_BYTES, MAX_OUTPUT_BYTES, ProcessResult, Started
from agents.process_trees import MARKER, kill_tree

# The variables that a child may always inherit. Anything else is passed by name, on purpose.
_INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")


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

    See `start` and `Started.see_through`, which this is in one. `limits` are set before the command.
    Raises OSError if the command cannot be started, and ValueError for a NUL in `argv`.
    """
    started = start(
        argv if limits is None else limits.wrap(argv),
        cwd=cwd,
        env=env,
        input=input,
        merge_stderr=merge_stderr,
        die_with_parent=die_with_parent,
        pass_fds=pass_fds,
    )
    return started.see_through(
        timeout_seconds=timeout_seconds,
        on_output=on_output,
        cancel=cancel,
        spool=spool,
        keep_bytes=keep_bytes,
        max_output_bytes=max_output_bytes,
        make_filter=make_filter,
    )


def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    input: bytes | None = None,  # noqa: A002
    merge_stderr: bool = False,
    die_with_parent: bool = True,
    pass_fds: Sequence[int] = (),
) -> Started:
    """Start `argv`; whoever asked must see it through, or kill it.

    `env` is the complete environment, plus a mark by which the tree is found. `die_with_parent` costs
    1 ms; it kills the command (not its children) when the calling *thread* ends, so that nothing
    outlives a worker that is killed. `pass_fds` are descriptors that the child inherits under the same
    numbers.
    Raises OSError if the command cannot be started, and ValueError for a NUL in `argv`.
    """
    marker = uuid.uuid4().hex
    process = subprocess.Popen(
        _die_with_parent(list(argv), "KILL") if die_with_parent else list(argv),
        cwd=cwd,
        env={**env, MARKER: marker},
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
        pass_fds=pass_fds,
    )
    return Started(process, marker, input or b"")


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
