"""Processes: how they end, what is read, and that nothing of them is left."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agents import processes
from agents.process_limits import Limits
from agents.process_running import ProcessResult

LINUX = sys.platform == "linux"


def run(*argv: str, cwd: Path = Path("/"), timeout: float = 10, **options) -> ProcessResult:
    return processes.run(
        argv, cwd=cwd, env=processes.base_environment(), timeout_seconds=timeout, **options
    )


def wait_for(condition: Callable[[], bool], seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def pid_in(path: Path) -> int:
    wait_for(lambda: path.exists() and path.read_text().strip() != "")
    return int(path.read_text())


def test_a_command_ends_with_its_exit_code_and_both_streams():
    result = run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert result.ended_by == "exit"


def test_merged_streams_keep_their_order():
    result = run("sh", "-c", "echo 1; echo 2 >&2; echo 3", merge_stderr=True)
    assert (result.stdout, result.stderr) == (b"1\n2\n3\n", b"")


def test_arguments_are_never_read_by_a_shell(tmp_path):
    assert run("printf", "%s", "$(touch x); `id`", cwd=tmp_path).stdout == b"$(touch x); `id`"
    assert list(tmp_path.iterdir()) == []


def test_the_environment_is_what_was_given_and_a_mark(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    result = processes.run(
        ["/usr/bin/env"], cwd=Path("/"), env={"A": "1"}, timeout_seconds=5, die_with_parent=False
    )
    names = {line.split(b"=")[0] for line in result.stdout.splitlines()}
    assert names == {b"A", b"PULLCORD_RUN"}


def test_the_base_environment_holds_no_secret(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "SECRET_KEY", "DATABASE_URL", "GITHUB_TOKEN", "PULLCORD_X"):
        monkeypatch.setenv(name, "secret")
    assert "secret" not in processes.base_environment().values()


def test_stdin_is_empty_unless_input_is_given():
    assert run("cat").stdout == b""
    data = os.urandom(500_000)
    assert run("cat", input=data).stdout == data


def test_a_command_may_leave_its_input_unread():
    assert run("head", "-c", "3", input=b"abcdef" * 100_000).stdout == b"abc"


def test_a_missing_program_raises_oserror():
    with pytest.raises(FileNotFoundError):
        run("/no/such/program", die_with_parent=False)


def test_a_background_child_does_not_hold_up_a_command_that_succeeded():
    result = run("sh", "-c", "sleep 60 & echo started", timeout=30)
    assert (result.exit_code, result.stdout, result.ended_by) == (0, b"started\n", "exit")
    assert result.seconds < 5


def test_output_that_a_background_child_adds_at_once_is_read():
    result = run("sh", "-c", "(echo late; sleep 60) & exit 0")
    assert result.stdout == b"late\n"


def test_a_command_that_runs_too_long_is_killed():
    result = run("sh", "-c", "echo before; sleep 60", timeout=0.3)
    assert (result.exit_code, result.stdout, result.ended_by) == (None, b"before\n", "timeout")
    assert result.seconds < 3


def test_a_command_that_ignores_the_term_signal_is_killed():
    result = run("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done", timeout=0.2)
    assert result.ended_by == "timeout"
    assert result.seconds < 5


def test_a_cancelled_command_may_clean_up_and_then_ends():
    cancel = threading.Event()
    script = "trap 'echo bye; exit 0' TERM; echo ready; sleep 60 & wait"
    result = run("sh", "-c", script, cancel=cancel, on_output=lambda _: cancel.set())
    assert (result.ended_by, result.exit_code) == ("cancelled", None)
    assert result.stdout == b"ready\nbye\n"


def test_output_is_heard_while_the_command_runs():
    heard: list[bytes] = []
    cancel = threading.Event()

    def listen(chunk: bytes) -> None:
        heard.append(chunk)
        cancel.set()

    run("sh", "-c", "echo first; sleep 60", on_output=listen, cancel=cancel)
    assert heard == [b"first\n"]


def test_long_output_keeps_both_ends_and_says_what_is_missing():
    result = run("seq", "1", "200000", keep_bytes=1000)
    assert result.stdout.startswith(b"1\n2\n")
    assert result.stdout.endswith(b"199999\n200000\n")
    assert f"[... {result.omitted_bytes} bytes left out ...]".encode() in result.stdout
    assert len(result.stdout) < 1100


def test_all_output_is_spooled(tmp_path):
    spool = tmp_path / "spool"
    run("seq", "1", "200000", keep_bytes=1000, spool=spool)
    assert spool.read_bytes() == b"".join(b"%d\n" % n for n in range(1, 200001))


def test_a_command_that_never_stops_writing_is_killed(tmp_path):
    spool = tmp_path / "spool"
    result = run("yes", spool=spool, max_output_bytes=300_000)
    assert (result.ended_by, result.exit_code) == ("output", None)
    assert spool.stat().st_size == 300_000


@pytest.mark.parametrize(
    "escape",
    [
        'sh -c "echo \\$\\$ >pid; exec sleep 60" &',
        'setsid sh -c "echo \\$\\$ >pid; exec sleep 60" &',
        '(setsid sh -c "echo \\$\\$ >pid; exec sleep 60" &) &',
        "setsid sh -c \"(sh -c 'echo \\$\\$ >pid; exec sleep 60' &) ; exit 0\" &",
    ],
    ids=["background", "own session", "double fork", "orphan in its own session"],
)
def test_no_descendant_survives(tmp_path, escape):
    if not LINUX and "setsid" in escape:
        return  # without /proc only the process group is killed
    run("sh", "-c", f"{escape}\nwhile ! test -s pid; do sleep 0.01; done", cwd=tmp_path)
    pid = pid_in(tmp_path / "pid")
    wait_for(lambda: not is_alive(pid))


def test_a_neighbour_with_another_mark_survives(tmp_path):
    other = processes.spawn(["sleep", "60"], cwd=tmp_path, env=processes.base_environment())
    try:
        run("true")
        assert other.poll() is None
    finally:
        other.kill()


def test_many_commands_at_once_do_not_disturb_each_other():
    results: list[ProcessResult] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(run("sh", "-c", f"exit {n}")))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(result.exit_code or 0 for result in results) == list(range(20))


def test_no_file_descriptor_is_left_open():
    folder = Path("/proc/self/fd" if LINUX else "/dev/fd")
    run("true")
    before = len(list(folder.iterdir()))
    for _ in range(5):
        run("sh", "-c", "cat; sleep 60", input=b"x" * 100_000, timeout=0.05)
    assert len(list(folder.iterdir())) == before


def test_limits_hold_for_the_command_and_its_children(tmp_path):
    limits = Limits(file_bytes=4096, open_files=50, cpu_seconds=5)
    result = run("sh", "-c", "ulimit -n; head -c 9000 /dev/zero >big", cwd=tmp_path, limits=limits)
    assert result.stdout == b"50\n"
    assert (tmp_path / "big").stat().st_size == 4096
    assert result.exit_code != 0


def test_the_memory_limit_stops_a_greedy_program():
    program = "x = bytearray(400_000_000)"
    result = run(sys.executable, "-c", program, limits=Limits(memory_bytes=200_000_000))
    assert b"MemoryError" in result.stderr


def test_a_command_dies_with_the_program_that_started_it(tmp_path):
    if not LINUX:
        return  # the signal at the parent's death is a service of Linux
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from agents import processes
processes.run(["sh", "-c", "echo $$ >pid; sleep 60"], cwd=Path({str(tmp_path)!r}),
              env=processes.base_environment(), timeout_seconds=60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script])
    pid = pid_in(tmp_path / "pid")
    parent.kill()
    parent.wait()
    wait_for(lambda: not is_alive(pid))


def test_a_long_lived_child_is_asked_before_it_is_killed(tmp_path):
    log = tmp_path / "log"
    child = processes.spawn(
        ["sh", "-c", "trap 'echo stopped; exit 7' TERM; echo up; while :; do sleep 0.05; done"],
        cwd=tmp_path,
        env=processes.base_environment(),
        output=log,
    )
    wait_for(lambda: log.read_text() == "up\n")
    assert child.poll() is None
    assert child.terminate(grace_seconds=5) == 7
    assert log.read_text() == "up\nstopped\n"


def test_a_long_lived_child_takes_its_own_children_with_it(tmp_path):
    child = processes.spawn(
        ["sh", "-c", "trap '' TERM; setsid sh -c 'echo $$ >pid; exec sleep 60' & wait; sleep 60"],
        cwd=tmp_path,
        env=processes.base_environment(),
    )
    grandchild = pid_in(tmp_path / "pid")
    assert child.terminate(grace_seconds=0.1) == -signal.SIGKILL
    if LINUX:
        wait_for(lambda: not is_alive(grandchild))
    else:
        with contextlib.suppress(ProcessLookupError):
            os.kill(grandchild, signal.SIGKILL)


def test_waiting_for_a_child_gives_up_after_the_time_limit(tmp_path):
    child = processes.spawn(["sleep", "60"], cwd=tmp_path, env=processes.base_environment())
    assert child.wait(0.05) is None
    assert child.kill() == -signal.SIGKILL
    assert child.wait(1) == -signal.SIGKILL


def test_starting_a_command_costs_little():
    def fastest(call: Callable[[], object]) -> float:
        times = []
        for _ in range(15):
            started = time.perf_counter()
            call()
            times.append(time.perf_counter() - started)
        return min(times)

    bare = fastest(lambda: subprocess.run(["true"], capture_output=True, check=True))
    assert fastest(lambda: run("true")) - bare < 0.010  # 1.6 ms on an idle machine
