"""A sandbox that is made before its command is known, so that the agent does not wait for its mounts.

While the model thinks, the sandbox of the next command is made. In it bash waits at a pipe; what it reads
there it becomes, as if it had been started with it. Each serves one command, and is then gone like any other.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Sequence

from agents.process_running import Started

BASH = ("bash", "--noprofile", "--norc", "-c")
MOST_READY = 8  # of one worker: each is three small processes
# Bash reads a pipe byte by byte, so a long command is sooner there by itself.
_LONGEST = 4096  # bytes

# Starts `argv`, which inherits the descriptors; what it needs until its end is in the stack.
Start = Callable[[Sequence[str], Sequence[int], contextlib.ExitStack], Started]

_places = threading.BoundedSemaphore(MOST_READY)


class ReadySandbox:
    """The sandbox that waits for the next command of one run, if there is one. For any threads."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._started: Started | None = None
        self._entrance = -1  # the end of the pipe that is ours
        self._parts = contextlib.ExitStack()
        self._is_closed = False

    def make(self) -> None:
        """Make one, unless there is one. If it cannot be made now, the next command will say why.

        It lives no longer than the thread that calls this.
        """
        with self._lock:
            if self._started is not None or self._is_closed or not _places.acquire(blocking=False):
                return
            with contextlib.ExitStack() as parts, contextlib.suppress(OSError):
                parts.callback(_places.release)
                exit_, self._entrance = os.pipe()
                parts.callback(os.close, self._entrance)
                with os.fdopen(exit_, "rb", buffering=0):
                    self._started = self._start([*BASH, _waiting(exit_)], [exit_], parts)
                self._parts = parts.pop_all()

    def take(self, command: str, parts: contextlib.ExitStack) -> Started | None:
        """Give `command` to the one that waits; what it needs goes over to `parts`. None if none waits."""
        text = os.fsencode(command)  # as an argument would be
        if len(text) > _LONGEST or "\0" in command:
            return None
        with self._lock:
            started, self._started = self._started, None
            if started is None:
                return None
            with contextlib.ExitStack() as own:
                own.push(self._parts.pop_all())
                own.callback(started.close)
                own.callback(started.kill)
                if started.has_ended():
                    return None
                try:
                    os.write(self._entrance, text + b"\0")
                except BrokenPipeError:  # it has ended just now
                    return None
                parts.push(own.pop_all())
        return started

    def close(self) -> None:
        """Kill the one that waits, and let no other be made."""
        with self._lock:
            self._is_closed = True
            started, self._started = self._started, None
            if started is not None:
                started.kill()
                started.close()
            self._parts.close()


def _waiting(number: int) -> str:
    """What bash does until it is given the command. Without one, when we are gone, it ends."""
    return (
        f'IFS= read -r -d "" -u {number} command || exit 126; '
        f'exec {number}<&-; exec {" ".join(BASH)} "$command"'
    )
