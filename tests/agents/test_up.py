"""`manage.py up` as a person runs it: real processes, a private data folder, a free port."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.parents import die_with_parent
from tests.product import ROOT, free_port

# What `up` starts here is the embedded form, with SQLite, whichever database the other tests are on.
pytestmark = [pytest.mark.process, pytest.mark.one_database, pytest.mark.timeout(300)]

WAIT_SECONDS = 90.0
STOP_SECONDS = 10.0


class Up:
    """A running `manage.py up`."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.port = free_port()
        self.data = data
        self.said = folder / "console"
        with self.said.open("wb") as console:
            self.process = subprocess.Popen(
                command("--port", str(self.port), "--data", str(data)),
                cwd=ROOT,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
                preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
            )

    def wait(self) -> None:
        """Wait for the greeting and for the worker's first heartbeat."""
        self.until(lambda: "Ctrl-C stops it." in self.console(), "the greeting")
        self.until(lambda: self.health()["workers"], "a worker")

    def console(self) -> str:
        return self.said.read_text(errors="replace")

    def health(self) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=20) as answer:
            return json.load(answer)

    def children(self) -> dict[str, int]:
        """The pids of the three programs by name."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found: dict[str, int] = {}
        for pid in map(int, path.read_text().split()):
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            for name, word in (
                ("valkey", b"valkey"),
                ("web", b"agents.web"),
                ("worker", b"celery"),
            ):
                if word in line and b"setpriv" not in line:
                    found.setdefault(name, pid)
        return found

    def until(self, look: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if found := look():
                    return found
            except OSError:
                pass
            assert self.process.poll() is None or what == "its end", self.console()
            time.sleep(0.1)
        raise AssertionError(f"waited in vain for {what}\n{self.console()[-4000:]}")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "manage.py", "up", *arguments]


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **more}


def refusal(*arguments: str, **variables: str) -> str:
    """Run an `up` that must not start and return what it says."""
    done = subprocess.run(
        command(*arguments),
        cwd=ROOT,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout == ""
    return done.stderr


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The product on an empty folder that does not exist yet."""
    folder = tmp_path_factory.mktemp("up")
    running = Up(folder, folder / "new" / "data")
    try:
        running.wait()
        yield running
    finally:
        running.end()


def test_it_starts_on_nothing_and_says_where_it_is_and_how_to_own_it(up: Up) -> None:
    # Tests that kill a part may have come before this one.
    health = up.until(lambda: (seen := up.health())["workers"] and seen, "a worker")
    assert (health["database"], health["redis"]) == ("ok", "ok")
    assert len(health["workers"]) == 1
    said = up.console()
    assert f"Pullcord is at http://127.0.0.1:{up.port}\n" in said
    link = next(line.strip() for line in said.splitlines() if "/setup/" in line)
    with urllib.request.urlopen(link, timeout=20) as page:  # noqa: S310  our own address
        assert page.status == 200
    # Nothing but the greeting: what Valkey, Celery and Daphne have to say is nobody's concern.
    greeting = ("Pullcord is", "Nobody owns", "http://", "Sandbox", "This runs as root", "Ctrl-C")
    others = [
        line for line in said.splitlines() if line.strip() and not line.strip().startswith(greeting)
    ]
    assert others == []


def test_a_second_one_on_the_same_folder_is_refused(up: Up) -> None:
    said = refusal("--port", str(free_port()), "--data", str(up.data))
    assert f"Another Pullcord (process {up.process.pid}) uses the data folder" in said


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refusal("--port", str(port), "--data", str(tmp_path / "data"))
    assert f"127.0.0.1:{port} cannot be used" in said


def test_a_policy_file_with_a_fault_is_refused(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("allow:\n  - nonsense: true\n")
    said = refusal("--port", str(free_port()), "--data", str(tmp_path))
    assert "policy.yaml" in said


def test_settings_that_are_not_safe_are_refused(tmp_path: Path) -> None:
    arguments = ["--port", str(free_port()), "--data", str(tmp_path)]
    said = refusal(*arguments, PULLCORD_HOSTS="*")
    assert "PULLCORD_HOSTS accepts every host name" in said


def test_its_options_are_explained() -> None:
    done = subprocess.run(
        command("--help"), cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    )
    assert "--data DATA" in done.stdout


def test_a_data_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refusal("--port", str(free_port()), "--data", str(tmp_path / "file" / "data"))
    assert "cannot be written" in said


def test_a_database_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"postgres://127.0.0.1:{taken.getsockname()[1]}/none"
        arguments = ["--port", str(free_port()), "--data", str(tmp_path / "data")]
        said = refusal(*arguments, DATABASE_URL=url)
    assert "The database does not answer" in said
    assert "DATABASE_URL" in said


def test_each_child_that_is_killed_comes_back_and_one_signal_ends_them_all(tmp_path: Path) -> None:
    up = Up(tmp_path, tmp_path / "data")  # its own, for it ends it
    try:
        up.wait()
        kill_and_stop(up)
    finally:
        up.end()


def kill_and_stop(up: Up) -> None:
    """Kill each child, see it come back, then stop everything by one signal."""
    before = up.until(lambda: len(up.children()) == 3 and up.children(), "three children")
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)

    def are_new() -> bool:
        now = up.children()
        return len(now) == 3 and not set(now.values()) & set(before.values())

    up.until(are_new, "three new children")
    up.until(lambda: up.health()["redis"] == "ok", "everything to work again")
    left = list(up.children().values())
    began = time.monotonic()
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(3 * STOP_SECONDS) == 0
    assert time.monotonic() - began < STOP_SECONDS + 1
    assert not any(is_alive(pid) for pid in left)
    assert up.console().rstrip().endswith("continue at the next start.")
    assert "Traceback" not in up.console(), up.console()


def test_killed_itself_it_leaves_no_process_even_with_a_long_path(tmp_path: Path) -> None:
    running = Up(tmp_path, tmp_path / ("long" * 30))
    try:
        running.wait()
        left = list(running.children().values())
        assert len(left) == 3
    finally:
        running.end()
    running.until(lambda: not any(is_alive(pid) for pid in left), "its end", seconds=30)
