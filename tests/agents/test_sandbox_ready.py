"""The sandbox that is made before its command is known: it is like any other, and nothing of it is left."""

import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agents.sandbox import Sandbox
from agents.sandbox_probe import probe
from agents.sandbox_ready import MOST_READY

pytestmark = pytest.mark.skipif(probe().name != "bubblewrap", reason=probe().message)

# What a command can see of how it was started.
LOOK = (
    "env | sort; pwd; id; ulimit -a; umask; grep -E 'Cap|Sec|NoNew|Sig|Groups' /proc/self/status; "
    "tr '\\0' ' ' </proc/$$/cmdline; ls -1 /proc/self/fd; readlink /proc/self/fd/0; "
    'echo "$0 $# $- $SHLVL $PPID $BASH_EXECUTION_STRING"; trap; shopt; declare -p | grep -c ^declare; '
    "cat /proc/self/mountinfo | cut -d' ' -f4-9 | sed 's/master:.*//'"
)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Sandbox]:
    with closing(sandbox_in(tmp_path)) as made:
        yield made


def sandbox_in(folder: Path) -> Sandbox:
    for name in ("workspace", "scratch", "outputs"):
        (folder / name).mkdir(parents=True)
    return Sandbox(
        folder / "workspace",
        scratch=folder / "scratch",
        outputs=folder / "outputs",
        level=probe(),
    )


def waiting_in(folder: Path) -> list[int]:
    """The sandboxes of a folder that run now: of each the process that we have started."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if bytes(folder / "workspace") in words and int(parent) == os.getpid() and state != "Z":
            found.append(int(path.name))
    return found


def output(shell: Sandbox, command: str, *, timeout: float = 20) -> str:
    return shell.run(command, timeout_seconds=timeout).output.decode()


def test_a_command_cannot_tell_that_its_sandbox_was_ready(shell: Sandbox, tmp_path: Path) -> None:
    plain = output(shell, LOOK)
    shell.get_ready()
    assert len(waiting_in(tmp_path)) == 1
    assert output(shell, LOOK) == plain
    assert "Seccomp:\t2" in plain


def test_it_is_made_once_serves_one_command_and_is_gone(shell: Sandbox, tmp_path: Path) -> None:
    shell.get_ready()
    first = waiting_in(tmp_path)
    shell.get_ready()
    assert waiting_in(tmp_path) == first
    assert output(shell, "sleep 100 & echo one") == "one\n"
    assert waiting_in(tmp_path) == []
    assert output(shell, "echo two") == "two\n"


def test_what_was_written_meanwhile_is_there(shell: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "workspace/a.txt").write_text("old")
    shell.get_ready()
    (tmp_path / "workspace/new.txt").write_text("new")
    (tmp_path / "workspace/a.txt").unlink()
    (tmp_path / "workspace/new.txt").rename(tmp_path / "workspace/a.txt")
    assert output(shell, "cat a.txt; ls") == "newa.txt\n"


def test_the_time_of_a_command_begins_with_the_command(shell: Sandbox) -> None:
    shell.get_ready()
    time.sleep(1.2)
    result = shell.run("sleep 0.1; echo done", timeout_seconds=1)
    assert (result.ended_by, result.output) == ("exit", b"done\n")
    assert result.seconds < 1
    shell.get_ready()
    assert shell.run("sleep 100", timeout_seconds=0.3).ended_by == "timeout"


def test_a_command_in_it_can_be_cancelled(shell: Sandbox, tmp_path: Path) -> None:
    shell.get_ready()
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    assert shell.run("sleep 100", timeout_seconds=30, cancel=cancel).ended_by == "cancelled"
    assert waiting_in(tmp_path) == []


def test_if_it_was_killed_the_command_runs_all_the_same(shell: Sandbox, tmp_path: Path) -> None:
    shell.get_ready()
    for pid in waiting_in(tmp_path):
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    assert output(shell, "echo here") == "here\n"


@pytest.mark.parametrize(
    "command",
    [
        "printf '%s' 'two\nlines'  \n\n",
        'printf %s "$command" \'\\\\\' "${#BASH_ARGV[@]}"',
        "cat <<'END'\n\tä → 字\nEND\n",
        "exit 7",
        "kill -9 $$",
        "echo " + "x" * 20_000,
        "IFS=: read a b <<< 'one:two'; echo $b",
        "printf %s '\udcff\udcc3(' ä | od -c",
        "cat",
        "syntax ( error",
    ],
)
def test_each_text_means_what_it_means_elsewhere(shell: Sandbox, command: str) -> None:
    plain = shell.run(command, timeout_seconds=20)
    shell.get_ready()
    found = shell.run(command, timeout_seconds=20)
    assert (found.output, found.exit_code) == (plain.output, plain.exit_code)


def test_a_nul_is_refused_as_everywhere(shell: Sandbox) -> None:
    shell.get_ready()
    with pytest.raises(ValueError, match="null byte"):
        shell.run("echo a\0b", timeout_seconds=20)


def test_without_room_for_one_nothing_is_made_and_the_next_command_runs(
    shell: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> tuple[int, int]:
        raise OSError(errno.EMFILE, "Too many open files")

    for _ in range(MOST_READY + 1):  # each gives its place back
        with monkeypatch.context() as patched:
            patched.setattr(os, "pipe", full)
            shell.get_ready()
    assert waiting_in(tmp_path) == []
    shell.get_ready()
    assert waiting_in(tmp_path) != []
    assert output(shell, "echo works") == "works\n"


def test_closing_ends_it_and_no_other_is_made(shell: Sandbox, tmp_path: Path) -> None:
    shell.get_ready()
    shell.close()
    assert waiting_in(tmp_path) == []
    shell.get_ready()
    assert waiting_in(tmp_path) == []
    assert output(shell, "echo still") == "still\n"


def test_no_descriptor_is_left(shell: Sandbox) -> None:
    def descriptors() -> set[str]:
        return set(os.listdir("/proc/self/fd"))  # noqa: PTH208

    output(shell, "true")
    before = descriptors()
    for command in ("true", "x" * 5_000):
        shell.get_ready()
        output(shell, command)
    shell.close()
    assert descriptors() == before


def test_a_worker_has_only_so_many(tmp_path: Path) -> None:
    shells = [sandbox_in(tmp_path / str(number)) for number in range(MOST_READY + 1)]
    try:
        for shell in shells:
            shell.get_ready()
        assert waiting_in(tmp_path / "0")
        assert not waiting_in(tmp_path / str(MOST_READY))
        assert output(shells[-1], "echo works") == "works\n"
        shells[0].close()
        shells[-1].get_ready()
        assert waiting_in(tmp_path / str(MOST_READY))
    finally:
        for shell in shells:
            shell.close()
