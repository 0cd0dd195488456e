"""A filter for system calls, as a program for the kernel's packet filter: what no build or test needs.

A blacklist on top of namespaces or Landlock, not instead of them: it makes the kernel's rarely used
parts, in which the ways out of sandboxes are found, unreachable. Numbers differ between machines, so
a machine that is not in the table gets no filter, and the sandbox says so.
"""

import errno
import platform
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

# Of each call its number on x86-64 and on 64-bit ARM; None: it does not exist there.
# From the kernel's syscall_64.tbl and include/uapi/asm-generic/unistd.h.
CALLS: dict[str, tuple[int | None, int | None]] = {
    # mounts, and what changes the root
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    "swapon": (167, 224), "swapoff": (168, 225),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "uselib": (134, None),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    # other namespaces
    "setns": (308, 268), "unshare": (272, 97),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # parts of the kernel with a long history of holes
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # the machine itself
    "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "reboot": (169, 142), "syslog": (103, 116), "acct": (163, 89), "vhangup": (153, 58),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "sethostname": (170, 161),
    "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
}  # fmt: skip

# Without a namespace for them these would reach the user's other programs.
SHARED_CALLS: dict[str, tuple[int | None, int | None]] = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190),
    "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
# Signals to anybody of the same user; Landlock stops them from version 6 on.
SIGNALS: dict[str, tuple[int | None, int | None]] = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
}  # fmt: skip

_CLONE, _CLONE3 = (56, 220), (435, 435)
_IOCTL, _SOCKET, _SOCKETPAIR, _CONNECT = (16, 29), (41, 198), (53, 199), (42, 203)
_PRLIMIT = (302, 261)
_SETPRIORITY, _SCHED_SETSCHEDULER, _SCHED_SETPARAM = (141, 140), (144, 119), (142, 118)
_SCHED_SETAFFINITY, _SCHED_SETATTR, _IOPRIO_SET = (203, 122), (314, 274), (251, 30)

# CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
_NAMESPACES = 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # put characters into a terminal's input
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_ROUTE = 0  # the protocol of netlink that lists addresses
_STREAM, _SEQPACKET, _TYPE_MASK = 1, 5, 0xF
_X32 = 0x40000000  # bit of the numbers of the x32 calls, a second set on x86-64

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in seccomp_data; both machines are little-endian

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_BITS, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_RET_KILL, _RET_ERRNO, _RET_ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_FARTHEST = 255  # instructions that a jump can skip

_ENDS = {
    "allow": _RET_ALLOW,
    "kill": _RET_KILL,
    "refused": _RET_ERRNO | errno.EPERM,
    "unknown": _RET_ERRNO | errno.ENOSYS,
    "family": _RET_ERRNO | errno.EAFNOSUPPORT,
}


@dataclass(frozen=True)
class _Step:
    """One instruction; `then` and `otherwise` are names of places or ends, "" is the next one."""

    code: int
    value: int
    then: str = ""
    otherwise: str = ""
    place: str = ""  # the name of this very step


@cache
def namespaced_filter(machine: str = "") -> bytes | None:
    """The program for a command in namespaces of its own, or None for an unknown machine.

    Sockets are of the kinds that reach its own network namespace and nothing else.
    """
    return _program(machine, shares_system=False)


@cache
def shared_filter(machine: str = "", *, signals: bool, network: bool) -> bytes | None:
    """The program for a command that shares the machine's namespaces; None for an unknown machine.

    There is no socket with a name of the file system, only connected pairs: Landlock does not stop
    a connection to the socket of a database or of a container engine. Without `network` there is
    no other socket either, for Landlock knows ports but no addresses. `signals` says whether the
    command may send them: to whom is Landlock's part.
    """
    return _program(machine, shares_system=True, signals=signals, network=network)


def _program(
    machine: str, *, shares_system: bool, signals: bool = True, network: bool = False
) -> bytes | None:
    machine = machine or platform.machine()
    column = {"x86_64": 0, "aarch64": 1}.get(machine)
    if column is None:
        return None
    steps = [
        _Step(_LOAD, _ARCH),
        _Step(_JUMP_EQUAL, _AUDIT_ARCH[machine], "", "kill"),
        _Step(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        steps.append(_Step(_JUMP_ABOVE, _X32, "unknown"))
    refused = [CALLS, *([SHARED_CALLS] if shares_system else []), *([] if signals else [SIGNALS])]
    for table in refused:
        steps += [_Step(_JUMP_EQUAL, n, "refused") for n in _numbers(table, column)]
    steps.append(_Step(_JUMP_EQUAL, _CLONE3[column], "unknown"))  # its flags lie in memory
    looked_at = dict(_LOOKED_AT)
    if shares_system:
        looked_at |= _LOOKED_AT_WHEN_SHARED
        looked_at |= _REACHES_MACHINES if network else _REACHES_NOTHING
    steps += [_Step(_JUMP_EQUAL, call[column], name) for name, (call, _) in looked_at.items()]
    steps.append(_Step(_RETURN, _RET_ALLOW))
    for name, (_, inner) in looked_at.items():
        first, *rest = inner
        steps += [_Step(first.code, first.value, first.then, first.otherwise, name), *rest]
    return _assembled(steps)


def _numbers(table: dict[str, tuple[int | None, int | None]], column: int) -> Iterator[int]:
    return (numbers[column] for numbers in table.values() if numbers[column] is not None)  # type: ignore[misc]


def _argument(number: int) -> _Step:
    """Load the low half of an argument, which is all that the kernel looks at in those we judge."""
    return _Step(_LOAD, _ARGUMENTS + 8 * number)


def _one_of(values: Iterable[int], otherwise: str) -> list[_Step]:
    return [*(_Step(_JUMP_EQUAL, value, "allow") for value in values),
            _Step(_RETURN, _ENDS[otherwise])]  # fmt: skip


_OWN_ONLY = [_argument(0), *_one_of([0], "refused")]  # a process may be named only as 0: itself

_ROUTES_ONLY = [
    _Step(_JUMP_EQUAL, _NETLINK, "", "family"),
    _argument(2),
    *_one_of([_ROUTE], "family"),
]

_Looks = dict[str, tuple[tuple[int, int], list[_Step]]]
_LOOKED_AT: _Looks = {
    "clone": (_CLONE, [_argument(0), _Step(_JUMP_BITS, _NAMESPACES, "refused", "allow")]),
    "ioctl": (_IOCTL, [_argument(1), _Step(_JUMP_EQUAL, _TIOCSTI, "refused"),
                       _Step(_JUMP_EQUAL, _TIOCLINUX, "refused", "allow")]),
    "socket": (_SOCKET, [_argument(0), *(_Step(_JUMP_EQUAL, n, "allow") for n in (_UNIX, _INET, _INET6)),
                         *_ROUTES_ONLY]),
    "socketpair": (_SOCKETPAIR, [_argument(0), *_one_of([_UNIX], "family")]),
}  # fmt: skip
_REACHES_NOTHING: _Looks = {
    "socket": (_SOCKET, [_Step(_RETURN, _ENDS["refused"])]),
    "connect": (_CONNECT, [_Step(_RETURN, _ENDS["refused"])]),
}
_REACHES_MACHINES: _Looks = {
    "socket": (_SOCKET, [_argument(0), *(_Step(_JUMP_EQUAL, n, "allow") for n in (_INET, _INET6)),
                         *_ROUTES_ONLY]),
}  # fmt: skip
_LOOKED_AT_WHEN_SHARED: _Looks = {
    # A pair of datagram sockets could be connected anew, to a name.
    "socketpair": (_SOCKETPAIR, [_argument(0), _Step(_JUMP_EQUAL, _UNIX, "", "family"), _argument(1),
                                 _Step(_AND, _TYPE_MASK), *_one_of([_STREAM, _SEQPACKET], "family")]),
    "prlimit": (_PRLIMIT, _OWN_ONLY),
    "sched_setscheduler": (_SCHED_SETSCHEDULER, _OWN_ONLY),
    "sched_setparam": (_SCHED_SETPARAM, _OWN_ONLY),
    "sched_setaffinity": (_SCHED_SETAFFINITY, _OWN_ONLY),
    "sched_setattr": (_SCHED_SETATTR, _OWN_ONLY),
    "setpriority": (_SETPRIORITY, [_argument(0), _Step(_JUMP_EQUAL, 0, "", "refused"),
                                   _argument(1), *_one_of([0], "refused")]),
    "ioprio_set": (_IOPRIO_SET, [_argument(0), _Step(_JUMP_EQUAL, 1, "", "refused"),
                                 _argument(1), *_one_of([0], "refused")]),
}  # fmt: skip


def _assembled(steps: Sequence[_Step]) -> bytes:
    """The instructions with their jumps, the ends behind them."""
    steps = [*steps, *(_Step(_RETURN, value, place=name) for name, value in _ENDS.items())]
    places = {step.place: number for number, step in enumerate(steps) if step.place}

    def distance(number: int, target: str) -> int:
        skipped = places[target] - number - 1 if target else 0
        if not 0 <= skipped <= _FARTHEST:
            raise ValueError(f"A jump to {target} over {skipped} instructions is not possible.")
        return skipped

    return b"".join(
        struct.pack(
            "=HBBI", step.code, distance(number, step.then), distance(number, step.otherwise),
            step.value,
        )
        for number, step in enumerate(steps)
    )  # fmt: skip
