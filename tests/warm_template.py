"""The process that imports the libraries once and forks for each start of a product: see tests/warm.py.

It must import nothing of the board, no settings and nothing of the tests' own libraries: whatever is here,
each child has. Of ours it imports what is plain Python (`make check` sees that it knows neither Django nor
the board), for that reads nothing of its environment before it is called. It has one thread and no
connection but the one to the tests.

    python -m tests.warm_template FD
"""

import gc
import importlib
import json
import os
import runpy
import select
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


def main(fd: int) -> None:
    """Be the template, and then each of its children, which end as any program does."""
    import_libraries()
    gc.collect()
    gc.freeze()  # else a child's first collection writes on, and so copies, every page
    start = serve(socket.socket(fileno=fd))
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


def serve(control: socket.socket) -> Start:
    """Fork whenever the tests ask. Returns in each child; the template ends here with the tests."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    children: dict[
        int, tuple[int, int]
    ] = {}  # a pidfd -> the pid, and the pipe that hears of its end
    while True:
        for ready, _ in poll.poll():
            if ready != control.fileno():
                poll.unregister(ready)
                tell_the_end(ready, *children.pop(ready))
                continue
            request, streams, _, _ = socket.recv_fds(control, REQUEST_BYTES, 2)
            if not request:
                os._exit(0)  # and the kernel kills the children
            end, write_end = os.pipe()
            pid = fork()
            if pid == 0:
                control.close()
                for fd in (end, write_end, *children, *(pipe for _, pipe in children.values())):
                    os.close(fd)
                return Start(*json.loads(request), *streams)
            pidfd = os.pidfd_open(pid)
            poll.register(pidfd, select.POLLIN)
            children[pidfd] = (pid, write_end)
            with suppress(ConnectionError):  # the next look finds that the tests are gone
                socket.send_fds(control, [str(pid).encode()], [end])
            for fd in (end, *streams):
                os.close(fd)


def fork() -> int:
    """Fork; the child lives no longer than the template."""
    template = os.getpid()
    pid = os.fork()
    if pid == 0:
        die_with_parent()
        if os.getppid() != template:
            os._exit(1)
    return pid


def tell_the_end(pidfd: int, pid: int, pipe: int) -> None:
    """Wait for a child that has ended, and write how."""
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        os.write(pipe, str(code).encode())
    os.close(pidfd)
    os.close(pipe)


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
    main(int(sys.argv[1]))
