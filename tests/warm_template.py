"""The process that imports the libraries once and forks for each start of a product: see tests/warm.py.

It must import nothing of the board, no settings and nothing of the tests' own libraries: whatever is here,
each child has. Of ours it imports what is plain Python (`make check` sees that it knows neither Django nor
the board), for that reads nothing of its environment before it is called. It has one thread and no
connection but the one to the tests.

    python -m tests.warm_template FD [LISTENING_FD]

It ends when nobody holds the other end of FD. Whoever connects to what it listens on asks it for forks too,
and takes those along when he ends.
"""

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.parents import die_with_parent

REQUEST_BYTES = 128 * 1024  # one packet: the arguments and the environment
LIBRARIES = (
    "anthropic",
    "anthropic.resources.messages",
    "autobahn.twisted.websocket",
    "celery.apps.worker",
    "celery.beat",
    "celery.bin.celery",
    "celery.bin.worker",
    "celery.concurrency.thread",
    "celery.worker.consumer",
    "celery.worker.worker",
    "channels.auth",
    "channels.generic.websocket",
    "channels.security.websocket",
    "channels_redis.pubsub",
    "cryptography.fernet",
    "csp.middleware",
    "dj_database_url",
    "django.contrib.auth.hashers",
    "django.contrib.staticfiles.storage",
    "django.core.asgi",
    "django.core.management",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "django.db.migrations",
    "django.shortcuts",
    "django.test",
    "django.views.generic",
    "jsonschema",
    "kombu.transport.redis",
    "markdown_it",
    "nh3",
    "psycopg_pool",
    "pydantic",
    "pygments.formatters",
    "tree_sitter",
    "tree_sitter_bash",
    "twisted.web.http",
    "whitenoise.middleware",
    "yaml",
)
# The half of what a worker loads of ours that needs no settings.
PLAIN = (
    "agents.container_probe",
    "agents.executors.builtin",
    "agents.harness.policy.decide",
    "agents.harness.redacted_logs",
    "agents.harness.tools.registry",
    "agents.hunks",
    "agents.instructions",
    "agents.looking_through",
    "agents.rehearsal.server",
    "agents.sandbox_probe",
    "agents.saving",
    "agents.shown",
    "agents.starts",
    "agents.unboxed_checks",
    "agents.verification",
    "agents.wakes",
    "agents.workspaces.checkouts",
    "agents.workspaces.delivery",
    "agents.workspaces.hub",
    "agents.workspaces.merges",
    "agents.workspaces.news",
    "agents.workspaces.sources",
    "agents.workspaces.spares",
    "agents.workspaces.worktrees",
)
# What processes must not share (an event loop), and what must see the environment of its process first.
FORBIDDEN = ("board", "daphne.server", "ninja", "twisted.internet.reactor")


@dataclass(frozen=True)
class Start:
    """One process that the tests ask for. `arguments` are those after `python`."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    output: int
    errors: int


@dataclass(frozen=True)
class Forked:
    """A child that lives."""

    pid: int
    pipe: int  # hears of its end
    owner: socket.socket  # of who asked for it


def main(fd: int, listening_fd: int | None = None) -> None:
    """Be the template, and then each of its children, which end as any program does."""
    import_libraries()
    gc.collect()
    gc.freeze()  # else a child's first collection writes on, and so copies, every page
    listening = socket.socket(fileno=listening_fd) if listening_fd is not None else None
    start = Server(socket.socket(fileno=fd), listening).serve()
    become(start)
    run(start.arguments)


def import_libraries() -> None:
    """Import what every process needs. Fails if that made anything that processes must not share."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are not ours, and there is no log to put them in
        for name in LIBRARIES + PLAIN:
            importlib.import_module(name)
    settings = importlib.import_module("django.conf").settings
    loaded = [name for name in FORBIDDEN if name in sys.modules]
    threads = [path.name for path in Path("/proc/self/task").iterdir()]
    if loaded or settings.configured or len(threads) > 1:
        raise SystemExit(f"Not fit to be forked: {loaded} {threads} {settings.configured}")


class Server:
    """Forks whenever somebody asks. `first` is who started the template; others come by `listening`."""

    def __init__(self, first: socket.socket, listening: socket.socket | None) -> None:
        self.poll = select.poll()
        self.first = first
        self.listening = listening
        self.owners: dict[int, socket.socket] = {}
        self.children: dict[int, Forked] = {}  # by a pidfd
        self.welcome(first)
        if listening is not None:
            self.poll.register(listening, select.POLLIN)

    def serve(self) -> Start:
        """Return in each child; the template ends here with the tests."""
        while True:
            for ready, _ in self.poll.poll():
                if ready in self.owners:
                    if (start := self.hear(self.owners[ready])) is not None:
                        return start
                elif ready in self.children:
                    self.poll.unregister(ready)
                    tell_the_end(ready, self.children.pop(ready))
                elif self.listening is not None:
                    self.welcome(self.listening.accept()[0])

    def welcome(self, control: socket.socket) -> None:
        """Listen to somebody from now on."""
        self.owners[control.fileno()] = control
        self.poll.register(control, select.POLLIN)

    def hear(self, control: socket.socket) -> Start | None:
        """Fork for a request. Returns None in the template."""
        request, streams = b"", list[int]()
        with suppress(ConnectionError):
            request, streams, _, _ = socket.recv_fds(control, REQUEST_BYTES, 2)
        if not request:
            self.forget(control)
            return None
        end, write_end = os.pipe()
        pid = fork()
        if pid == 0:
            sockets = filter(None, (*self.owners.values(), self.listening))
            pipes = (child.pipe for child in self.children.values())
            for fd in (end, write_end, *(one.detach() for one in sockets), *self.children, *pipes):
                os.close(fd)
            return Start(*json.loads(request), *streams)
        pidfd = os.pidfd_open(pid)
        self.poll.register(pidfd, select.POLLIN)
        self.children[pidfd] = Forked(pid, write_end, control)
        with suppress(ConnectionError):  # the next look finds that he is gone
            socket.send_fds(control, [str(pid).encode()], [end])
        for fd in (end, *streams):
            os.close(fd)
        return None

    def forget(self, control: socket.socket) -> None:
        """Kill what belongs to somebody who has ended."""
        if control is self.first:
            os._exit(0)  # and the kernel kills all children
        for child in self.children.values():
            if child.owner is control:
                os.kill(child.pid, signal.SIGKILL)  # not waited for yet, so it is still this one
        self.poll.unregister(control)
        self.owners.pop(control.fileno()).close()


def fork() -> int:
    """Fork; the child lives no longer than the template."""
    template = os.getpid()
    pid = os.fork()
    if pid == 0:
        die_with_parent()
        if os.getppid() != template:
            os._exit(1)
    return pid


def tell_the_end(pidfd: int, child: Forked) -> None:
    """Wait for a child that has ended, and write how."""
    code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    with suppress(BrokenPipeError):
        os.write(child.pipe, str(code).encode())
    os.close(pidfd)
    os.close(child.pipe)


def become(start: Start) -> None:
    """Make this fork what a new process would be."""
    os.setsid()
    os.dup2(start.output, 1)
    os.dup2(start.errors, 2)
    os.close(start.output)
    os.close(start.errors)
    os.chdir(start.folder)
    os.environ.clear()
    os.environ.update(start.environment)


def run(arguments: Sequence[str]) -> None:
    """Do what `python ARGUMENTS` does, for `-m MODULE ...` and `FILE ...`."""
    if arguments[0] == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv[:] = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        sys.argv[:] = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
