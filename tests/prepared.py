"""The migrated database that everything of one test run begins with: made once, and copied in no time.

Two copies of it: as the migrations leave it, for the tests' own database; and with an owner, for a product.
`python -m tests.prepared` makes both for who comes later.
"""

import atexit
import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests.databases import SHARED, URL
from tests.warm import template

ROOT = Path(__file__).resolve().parent.parent
SQLITE = "pullcord.sqlite3"
MIGRATED = "migrated.sqlite3"
OWNER = "alice@example.org"


@dataclass(frozen=True)
class Prepared:
    """What to copy: on SQLite the path of a file, on PostgreSQL the name of a database."""

    migrated: str
    owned: str  # with an owner
    token: str  # hers


@cache
def prepare(url: str) -> Prepared:
    """Make the databases for this test run, unless another process has. `url` is PostgreSQL's, or ""."""
    folder = Path(os.environ.get(SHARED) or tempfile.mkdtemp(prefix="pullcord-prepared-"))
    if SHARED not in os.environ:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = folder / "prepared.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            found = on_postgres(url, folder) if url else on_sqlite(folder)
            made.write_text(json.dumps(found))
    return Prepared(**json.loads(made.read_text()))


def on_sqlite(folder: Path) -> Mapping[str, str]:
    """Make them as files in `folder`."""
    environment = environment_of(folder)
    run_manage("migrate", "--verbosity", "0", environment=environment)
    owned, migrated = folder / SQLITE, folder / MIGRATED
    shutil.copy(owned, migrated)
    token = run_manage("createtoken", OWNER, environment=environment).strip()
    return {"migrated": str(migrated), "owned": str(owned), "token": token}


def on_postgres(url: str, folder: Path) -> Mapping[str, str]:
    """Make them on the server at `url`."""
    migrated, owned = (f"{kind}_{secrets.token_hex(6)}" for kind in ("migrated", "owned"))
    environment = environment_of(folder)
    environment["DATABASE_URL"] = copy_database(url, "template1", migrated)
    run_manage("migrate", "--verbosity", "0", environment=environment)
    environment["DATABASE_URL"] = copy_database(url, migrated, owned)
    token = run_manage("createtoken", OWNER, environment=environment).strip()
    return {"migrated": migrated, "owned": owned, "token": token}


def copy_database(url: str, name: str, new_name: str) -> str:
    """Copy a database of PostgreSQL under a new name, and return its address."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{new_name}" TEMPLATE "{name}"'.encode())
    return urlunsplit(urlsplit(url)._replace(path=f"/{new_name}"))


def environment_of(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PULLCORD_DATA": str(folder),
        "SECRET_KEY": secrets.token_hex(32),
        "DJANGO_SETTINGS_MODULE": "board.settings",
    }


def run_manage(*arguments: str, environment: Mapping[str, str], warm: bool = False) -> str:
    """Run a management command and return what it prints. `warm` forks it: see tests/warm.py."""
    command = ["manage.py", *arguments]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        if warm:
            code = (
                template()
                .fork(command, environment=environment, folder=ROOT, output=output, errors=errors)
                .wait()
            )
        else:
            code = subprocess.run(
                [sys.executable, *command],
                cwd=ROOT,
                env=dict(environment),
                stdout=output,
                stderr=errors,
                check=False,
            ).returncode
        output.seek(0)
        errors.seek(0)
        printed = output.read().decode()
        if code:
            raise RuntimeError(f"{arguments}: {printed}{errors.read().decode()}")
    return printed


if __name__ == "__main__":
    prepare(os.environ.get(URL, ""))
