"""`manage.py up`: the whole product on this machine, with one command."""

import hashlib
import os
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

from agents import preflight, processes
from agents.supervisor import Plan, Program
from board.actions.accounts import create_owner_link

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  named, not bound


class Command(BaseCommand):
    """Checks the machine, migrates, and becomes the supervisor of Valkey, web and worker."""

    # The others read every address, which takes as long as the rest of this command.
    requires_system_checks = (checks.Tags.security,)
    help = "Start Pullcord: web server, worker and Valkey, on SQLite unless DATABASE_URL is set."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add --host, --port and --data, which `board.__main__` has put into the settings already."""
        parser.add_argument(
            "--host", default=settings.HOST, help="address to listen on (127.0.0.1)"
        )
        parser.add_argument(
            "--port", type=int, default=settings.PORT, help="port to listen on (8400)"
        )
        parser.add_argument("--data", default=str(settings.DATA), help="data folder (./data)")

    def handle(self, *_args: Any, host: str, port: int, **_options: Any) -> None:
        """Prepare everything, then hand over."""
        try:
            preflight.check_git()
            lock = preflight.claim_data_folder(settings.DATA)
            preflight.check_port(host, port)
            check_policy()
            kept_alive = programs(host, port)
        except preflight.Problem as problem:
            raise CommandError(str(problem)) from problem
        self._migrate()
        plan = Plan(
            folder=str(settings.BASE_DIR),
            programs=kept_alive,
            host=EVERYWHERE.get(host, host),
            port=port,
            greeting=greeting(),
            farewell="Stopped. Runs that were under way continue at the next start.",
            # Trying the sandbox takes as long as all of this: nobody waits for it.
            remark=[sys.executable, "-m", "agents.sandbox_probe"],
        )
        become_supervisor(plan, lock.fileno())

    def _migrate(self) -> None:
        try:
            if is_behind():
                call_command("migrate", verbosity=0, interactive=False)
        except OperationalError as error:
            raise CommandError(
                f"The database does not answer: {str(error).strip()}\nStart it, or correct DATABASE_URL."
            ) from error


def check_policy() -> None:
    """Say a fault in the installation's own rules now, and not when the first run begins."""
    if not (settings.DATA / "policy.yaml").exists():
        return  # the shipped rules are tested, and reading them would hold up each start
    from agents.harness.policy.load import PolicyError
    from agents.policies import loaded_policy

    try:
        loaded_policy()
    except PolicyError as error:
        raise preflight.Problem(str(error)) from error


def is_behind() -> bool:
    """Return whether the database lacks a migration. `migrate` takes a second to find that out."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


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
    daphne = [sys.executable, "-m", "daphne", "-b", host, "-p", str(port), "--verbosity", "0"]
    web = [*daphne, "--no-server-name", "board.asgi:application"]
    celery = [sys.executable, "-m", "celery", "--quiet", "-A", "board", "worker"]
    threads = ["--pool", "threads", "--concurrency", "2", "-Q", "agents,housekeeping"]
    # The heartbeat that counts is a row in the database.
    alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    quiet = ["--loglevel", "WARNING"]
    return [
        *found,
        Program("web", web, environment),
        Program("worker", [*celery, *threads, *alone, *quiet], environment),
    ]


def greeting() -> str:
    """Return what is said once the address answers, with a link while nobody owns the installation."""
    lines = ["", f"Pullcord is at {settings.PUBLIC_URL}"]
    token = create_owner_link()
    if token is not None:
        lines += [
            "Nobody owns it yet. Open this link, it works once:",
            f"{settings.PUBLIC_URL}/setup/{token}/",
        ]
    if os.geteuid() == 0:
        lines.append(
            "This runs as root, for whom the limits on agents' commands do not hold. "
            "An ordinary user is safer."
        )
    lines.append("Ctrl-C stops it.")
    return "\n".join(f"  {line}" if line else "" for line in lines) + "\n"


def become_supervisor(plan: Plan, lock: int) -> None:
    """Replace this process by the supervisor, which keeps the data folder's lock and reads the plan.

    The plan goes through a pipe, since it holds the owner link: others may see arguments.
    """
    reader, writer = os.pipe()
    for descriptor in (reader, lock):
        os.set_inheritable(descriptor, True)  # noqa: FBT003  its only form
    with os.fdopen(writer, "w", encoding="utf-8") as pipe:
        pipe.write(plan.to_json())
    os.chdir(plan.folder)  # where Python finds the module
    processes.replace_self([sys.executable, "-m", "agents.supervisor", str(reader)], {})


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
        "--loglevel": "warning",
    }
    return [preflight.find_valkey(), *(part for pair in options.items() for part in pair)]
