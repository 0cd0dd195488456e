"""Keeps the processes of the embedded product alive: starts, restarts with back-off, stops in order.

`manage.py up` becomes this program once everything is prepared: `python -m agents.supervisor FD`, with the
plan in the pipe FD. It imports no Django, so that what only waits needs next to no memory.
"""

import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from agents.processes import Child, own_environment, run, spawn

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
HEALTHY_SECONDS = 10.0  # after so long a life a death counts as the first
GRACE_SECONDS = 9.0  # all is over within 10
REMARK_SECONDS = 30.0
LAST_GRACE_SECONDS = 0.7  # for what the others needed until they were gone


@dataclass(frozen=True)
class Program:
    """One process to keep alive; `environment` is added to our own."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    output: str = ""  # the file it writes to; "" is the supervisor's own output


@dataclass(frozen=True)
class Plan:
    """What to keep alive, the first of which the others need; and what to say once the address answers.

    `remark` is a command whose output is said too: what takes too long to be found out before the start.
    """

    folder: str
    programs: Sequence[Program]
    host: str
    port: int
    greeting: str
    farewell: str
    remark: Sequence[str] = field(default_factory=list)

    def to_json(self) -> str:
        """Return the plan as `from_json` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Return the plan that `to_json` wrote."""
        values = json.loads(text)
        programs = [Program(**program) for program in values.pop("programs")]
        return cls(programs=programs, **values)


class Keeper:
    """Keeps one program alive."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program = program
        self._folder = folder
        self._child: Child | None = None
        self._started_at = 0.0
        self._start_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS

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
        program = self.program
        self._child = spawn(
            program.argv,
            cwd=self._folder,
            env={**own_environment(), **program.environment},
            output=Path(program.output) if program.output else None,
            # Celery and Daphne greet and take leave there; our own messages go to standard error.
            errors_only=True,
        )
        self._started_at = now

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ask it to stop, and kill it when it takes too long."""
        if self._child is not None:
            self._child.terminate(grace_seconds=grace_seconds)
            self._child = None


class Supervisor:
    """Starts its programs in order, keeps them alive, and stops them."""

    def __init__(self, programs: Sequence[Program], folder: Path) -> None:
        self.keepers = [Keeper(program, folder) for program in programs]
        self._is_stopping = False

    def stop(self) -> None:
        """Ask `run` to return; safe in a signal handler, which an Event's lock would not be."""
        self._is_stopping = True

    def run(self) -> None:
        """Keep everything alive until `stop` is called. Call it in the main thread: see `spawn`."""
        try:
            while not self._is_stopping:
                now = time.monotonic()
                for keeper in self.keepers:
                    keeper.look(now)
                time.sleep(LOOK_SECONDS)
        finally:
            self._stop_all()

    def _stop_all(self) -> None:
        """Stop all at once but the first, which the others need until they are gone."""
        first, *others = self.keepers
        with ThreadPoolExecutor(max(len(others), 1)) as threads:
            list(threads.map(Keeper.stop, others))
        first.stop(LAST_GRACE_SECONDS)


def main() -> None:
    """Carry out the plan that is in the pipe whose number is the only argument."""
    with os.fdopen(int(sys.argv[1]), encoding="utf-8") as pipe:
        plan = Plan.from_json(pipe.read())
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    supervisor = Supervisor(plan.programs, Path(plan.folder))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: supervisor.stop())
    threading.Thread(target=greet, args=(plan,), daemon=True).start()
    supervisor.run()
    say(plan.farewell)


def greet(plan: Plan) -> None:
    """Say where the product is, once it is there."""
    while not answers(plan.host, plan.port):
        time.sleep(0.05)
    say(plan.greeting + remark(plan))


def remark(plan: Plan) -> str:
    """Return what the plan's command says, as it is; nothing if it cannot be run."""
    if not plan.remark:
        return ""
    try:
        done = run(
            plan.remark,
            cwd=Path(plan.folder),
            env=own_environment(),
            timeout_seconds=REMARK_SECONDS,
        )
    except OSError as error:
        log.warning("%s: %s", plan.remark[-1], error)
        return ""
    return done.stdout.decode(errors="replace")


def answers(host: str, port: int) -> bool:
    """Return whether the web server answers a request; the first one also loads its pages."""
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return connection.recv(5) == b"HTTP/"
    except OSError:
        return False


def say(text: str) -> None:
    """Print for the person at the terminal, who may have closed it."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError:
        log.debug("Nobody reads: %s", text)


if __name__ == "__main__":
    main()
