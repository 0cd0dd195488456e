import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from agents.supervisor import LONGEST_PAUSE_SECONDS, Keeper, Plan, Program, Supervisor

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 20.0


def until(look: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not look():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def shell(name: str, script: str) -> Program:
    return Program(name, ["/bin/sh", "-c", script])


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Callable[[list[Program]], Supervisor]]:
    """Run a supervisor of these programs until the test is over."""
    running: list[tuple[Supervisor, threading.Thread]] = []

    def start(programs: list[Program]) -> Supervisor:
        made = Supervisor(programs, tmp_path)
        thread = threading.Thread(target=made.run)
        thread.start()
        running.append((made, thread))
        return made

    yield start
    for made, thread in running:
        made.stop()
        thread.join()


def test_a_program_that_is_killed_is_started_again(
    supervisor: Callable[[list[Program]], Supervisor],
) -> None:
    (keeper,) = supervisor([shell("one", "exec sleep 100")]).keepers
    until(lambda: keeper.pid, "its start")
    first = keeper.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: keeper.pid not in (None, first), "its second start")


def test_a_program_that_keeps_ending_is_started_less_and_less_often(tmp_path: Path) -> None:
    keeper = Keeper(shell("one", "exit 3"), tmp_path)
    starts, now = [], 1000.0
    for _ in range(9):
        while keeper.pid is None:
            now += 0.1
            keeper.look(now)
        starts.append(now)
        until(partial(is_over, keeper, now), "its end")
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert gaps == sorted(gaps)
    assert gaps[0] < 0.5
    assert gaps[-1] == pytest.approx(LONGEST_PAUSE_SECONDS, abs=0.5)


def is_over(keeper: Keeper, now: float) -> bool:
    keeper.look(now)
    return keeper.pid is None


def test_the_first_program_is_stopped_after_the_others(
    supervisor: Callable[[list[Program]], Supervisor], tmp_path: Path
) -> None:
    wait = "sleep 100 & wait"
    said = tmp_path / "said"
    made = supervisor(
        [
            shell("first", f"trap 'echo first >> {said}; exit' TERM; echo up >> {said}; {wait}"),
            shell(
                "second",
                f"trap 'sleep 0.3; echo second >> {said}; exit' TERM; echo up >> {said}; {wait}",
            ),
        ]
    )
    until(lambda: said.exists() and said.read_text() == "up\nup\n", "both")
    made.stop()
    until(lambda: said.read_text() == "up\nup\nsecond\nfirst\n", "the end of both")


def test_a_program_that_does_not_listen_is_killed_with_all_it_started(tmp_path: Path) -> None:
    keeper = Keeper(
        shell("deaf", "trap '' TERM; sleep 4714 & echo $! > child; wait; wait"), tmp_path
    )
    keeper.look(0.0)
    child = tmp_path / "child"
    until(lambda: child.exists() and child.read_text().strip(), "its child")
    keeper.stop(0.2)
    until(lambda: not Path(f"/proc/{int(child.read_text())}").exists(), "the child's end")
    assert keeper.pid is None


def test_what_a_program_prints_goes_to_its_file(tmp_path: Path) -> None:
    keeper = Keeper(
        Program("loud", ["/bin/sh", "-c", "echo out; echo err >&2"], output=str(tmp_path / "log")),
        tmp_path,
    )
    keeper.look(0.0)
    until(lambda: (tmp_path / "log").read_text() == "out\nerr\n", "its words")
    keeper.stop()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[[Plan], "subprocess.Popen[str]"]]:
    """Run the supervisor as `manage.py up` does, as a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(plan: Plan) -> "subprocess.Popen[str]":
        reader, writer = os.pipe()
        with os.fdopen(writer, "w") as pipe:
            pipe.write(plan.to_json())
        child = subprocess.Popen(
            [sys.executable, "-m", "agents.supervisor", str(reader)],
            cwd=ROOT,
            pass_fds=[reader],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        os.close(reader)
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def plan_of(folder: Path, port: int) -> Plan:
    """Two programs that write their pids."""
    programs = [shell(name, f"echo $$ > {folder / name}; exec sleep 4715") for name in ("a", "b")]
    return Plan(str(folder), programs, "127.0.0.1", port, "It is here.", "It is gone.")


def pids(folder: Path) -> list[int]:
    """The pids of both programs, once both are there."""
    until(
        lambda: all((folder / name).exists() and (folder / name).read_text() for name in "ab"),
        "both",
    )
    return [int((folder / name).read_text()) for name in "ab"]


def is_alive(pid: int) -> bool:
    """Whether the process runs: an orphan whose new parent does not look is dead all the same."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_killed_supervisor_leaves_nothing_behind(
    program: Callable[[Plan], "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    child = program(plan_of(tmp_path, 1))
    left = pids(tmp_path)
    child.kill()
    until(lambda: not any(is_alive(pid) for pid in left), "the end of both")


def test_the_greeting_comes_when_the_address_answers_and_a_signal_ends_it_all(
    program: Callable[[Plan], "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = program(plan_of(tmp_path, server.getsockname()[1]))
        left = pids(tmp_path)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(100).startswith(b"GET /healthz")
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
            assert child.stdout is not None
            assert child.stdout.readline() == "It is here.\n"
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=WAIT_SECONDS)
    assert said == "It is gone.\n"
    assert child.returncode == 0
    assert not any(is_alive(pid) for pid in left)


def test_the_greeting_ends_with_what_a_command_remarks(
    program: Callable[[Plan], "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        plan = plan_of(tmp_path, server.getsockname()[1])
        child = program(replace(plan, remark=["/bin/sh", "-c", "echo And so on."]))
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
            assert child.stdout is not None
            assert child.stdout.readline() == "It is here.And so on.\n"
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=WAIT_SECONDS)


def test_a_plan_survives_its_way_through_the_pipe() -> None:
    plan = plan_of(Path("/nowhere"), 8400)
    assert Plan.from_json(json.dumps(json.loads(plan.to_json()))) == plan
