"""`manage.py up`: the whole product on this machine, with one command."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from agents import starting


class Command(BaseCommand):
    """Says what the options are; `board.__main__` starts without Django where it can."""

    requires_system_checks = ()  # the web server makes them before it listens
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
        """Start, and stay."""
        raise SystemExit(starting.start(host, port))
