"""Keeps the processes of the embedded product alive: starts, restarts with back-off, stops in order.

The process of `manage.py up` does nothing else. It imports no Django, so that what only waits needs next
to no memory.
"""

import json
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from agents.processes import Child, own_environment, run, spawn

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
LISTEN_SECONDS = 0.02  # between two looks whether the address answers, once everything is prepared
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
HEALTHY_SECONDS = 10.0  # after so long a life a death counts as the first
GRACE_SECONDS = 9.0  # all is over within 10
REMARK_SECONDS = 30.0
LAST_GRACE_SECONDS = 0.7  # for what the others needed until they were gone


@dataclass(frozen=True)
class Program:
    """One process to keep alive; `environment` is added to our own.

    One that `prepares` is told at its first start to `--report FD`: on that descriptor it says, as a line
    of JSON, a `greeting`, or the `problem` that keeps everything from starting. What comes after it in the
    plan is started after the report.
    """

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    output: str = ""  # the file it writes to; "" is the supervisor's own output
    prepares: bool = False


@dataclass(frozen=True)
class Plan:
    """What to keep alive, the first of which the others need; and what to say at the end.

    `remark` is a command whose output is said after the greeting: what takes too long to be found out
    before the start.
    """

    folder: str
    programs: Sequence[Program]
    host: str
    port: int
    farewell: str
    remark: Sequence[str] = field(default_factory=list)


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

    def start_reporting(self, now: float, descriptor: int) -> None:
        """Start the program for the first time, which is told to report on a descriptor."""
        argv = [*self.program.argv, "--report", str(descriptor)]
        self._start(now, replace(self.program, argv=argv), pass_fds=[descriptor])

    def look(self, now: float) -> None:
        """Start the program if it is due, and note its death."""
        if self._child is None:
            if now >= self._start_at:
                self._start(now, self.program)
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

    def _start(self, now: float, program: Program, pass_fds: Sequence[int] = ()) -> None:
        self._child = spawn(
            program.argv,
            cwd=self._folder,
            env={**own_environment(), **program.environment},
            output=Path(program.output) if program.output else None,
            # Celery and Daphne greet and take leave there; our own messages go to standard error.
            errors_only=True,
            pass_fds=pass_fds,
        )
        self._started_at = now

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ask it to stop, and kill it when it takes too long."""
        if self._child is not None:
            self._child.terminate(grace_seconds=grace_seconds)
            self._child = None


class StartProblem(Exception):  # noqa: N818  a finding, for a person
    """Something that keeps everything from starting; the message is for the person."""


class Supervisor:
    """Starts its programs in order, keeps them alive, and stops them."""

    def __init__(self, programs: Sequence[Program], folder: Path) -> None:
        self.keepers = [Keeper(program, folder) for program in programs]
        self._is_stopping = False

    def stop(self) -> None:
        """Ask `run` to return; safe in a signal handler, which an Event's lock would not be."""
        self._is_stopping = True

    def run(self, prepared: Callable[[str], None] = lambda _greeting: None) -> None:
        """Keep everything alive until `stop` is called. Call it in the main thread: see `spawn`.

        `prepared` is called with the greeting of the program that prepares, once it has.
        Raises StartProblem if it cannot.
        """
        try:
            greeting = self._prepare()
            if greeting is not None:
                prepared(greeting)
            while not self._is_stopping:
                now = time.monotonic()
                for keeper in self.keepers:
                    keeper.look(now)
                time.sleep(LOOK_SECONDS)
        finally:
            self._stop_all()

    def _prepare(self) -> str | None:
        """Start what prepares, after what it needs, and return its greeting; None if stopped before."""
        now = time.monotonic()
        for keeper in self.keepers:
            if keeper.program.prepares:
                reader, writer = os.pipe()
                with os.fdopen(reader, "rb") as report:
                    keeper.start_reporting(now, writer)
                    os.close(writer)
                    return self._read(report)
            keeper.look(now)
        return None

    def _read(self, report: BinaryIO) -> str | None:
        said = b""
        while not self._is_stopping:
            if not select.select([report], [], [], LOOK_SECONDS)[0]:
                continue
            more = os.read(report.fileno(), 65536)
            said += more
            if not more or more.endswith(b"\n"):
                break
        else:
            return None
        if not said:  # it ended by a fault, which its own output tells of
            raise StartProblem("The web server ended before it was ready.")
        answer = json.loads(said)
        if "problem" in answer:
            raise StartProblem(answer["problem"])
        return str(answer["greeting"])

    def _stop_all(self) -> None:
        """Stop all at once but the first, which the others need until they are gone."""
        first, *others = self.keepers
        with ThreadPoolExecutor(max(len(others), 1)) as threads:
            list(threads.map(Keeper.stop, others))
        first.stop(LAST_GRACE_SECONDS)


def carry_out(plan: Plan) -> int:
    """Keep alive what the plan names until a signal comes, and return the exit code.

    Raises StartProblem if the start cannot be prepared; nothing is left running then.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    supervisor = Supervisor(plan.programs, Path(plan.folder))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: supervisor.stop())

    def greet_soon(greeting: str) -> None:
        threading.Thread(target=greet, args=(plan, greeting), daemon=True).start()

    supervisor.run(greet_soon)
    say(plan.farewell)
    return 0


def greet(plan: Plan, greeting: str) -> None:
    """Say where the product is, once it is there."""
    while not answers(plan.host, plan.port):
        time.sleep(LISTEN_SECONDS)
    say(greeting + remark(plan))


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
    """Return whether the web server answers a request for a page, which makes the next one quicker."""
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(b"GET /signin/ HTTP/1.0\r\nHost: localhost\r\n\r\n")
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
