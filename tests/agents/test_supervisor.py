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

from agents.supervisor import (
    LONGEST_PAUSE_SECONDS,
    LOOK_SECONDS,
    Keeper,
    Plan,
    Program,
    StartProblem,
    Supervisor,
)

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
        code = f"from agents.supervisor import Plan, Program, carry_out; carry_out({plan!r})"
        child = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


# The first of its arguments is --report, the second the descriptor.
REPORT = 'echo \'{"greeting": "It is here."}\' > /dev/fd/$1'


def plan_of(folder: Path, port: int) -> Plan:
    """Two programs that write their pids; the first prepares."""
    first, second = (
        shell(name, f"echo $$ > {folder / name}; {more}exec sleep 4715")
        for name, more in (("a", f"{REPORT}; "), ("b", ""))
    )
    programs = [replace(first, prepares=True), second]
    return Plan(str(folder), programs, "127.0.0.1", port, "It is gone.")


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
            assert connection.recv(100).startswith(b"GET /signin/")
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


def preparing(folder: Path, script: str) -> list[Program]:
    """A program that is there first, one that prepares so, and one that leaves a trace."""
    return [
        shell("valkey", "exec sleep 4716"),
        replace(shell("web", script), prepares=True),
        shell("worker", f"touch {folder / 'started'}; exec sleep 4716"),
    ]


def test_what_the_preparing_program_finds_wrong_ends_it_all(tmp_path: Path) -> None:
    made = Supervisor(
        preparing(tmp_path, 'echo \'{"problem": "No room."}\' > /dev/fd/$1; exit 1'), tmp_path
    )
    with pytest.raises(StartProblem, match=r"^No room\.$"):
        made.run()
    assert all(keeper.pid is None for keeper in made.keepers)
    assert not (tmp_path / "started").exists()


def test_a_preparing_program_that_dies_ends_it_all(tmp_path: Path) -> None:
    made = Supervisor(preparing(tmp_path, "kill -9 $$"), tmp_path)
    with pytest.raises(StartProblem, match="ended before it was ready"):
        made.run()
    assert not (tmp_path / "started").exists()


def test_what_comes_after_the_preparing_program_waits_for_its_report(tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"until [ -e {go} ]; do sleep 0.01; done"
    made = Supervisor(
        preparing(tmp_path, f"{wait}; ls {tmp_path} > {tmp_path}/seen; {REPORT}; exec sleep 4716"),
        tmp_path,
    )
    said: list[str] = []
    thread = threading.Thread(target=made.run, args=(said.append,))
    thread.start()
    try:
        until(lambda: made.keepers[1].pid, "the program that prepares")
        time.sleep(2 * LOOK_SECONDS)  # in which what waits would have been started
        go.touch()
        until((tmp_path / "started").exists, "what comes after it")
        assert "started" not in (tmp_path / "seen").read_text()
        assert said == ["It is here."]
    finally:
        made.stop()
        thread.join()


def test_a_signal_while_something_prepares_ends_it_all(tmp_path: Path) -> None:
    made = Supervisor(preparing(tmp_path, "exec sleep 4716"), tmp_path)
    thread = threading.Thread(target=made.run)
    thread.start()
    until(lambda: made.keepers[1].pid, "the program that prepares")
    made.stop()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()
    assert all(keeper.pid is None for keeper in made.keepers)
    assert not (tmp_path / "started").exists()


def test_a_program_that_prepared_is_started_again_without_that(tmp_path: Path) -> None:
    arguments = tmp_path / "arguments"
    script = f'echo "$0" >> {arguments}; [ "$0" = --report ] && {REPORT}; exec sleep 4716'
    made = Supervisor(preparing(tmp_path, script), tmp_path)
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        until((tmp_path / "started").exists, "everything")
        pid = made.keepers[1].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: arguments.read_text().count("\n") == 2, "its second start")
        first, second = arguments.read_text().splitlines()
        assert first == "--report"
        assert second != "--report"
    finally:
        made.stop()
        thread.join()
