"""Starts one command that Landlock and a system-call filter hold; a program of its own, without imports of ours.

    python -I -S landlock_launcher.py RULES_FD FILTER_FD COMMAND ...

RULES_FD holds, separated by NULs, the version of Landlock, `net` or nothing, and then pairs of rights
(`r` read and run, `w` also change, `d` a device to read and write) and the path they are for. It never
lowers its demands: what cannot be set ends it with 125 and a sentence, and the command is not run.
It outlives the command to kill whatever that has left behind, also what left its session.
"""

# Each import is paid for in every command: `signal` and `collections.abc` would cost 8 ms more.
import _signal as signal  # type: ignore[import-not-found]
import ctypes
import os
import struct
import sys
import time

REFUSED = 125  # exit code: the command was not started
STOP_SECONDS = 1.5  # after SIGTERM, before everything is killed

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every machine
_CAPSET = {"x86_64": 126, "aarch64": 91}
_PATH_BENEATH = 1

_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
# What each version has added to the rights over files: 1, 2 (links between folders), 3, 5.
_FILES = {1: (1 << 13) - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
_OF_A_FILE = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_TCP, _TCP_SINCE = 3, 4  # bind and connect, to no port at all
_SCOPES, _SCOPES_SINCE = 3, 6  # abstract sockets and signals

_PDEATHSIG, _NO_NEW_PRIVS, _SECCOMP, _CAPBSET_DROP, _SUBREAPER = 1, 38, 22, 24, 36
_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)
# Without the types a pointer or a negative number may be cut to 32 bits.
_libc.syscall.restype = ctypes.c_long


class _NotPossibleError(Exception):
    """A part of the isolation could not be set."""


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code, 128 and the signal if one has ended it."""
    rules, program = int(arguments[0]), int(arguments[1])
    _control("PR_SET_CHILD_SUBREAPER", _SUBREAPER, 1)
    _control("PR_SET_PDEATHSIG", _PDEATHSIG, signal.SIGTERM)
    # Blocked, not handled: it is looked for between two waits, in whichever of them it comes.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        _become(rules, program, arguments[2:])
    os.close(rules)
    os.close(program)
    code = _wait_for(child)
    _kill_all()
    return code


def _become(rules: int, program: int, command: list[str]) -> None:
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
        _control("PR_SET_NO_NEW_PRIVS", _NO_NEW_PRIVS, 1)
        _drop_capabilities()
        _restrict(_content(rules).decode(errors="surrogateescape").split("\0"))
        _filter(_content(program))
        os.execvp(command[0], command)  # noqa: S606
    except (_NotPossibleError, OSError) as error:
        os.write(2, f"The sandbox could not be made: {error}\n".encode())
    os._exit(REFUSED)


def _content(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def _drop_capabilities() -> None:
    for number in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)  # not allowed to an ordinary user, who has none
    number = _CAPSET.get(os.uname().machine, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    if not number or _libc.syscall(ctypes.c_long(number), header, bytes(24)):
        raise _NotPossibleError("capabilities could not be dropped")


def _restrict(fields: list[str]) -> None:
    abi = int(fields[0])
    files = sum(rights for since, rights in _FILES.items() if since <= abi)
    tcp = _TCP if abi >= _TCP_SINCE and not fields[1] else 0
    scopes = _SCOPES if abi >= _SCOPES_SINCE else 0
    size = 24 if abi >= _SCOPES_SINCE else 16 if abi >= _TCP_SINCE else 8
    attributes = struct.pack("=QQQ", files, tcp, scopes)
    ruleset = _call(_CREATE_RULESET, attributes, size, 0)
    changing = files & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL)
    rights = {
        "r": _EXECUTE | _READ | _LIST,
        "w": changing,
        "d": (_READ | _WRITE | _TRUNCATE) & files,
    }
    for kind, path in zip(fields[2::2], fields[3::2], strict=True):
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # gone since it was listed: nothing to allow
            continue
        is_folder = os.path.isdir(path)  # noqa: PTH112  start-up time
        allowed = rights[kind] if is_folder else rights[kind] & _OF_A_FILE
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", allowed, handle), 0)
        os.close(handle)
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _call(number: int, *arguments: int | bytes) -> int:
    given = [one if isinstance(one, bytes) else ctypes.c_long(one) for one in arguments]
    answer = int(_libc.syscall(ctypes.c_long(number), *given))
    if answer < 0:
        raise _NotPossibleError(f"Landlock: {os.strerror(ctypes.get_errno())}")
    return answer


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def _filter(steps: bytes) -> None:
    program = _Program(len(steps) // 8, steps)
    if _libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        raise _NotPossibleError(f"seccomp: {os.strerror(ctypes.get_errno())}")


def _control(name: str, option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        raise _NotPossibleError(f"{name}: {os.strerror(ctypes.get_errno())}")


def _wait_for(child: int) -> int:
    """Wait for the command; after SIGTERM only a moment longer. Others' ends are taken on the way."""
    deadline = float("inf")
    while True:
        while True:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == child:
                code = os.waitstatus_to_exitcode(status)
                return int(code if code >= 0 else 128 - code)
            if ended == 0:
                break
        left = deadline - time.monotonic()
        if left <= 0:
            return 128 + int(signal.SIGTERM)
        heard = signal.sigtimedwait({signal.SIGTERM, signal.SIGCHLD}, min(left, 3600.0))
        if heard is not None and heard.si_signo == signal.SIGTERM:
            deadline = min(deadline, time.monotonic() + STOP_SECONDS)


def _kill_all() -> None:
    """Kill the descendants until there are none: orphans become our children."""
    while True:
        children = _children()
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        try:
            for _ in range(max(len(children), 1)):
                os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    # In a comm there may be blanks and parentheses; the parent is the second field after it.
    found, own = [], str(os.getpid()).encode()
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[1] == own and fields[0] not in (b"Z", b"X"):
                found.append(int(name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
