"""The board page: queries, time in the server, and size, with 100, 1,000 and 5,000 cards.

    python -m benchmarks.board [--cards 100 1000 5000]

On a database of its own, in memory. What a drag takes and how soon others see it: `benchmarks.live`.
"""

import argparse
import gzip
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from benchmarks.fill import fill, make_project  # noqa: E402
from benchmarks.machine import describe, figure, value  # noqa: E402
from board.models import Project, User  # noqa: E402

STATIC = Path(__file__).resolve().parent.parent / "static"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", type=int, nargs="+", default=[100, 1_000, 5_000])
    numbers = parser.parse_args().cards
    describe()
    call_command("migrate", verbosity=0)
    user = User.objects.create_user(
        email="bench@example.org",
        password=None,
        name="Bench",
        is_owner=True,  # only an owner may name a folder of the server
    )
    client = Client(headers={"host": "127.0.0.1:8400"})
    client.force_login(user)
    for number in numbers:
        project = make_project(user, f"B{number}")
        fill(project, user, number)
        measure(client, project, number)
        page = client.get(f"/p/{project.key}/").content.decode()
    weigh(page)


def measure(client: Client, project: Project, number: int) -> None:
    """Load the page some times and print the figures."""
    path = f"/p/{project.key}/"
    client.get(path)
    connection.force_debug_cursor = True
    page = client.get(path)  # it forgets the queries before it begins
    queries = list(connection.queries)
    connection.force_debug_cursor = False
    seconds = []
    for _ in range(10):
        started = time.perf_counter()
        page = client.get(path)
        seconds.append(time.perf_counter() - started)
    figure(f"{number} cards: page in the server", seconds)
    value(f"{number} cards: SQL queries", len(queries), goal="<= 12")
    size = len(gzip.compress(page.content, 6)) / 1024
    value(
        f"{number} cards: HTML",
        f"{size:.1f} KB gz, {len(page.content) / 1024:.0f} KB",
        goal="<= 60 KB gz for 1,000",
    )


def weigh(page: str) -> None:
    """Print what the page's scripts and styles weigh, with all that these import."""
    scripts = imported(re.findall(r'src="/static/\w+/([^"]+\.js)', page))
    styles = {STATIC / name for name in re.findall(r'href="/static/\w+/([^"]+\.css)', page)}
    for kind, paths, goal in (("js", scripts, 60), ("css", styles, 20)):
        size = sum(len(gzip.compress(path.read_bytes(), 6)) for path in paths) / 1024
        value(
            f"the page's {kind}", f"{size:.1f} KB gz in {len(paths)} files", goal=f"<= {goal} KB gz"
        )


def imported(names: Iterable[str]) -> set[Path]:
    """Return these modules and those that they import, one after another."""
    found: set[Path] = set()
    waiting = [STATIC / name for name in names]
    while waiting:
        path = waiting.pop().resolve()
        if path not in found:
            found.add(path)
            names = re.findall(r'(?:from|import)\s*\(?\s*"(\.[^"]+)"', path.read_text())
            waiting += [path.parent / name for name in names]
    return found


if __name__ == "__main__":
    main()
