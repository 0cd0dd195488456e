"""`manage.py up`: the whole product on this machine, with one command."""

import hashlib
import signal
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from agents import preflight, processes
from agents.sandbox import probe
from agents.supervisor import Program, Supervisor
from board.actions.accounts import create_owner_link
from board.actions.workers import is_beating

READY_SECONDS = 30.0


class Command(BaseCommand):
    """Checks the machine, migrates, and supervises Valkey, web and worker."""

    help = "Start Pullcord: web server, worker and Valkey, on SQLite unless DATABASE_URL is set."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add --host, --port and --data."""
        parser.add_argument(
            "--host", default=settings.HOST, help="address to listen on (127.0.0.1)"
        )
        parser.add_argument(
            "--port", type=int, default=settings.PORT, help="port to listen on (8400)"
        )
        parser.add_argument("--data", default=str(settings.DATA), help="data folder (./data)")

    def handle(self, *_args: Any, host: str, port: int, data: str, **_options: Any) -> None:
        """Run until Ctrl-C."""
        wanted = self._wanted_environment(host, port, Path(data))
        if wanted:
            processes.replace_self([sys.executable, *sys.argv], wanted)
        try:
            preflight.check_git()
            with preflight.claim_data_folder(settings.DATA):
                preflight.check_port(host, port)
                self._run(host, port)
        except preflight.Problem as problem:
            raise CommandError(str(problem)) from problem

    def _wanted_environment(self, host: str, port: int, data: Path) -> dict[str, str]:
        """Return the variables that the settings must be read with, if they were read with others."""
        wanted = {}
        if data.resolve() != settings.DATA:
            wanted["PULLCORD_DATA"] = str(data.resolve())
        if host != settings.HOST:
            wanted["PULLCORD_HOST"] = host
        if port != settings.PORT:
            wanted["PULLCORD_PORT"] = str(port)
        return wanted

    def _run(self, host: str, port: int) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        supervisor = Supervisor(self._programs(host, port), settings.BASE_DIR)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda _number, _frame: supervisor.stop())
        threading.Thread(target=self._greet, args=(host, port), daemon=True).start()
        supervisor.run()
        self.stdout.write("Stopped. Runs that were under way continue at the next start.")

    def _programs(self, host: str, port: int) -> list[Program]:
        environment = processes.own_environment()
        programs = []
        if not settings.REDIS_IS_GIVEN:
            socket_path = _socket_path(settings.DATA)
            environment["REDIS_URL"] = f"unix://{socket_path}"
            log = settings.DATA / "valkey.log"
            log.unlink(missing_ok=True)
            programs.append(Program("valkey", _valkey(socket_path), environment, output=log))
        daphne = [sys.executable, "-m", "daphne", "-b", host, "-p", str(port), "--verbosity", "0"]
        web = Program("web", [*daphne, "--no-server-name", "board.asgi:application"], environment)
        celery = [sys.executable, "-m", "celery", "-A", "board", "worker", "--pool", "threads"]
        quiet = ["--without-gossip", "--without-mingle", "--loglevel", "WARNING"]
        worker = Program(
            "worker",
            [*celery, "--concurrency", "2", "-Q", "agents,housekeeping", *quiet],
            environment,
            is_well=is_beating,
        )
        return [*programs, web, worker]

    def _greet(self, host: str, port: int) -> None:
        """Print the address once it answers, and the owner link while nobody owns the installation."""
        shown = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104  compared, not bound
        address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"
        deadline = time.monotonic() + READY_SECONDS
        while not _answers(f"{address}/healthz") and time.monotonic() < deadline:
            time.sleep(0.05)
        level = probe()
        self.stdout.write(f"\n  Pullcord is at {settings.PUBLIC_URL}")
        token = create_owner_link()
        if token is not None:
            self.stdout.write(
                f"  Nobody owns it yet. Open this link, it works once:\n  {settings.PUBLIC_URL}/setup/{token}/"
            )
        if level.name != "bubblewrap":
            self.stdout.write(f"  {level.message}")
        self.stdout.write("  Ctrl-C stops it.\n")
        self.stdout.flush()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):  # noqa: S310  our own address
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def _socket_path(data: Path) -> Path:
    """Return where Valkey listens: in the data folder, or in a private folder when that path is too long."""
    path = data / "valkey.sock"
    if len(str(path).encode()) <= preflight.LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(str(data).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"pullcord-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / "valkey.sock"


def _valkey(socket_path: Path) -> list[str]:
    """Return the command of a Valkey that only this user reaches and that stores nothing."""
    options = {
        "--port": "0",
        "--unixsocket": str(socket_path),
        "--unixsocketperm": "700",
        "--save": "",
        "--appendonly": "no",
        "--dir": str(socket_path.parent),
        "--daemonize": "no",
        "--loglevel": "warning",
    }
    return [preflight.find_valkey(), *(part for pair in options.items() for part in pair)]
