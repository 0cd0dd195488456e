"""Attacks on processes and on the kernel: other programs of the machine, rarely used calls, what is left behind."""

import ctypes
import errno
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agents import cgroups
from agents.landlock import SIGNALS_SINCE
from agents.sandbox_levels import SandboxLevel
from tests.attacks.scene import LANDLOCK, NONE, Scene

CALL = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    ctypes.set_errno(0)
    answer = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return ctypes.get_errno() if answer < 0 else 0
"""

# Attacks on the process $VICTIM; without a sandbox each one works.
ON_A_PROCESS = {
    "a signal": 'kill -STOP "$VICTIM"',
    "a signal through a pidfd": """python3 -c '
import os, signal
signal.pidfd_send_signal(os.pidfd_open(int(os.environ["VICTIM"])), signal.SIGCONT)'""",
    "other limits": """python3 -c '
import os, resource
resource.prlimit(int(os.environ["VICTIM"]), resource.RLIMIT_NOFILE, (10, 10))'""",
    "other niceness": 'renice -n 10 -p "$VICTIM" >/dev/null',
    "other processors": 'taskset -p 1 "$VICTIM" >/dev/null',
    "reading its memory map": 'grep -q . "/proc/$VICTIM/maps"',
    "its open files": 'ls -l "/proc/$VICTIM/fd/0" >/dev/null',
    "its working directory": 'readlink "/proc/$VICTIM/cwd" >/dev/null',
}

# Kernel calls that must be refused, as numbers on x86-64 and on 64-bit ARM.
REFUSED_CALLS = {
    "bpf": (321, 280), "perf_event_open": (298, 241), "io_uring_setup": (425, 425),
    "keyctl": (250, 219), "add_key": (248, 217), "userfaultfd": (323, 282), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "kexec_load": (246, 104), "init_module": (175, 105),
    "mount": (165, 40), "unshare": (272, 97), "setns": (308, 268), "open_tree": (428, 428),
    "fsopen": (430, 430), "pivot_root": (155, 41), "open_by_handle_at": (304, 265),
}  # fmt: skip
COLUMN = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
needs_numbers = pytest.mark.skipif(COLUMN is None, reason="no system-call filter for this machine")


def is_unchanged(scene: Scene) -> bool:
    """Whether nothing has happened to the process."""
    status = Path(f"/proc/{scene.victim.pid}/status").read_text()
    return scene.victim.poll() is None and "State:\tS" in status


@pytest.mark.parametrize("name", ON_A_PROCESS)
def test_no_other_process_is_touched(
    name: str, level: SandboxLevel, scene: Scene, open_scene: Scene
) -> None:
    control = open_scene.run(NONE, ON_A_PROCESS[name])
    assert control.exit_code == 0, control.output.decode()
    assert scene.run(level, ON_A_PROCESS[name]).exit_code not in (0, None)
    assert is_unchanged(scene)


def test_other_processes_are_invisible_on_the_first_level(
    scene: Scene, level: SandboxLevel
) -> None:
    visible = scene.run(level, 'test -d "/proc/$VICTIM"').exit_code == 0
    assert visible == (level.name == "landlock")  # docs/reference/sandbox.md says so


@needs_numbers
def test_calls_that_no_build_needs_are_refused(
    level: SandboxLevel, scene: Scene, open_scene: Scene
) -> None:
    numbers = [call[COLUMN or 0] for call in REFUSED_CALLS.values()]
    program = f"{CALL}\nprint(*[call(n, -1, 0, 0, 0, 0, 0) for n in {numbers}])"
    answers = scene.run(level, f"python3 -c '{program}'").output.decode().split()
    assert dict(zip(REFUSED_CALLS, answers, strict=True)) == dict.fromkeys(
        REFUSED_CALLS, str(errno.EPERM)
    )
    control = open_scene.run(NONE, f"python3 -c '{program}'").output.decode().split()
    assert set(control) - {str(errno.EPERM)}, "the kernel refuses all of them by itself"


@needs_numbers
def test_namespaces_are_not_made_by_either_clone(level: SandboxLevel, scene: Scene) -> None:
    assert COLUMN is not None
    clone, clone3 = (56, 220)[COLUMN], 435
    program = f"{CALL}\nprint(call({clone}, 0x10000000 | 17, 0, 0, 0, 0), call({clone3}, 0, 0))"
    answer = scene.run(level, f"python3 -c '{program}'").output.decode().split()
    assert answer == [str(errno.EPERM), str(errno.ENOSYS)]
    assert scene.run(level, "unshare -U true").exit_code != 0


@needs_numbers
def test_nothing_is_typed_into_a_terminal(level: SandboxLevel, scene: Scene) -> None:
    for request, answer in ((0x5412, errno.EPERM), (0x541C, errno.EPERM), (0x5401, errno.ENOTTY)):
        # The high half of the number is what CVE-2019-10063 was about.
        for number in (request, request | 1 << 32):
            program = f'{CALL}\nprint(call({(16, 29)[COLUMN or 0]}, 1, {number}, b"x"))'
            said = scene.run(level, f"python3 -c '{program}'").output.decode().strip()
            assert said == str(answer), (hex(number), said)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has other sets of calls")
def test_other_sets_of_calls_are_refused(level: SandboxLevel, scene: Scene) -> None:
    x32 = f"{CALL}\nprint(call(0x40000000 | 39))"
    assert scene.run(level, f"python3 -c '{x32}'").output.decode().split() == [str(errno.ENOSYS)]
    # getpid of 32-bit programs: mov eax, 20; int 0x80; ret
    old = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
print("lived")"""
    result = scene.run(level, f"python3 -c '{old}'")
    assert b"lived" not in result.output
    assert result.exit_code == 128 + 31  # SIGSYS


def test_a_program_gains_no_rights(level: SandboxLevel, scene: Scene) -> None:
    """`su` and its like: no rights are gained by starting a program, and there are none to use."""
    status = scene.run(level, "cat /proc/self/status").output.decode()
    values = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert values["NoNewPrivs"] == "1"
    assert values["Seccomp"] == "2"
    # Only root can empty the set of rights that might be gained; without gaining any it is no matter.
    bound = ["CapBnd"] if level.name == "bubblewrap" or os.geteuid() == 0 else []
    sets = ["CapInh", "CapPrm", "CapEff", "CapAmb", *bound]
    assert {name: values[name] for name in sets} == dict.fromkeys(sets, "0" * 16)
    for attack in ("chown 1:1 README.md", "mknod disk b 8 0", "mount -t tmpfs none .",
                   "chroot . true", "head -c 1 /dev/sda /dev/vda /dev/mem /dev/kmsg",
                   "echo b >/proc/sysrq-trigger", "echo 1 >/proc/sys/kernel/panic"):  # fmt: skip
        assert scene.run(level, attack).exit_code != 0, attack


@pytest.mark.parametrize(
    "way",
    ["sleep 97 &", "setsid sleep 97 &", "(setsid nohup sleep 97 >/dev/null 2>&1 &)",
     "env -i /usr/bin/setsid /bin/sh -c '(sleep 97 & ) & sleep 97' >/dev/null 2>&1 &"],
)  # fmt: skip
def test_nothing_outlives_a_command(way: str, level: SandboxLevel, scene: Scene) -> None:
    result = scene.run(level, f"{way}\necho done")
    assert result.output.startswith(b"done")
    assert result.seconds < 10
    assert until(lambda: not left_over(scene))


@pytest.mark.parametrize("way", ["sleep 97", "trap '' TERM; env -i setsid sleep 97 & sleep 97"])
def test_a_command_that_takes_too_long_is_gone_with_all_it_started(
    way: str, level: SandboxLevel, scene: Scene
) -> None:
    result = scene.run(level, way, seconds=1)
    assert result.ended_by == "timeout"
    assert until(lambda: not left_over(scene))


def test_processes_without_end_are_held_and_gone(level: SandboxLevel, scene: Scene) -> None:
    if cgroups.parent_group() is None and os.geteuid() == 0:
        pytest.skip("no limit of processes can be set here; the level's message says so")
    result = scene.run(level, """python3 -c '
import os, sys, time
made = 0
try:
    while made < 5000:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError:
    print(made, flush=True)
'""", seconds=40)  # fmt: skip
    assert 500 < int(result.output) < 1100
    assert until(lambda: not left_over(scene))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
def test_an_older_landlock_takes_the_signals_away(scene: Scene) -> None:
    """Before version 6 Landlock does not hold signals, so the filter refuses all of them."""
    if LANDLOCK.name != "landlock":
        pytest.skip(LANDLOCK.message)
    older = SandboxLevel("landlock", "for a test", filters=True, abi=SIGNALS_SINCE - 1)
    assert scene.run(older, 'kill -STOP "$VICTIM"').exit_code == 1
    assert is_unchanged(scene)
    assert scene.run(older, "echo x >new && python3 -c 'print(1)' && git status").exit_code == 0


def left_over(scene: Scene) -> list[str]:
    """What still runs with the worktree as its folder."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                place = (folder / "cwd").readlink()
                line = (folder / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if place.is_relative_to(scene.worktree.path):
                found.append(line)
    return found


def until(is_true: Callable[[], bool], seconds: float = 10) -> bool:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_this_file_knows_its_numbers() -> None:
    """The call that the other tests build on works: getpid is what the library says."""
    if COLUMN is not None:
        libc = ctypes.CDLL(None)
        assert libc.syscall((39, 172)[COLUMN]) == os.getpid()
