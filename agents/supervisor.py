"""Keeps the processes of the embedded product alive: starts, restarts with back-off, stops in order."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from agents.processes import Child, spawn

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
HEALTHY_SECONDS = 10.0  # after so long a life a death counts as the first
GRACE_SECONDS = 9.0  # all is over within 10


@dataclass(frozen=True)
class Program:
    """One process to keep alive. `is_well` is asked now and then; a sick process is restarted."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    output: Path | None = None  # where it writes; None is the supervisor's own output
    is_well: Callable[[int], bool] = lambda _pid: True


class Keeper:
    """Keeps one program alive."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program = program
        self._folder = folder
        self._child: Child | None = None
        self._started_at = 0.0
        self._start_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """The process id, or None while it is not running."""
        return self._child.pid if self._child is not None else None

    def look(self, now: float) -> None:
        """Start the program if it is due, and note its death."""
        if self._child is None:
            if now >= self._start_at:
                self._start(now)
            return
        code = self._child.poll()
        if code is None:
            return
        self._child.kill()  # whatever it has left behind
        self._child = None
        if now - self._started_at > HEALTHY_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS
        log.warning(
            "%s ended with %s; it is started again in %.1f s", self.program.name, code, self._pause
        )
        self._start_at = now + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)

    def _start(self, now: float) -> None:
        self._child = spawn(self.program.argv, cwd=self._folder, env=self.program.environment)
        self._started_at = now
        self.starts += 1

    def check(self) -> None:
        """Kill the program if it lives but is not well; `look` starts it again."""
        child = self._child
        if child is not None and child.poll() is None and not self.program.is_well(child.pid):
            log.error("%s lives but does not work; it is restarted", self.program.name)
            child.terminate(grace_seconds=2.0)

    def stop(self) -> None:
        """Ask it to stop, and kill it when it takes too long."""
        if self._child is not None:
            self._child.terminate(grace_seconds=GRACE_SECONDS)
            self._child = None


class Supervisor:
    """Starts its programs in order, keeps them alive, and stops them."""

    def __init__(self, programs: Sequence[Program], folder: Path) -> None:
        self.keepers = [Keeper(program, folder) for program in programs]
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ask `run` to return; safe in a signal handler."""
        self._stop.set()

    def run(self, *, check_seconds: float = 15.0) -> None:
        """Keep everything alive until `stop` is called. Call it in the main thread: see `spawn`."""
        next_check = time.monotonic() + check_seconds
        try:
            while not self._stop.wait(LOOK_SECONDS):
                now = time.monotonic()
                for keeper in self.keepers:
                    keeper.look(now)
                if now >= next_check:
                    next_check = now + check_seconds
                    for keeper in self.keepers:
                        keeper.check()
        finally:
            self._stop_all()

    def _stop_all(self) -> None:
        """Stop all at once but the first, which the others need until they are gone."""
        first, *others = self.keepers
        with ThreadPoolExecutor(max(len(others), 1)) as threads:
            list(threads.map(Keeper.stop, others))
        first.stop()
