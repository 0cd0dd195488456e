"""`manage.py up`: looks at the machine, then keeps Valkey, web server and worker alive.

It loads nothing of Django, so that the web server, which has to, begins at once: what needs the database is
prepared there, before it listens (see `agents.web`).
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

from agents import preflight
from agents.supervisor import Plan, Program, StartProblem, carry_out
from board import settings

# What libraries of the worker read.
WORKER_ENVIRONMENT = {
    "CELERY_SKIP_CHECKS": "1",  # the web server has made them; they would load all pages, and keep them
    "MALLOC_ARENA_MAX": "2",  # a worker has a dozen threads that do little; each would keep its own heap
}
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  named, not bound


def start(host: str = settings.HOST, port: int = settings.PORT) -> int:
    """Run the product until it is stopped, and return the exit code."""
    try:
        preflight.check_git()
        # Open, and so held, until this function is over.
        with preflight.claim_data_folder(settings.DATA):
            preflight.check_port(host, port)
            return carry_out(plan(host, port))
    except (preflight.Problem, StartProblem) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1


def plan(host: str, port: int) -> Plan:
    """Return what to keep alive, and where it will answer. Raises Problem if a part is missing."""
    return Plan(
        folder=str(settings.BASE_DIR),
        programs=programs(host, port),
        host=EVERYWHERE.get(host, host),
        port=port,
        farewell="Stopped. Runs that were under way continue at the next start.",
        # Trying the sandbox takes as long as all of this: nobody waits for it.
        remark=[sys.executable, "-m", "agents.sandbox_probe"],
    )


def programs(host: str, port: int) -> list[Program]:
    """Return what is to be kept alive, the one first that the others need."""
    found = []
    # The programs start in another folder, where a relative path would mean another place.
    environment = {
        "PULLCORD_DATA": str(settings.DATA),
        "PULLCORD_WORKSPACES": str(settings.WORKSPACES),
    }
    if not settings.REDIS_IS_GIVEN:
        path = socket_path(settings.DATA)
        environment["REDIS_URL"] = f"unix://{path}"
        log = settings.DATA / "valkey.log"
        log.unlink(missing_ok=True)
        found.append(Program("valkey", valkey_command(path), output=str(log)))
    web = [sys.executable, "-m", "agents.web", "--host", host, "--port", str(port)]
    celery = [sys.executable, "-m", "celery", "--quiet", "-A", "board", "worker"]
    threads = ["--pool", "threads", "--concurrency", "2", "-Q", "agents,housekeeping"]
    # The heartbeat that counts is a row in the database.
    alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    quiet = ["--loglevel", "WARNING"]
    worker = [*celery, *threads, *alone, *quiet]
    return [
        *found,  # the worker comes last: until the pages are ready it would only slow the web server down
        Program("web", web, environment, prepares=True),
        Program("worker", worker, environment | WORKER_ENVIRONMENT),
    ]


def socket_path(data: Path) -> Path:
    """Return where Valkey listens: in the data folder, or in a private folder when that path is too long."""
    path = data / "valkey.sock"
    if len(str(path).encode()) <= preflight.LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(str(data).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"pullcord-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise preflight.Problem(
            f"{folder} belongs to somebody else. Choose a data folder with a shorter path."
        )
    return folder / "valkey.sock"


def valkey_command(socket: Path) -> list[str]:
    """Return the command of a Valkey that only this user reaches and that stores nothing."""
    options = {
        "--port": "0",
        "--unixsocket": str(socket),
        "--unixsocketperm": "700",
        "--save": "",
        "--appendonly": "no",
        "--dir": str(socket.parent),
        "--daemonize": "no",
        "--hz": "1",  # looks a second for what to clean up, of which there is nothing
        "--loglevel": "warning",
    }
    return [preflight.find_valkey(), *(part for pair in options.items() for part in pair)]
