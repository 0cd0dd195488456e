"""Rules D1, D2, D3, D6: the host must survive, and stay outside."""

import itertools
import re
from collections.abc import Callable, Iterator

from agents.harness.policy import files, targets
from agents.harness.policy.commands import Command, Word
from agents.harness.policy.context import Context
from agents.harness.policy.findings import Finding

_REMOVING = frozenset({"rm", "shred", "srm", "wipe", "unlink", "rmdir"})
_MOST_OF_TOP = 40  # characters of a pattern
_MODES = frozenset({"chmod", "chown", "chgrp", "setfacl", "chattr"})
_FIND_FILTERS = re.compile(
    r"-i?(?:name|path|wholename|regex|lname)$|-(?:empty|[cma]min|[cma]time|size)$"
)
_FILE_SYSTEM_TOOLS = re.compile(
    r"mkfs(?:\..+)?|mkswap|mke2fs|wipefs|blkdiscard|badblocks|fdisk|sfdisk|cfdisk|gdisk|sgdisk"
    r"|parted|pvcreate|pvremove|vgremove|lvremove|mdadm|cryptsetup|hdparm|nvme"
)
_POWER = frozenset({"shutdown", "reboot", "halt", "poweroff", "kexec"})
_POWER_WORDS = frozenset(
    [
        "poweroff",
        "reboot",
        "halt",
        "kexec",
        "suspend",
        "hibernate",
        "rescue",
        "emergency",
        "isolate",
        "soft-reboot",
    ]
)
_MODULES = frozenset({"insmod", "modprobe", "rmmod"})
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_MOUNT = re.compile(r"(?:-v|--volume|--mount)(?:=|$)|-v.")
_HOST_SPACES = re.compile(r"--(?:net|network|pid|ipc|uts|userns|cgroupns)(?:=|\s)host")
_SYSTEM_MOUNTS = (
    "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/dev", "/proc", "/sys", "/var",
    "/run",
)  # fmt: skip
_HARMLESS_MOUNTS = frozenset({"/etc/localtime", "/etc/timezone", "/etc/hosts", "/dev/shm"})  # noqa: S108


def place(context: Context, text: str, command: Command) -> str:
    """The real path that a word means; a pattern for everything in a folder means the folder."""
    path = files.absolute(text, cwd=command.cwd or str(context.workspace), home=str(context.home))
    folder, _, last = path.rpartition("/")
    if last in ("*", ".*", "**", "{*,.*}", "*.*"):
        path = folder or "/"
    elif not folder and set("*?[{") & set(last) and len(last) <= _MOST_OF_TOP:
        path = "/"  # `/e*`: something that lies directly under it
    return context.files.real(path)


def _plain(command: Command) -> list[Word]:
    return [word for word in command.words[1:] if not word.text.startswith("-") and word.known]


def _options(command: Command) -> list[str]:
    return [word.text for word in command.words[1:] if word.text.startswith("-")]


def _has_option(command: Command, letters: str, word: str) -> bool:
    """Whether an option is `word`, which may be abbreviated, or has one of `letters` in it."""
    for option in _options(command):
        if option.startswith("--"):
            if option != "--" and word.startswith(option.partition("=")[0]):
                return True
        elif set(letters) & set(option[1:]):
            return True
    return False


def destroys(context: Context, command: Command) -> Iterator[Finding]:
    """D1: removing, moving or changing the rights of what is vital."""
    for text, verb in _destroyed(command):
        path = place(context, text, command)
        if text and files.is_vital(context, path):
            yield Finding("D1", f"{verb} {path}, which the machine or the repository lives from")


def _destroyed(command: Command) -> Iterator[tuple[str, str]]:
    name, plain = command.name, _plain(command)
    if name in _REMOVING:
        if name != "rm" or _has_option(command, "rR", "--recursive"):
            yield from ((word.text, "Removes") for word in plain)
        yield from ((word.text, "Removes everything below") for word in _given_by_find(command))
    elif name in _MODES:
        yield from ((word.text, "Changes the rights of") for word in plain[1:])
    elif name == "mv":
        yield from ((word.text, "Moves") for word in plain[:-1])
    elif name == "find":
        yield from _found(command)
    else:
        yield from _overwritten(command, plain)


def _overwritten(command: Command, plain: list[Word]) -> Iterator[tuple[str, str]]:
    if command.name == "rsync" and any(option.startswith("--del") for option in _options(command)):
        yield from ((word.text, "Empties") for word in plain[-1:] if ":" not in word.text)
    elif command.name == "dd":
        yield from ((word.text[3:], "Overwrites") for word in plain if word.text.startswith("of=/"))


def _found(command: Command) -> Iterator[tuple[str, str]]:
    arguments = command.arguments
    removes = "-delete" in arguments or any(
        argument in ("-exec", "-execdir") and following.rpartition("/")[2] in ("rm", "shred")
        for argument, following in itertools.pairwise(arguments)
    )
    changes = any(following in _MODES for following in arguments) and "-exec" in arguments
    if (removes or changes) and not _is_filtered(arguments):
        verb = "Removes everything below" if removes else "Changes the rights below"
        yield from ((word.text, verb) for word in _starts(command))


def _starts(command: Command) -> Iterator[Word]:
    """The folders in which `find` begins."""
    for word in command.words[1:]:
        if word.text in ("-H", "-L", "-P"):
            continue
        if word.text.startswith(("-", "(", "!")):
            return
        if word.known:
            yield word


def _given_by_find(command: Command) -> Iterator[Word]:
    """Where `find` begins that gives all its files to this command, through xargs."""
    upstream = command.upstream
    is_given = upstream is not None and upstream.name == "find" and "xargs" in command.through
    if is_given and upstream is not None and not _is_filtered(upstream.arguments):
        yield from _starts(upstream)


def _is_filtered(arguments: list[str]) -> bool:
    return any(
        _FIND_FILTERS.match(option) and following not in ("*", ".*", "*.*", "/*")
        for option, following in itertools.pairwise([*arguments, ""])
    )


def devices(context: Context, command: Command) -> Iterator[Finding]:
    """D2: block devices and file systems."""
    for path in targets.written(context, command):
        if files.is_device(path):
            yield Finding("D2", f"Writes to the device {path}")
    if _FILE_SYSTEM_TOOLS.fullmatch(command.name) and "-l" not in command.arguments:
        for word in _plain(command):
            if place(context, word.text, command).startswith("/dev/"):
                yield Finding("D2", f"Changes the file system or partitions of {word.text}")


def takes_down(_context: Context, command: Command) -> Iterator[Finding]:
    """D3: power, signals to everybody, the kernel's settings."""
    name, arguments = command.name, command.arguments
    if name in _POWER and "--help" not in arguments:
        yield Finding("D3", f"Stops or restarts the machine ({name})")
    elif name in ("init", "telinit") and set(arguments) & set("0123456sS"):
        yield Finding("D3", "Changes the run level of the machine")
    elif name in ("systemctl", "loginctl") and _POWER_WORDS.intersection(arguments):
        yield Finding("D3", "Stops or restarts the machine (systemctl)")
    elif _signals_everybody(name, arguments):
        yield Finding("D3", "Sends a signal to every process")
    elif name == "sysctl" and any(a in ("-w", "-p", "--system") or "=" in a for a in arguments):
        yield Finding("D3", "Changes settings of the kernel (sysctl)")


def kernel_settings(context: Context, command: Command) -> Iterator[Finding]:
    """D3: the kernel's triggers and settings, as files."""
    for path in targets.written(context, command):
        if files.is_kernel(path):
            yield Finding("D3", f"Changes a setting of the kernel ({path})")


def _signals_everybody(name: str, arguments: list[str]) -> bool:
    if name in ("pkill", "killall"):
        plain = [argument for argument in arguments if not argument.startswith("-")]
        return any(pattern in ("", ".", ".*", "^", "[^x]") for pattern in plain)
    return name == "killall5" or (name == "kill" and _names_everybody(arguments))


def _names_everybody(arguments: list[str]) -> bool:
    """`-1` is a process id (everybody) once a signal has been named before it."""
    rest = list(arguments)
    if rest[:1] == ["-s"] or rest[:1] == ["-n"]:
        rest = rest[2:]
    elif rest[:1] and re.fullmatch(r"-(?:\d+|[A-Z]\w*|[a-z]\w*)", rest[0]):
        rest = rest[1:]
    return "-1" in rest


def leaves(context: Context, command: Command) -> Iterator[Finding]:
    """D6: ways out of the sandbox."""
    name, arguments = command.name, command.arguments
    if name == "nsenter":
        yield Finding("D6", "Enters the host's namespaces (nsenter)")
    elif name in _MODULES:
        yield Finding("D6", f"Loads or removes a module of the kernel ({name})")
    elif name in _CONTAINERS:
        line = " ".join(arguments)
        if "--privileged" in arguments or "--privileged=true" in arguments:
            yield Finding("D6", "Starts a container with all rights on the host (--privileged)")
        if _HOST_SPACES.search(line):
            yield Finding("D6", "Starts a container in the host's namespaces")
        for source in _mounted(arguments):
            if _is_host_mount(context, source, command):
                yield Finding("D6", f"Gives a container the host's {source}")


def _mounted(arguments: list[str]) -> Iterator[str]:
    for at, argument in enumerate(arguments):
        if not _MOUNT.match(argument):
            continue
        _, equals, value = argument.partition("=")
        if not equals:
            glued = argument[2:] if argument.startswith("-v") and argument != "-v" else ""
            value = glued or "".join(arguments[at + 1 : at + 2])
        match = re.search(r"(?:^|,)(?:source|src)=([^,]+)", value)
        yield match[1] if match else value.partition(":")[0]


def _is_host_mount(context: Context, source: str, command: Command) -> bool:
    if not source.startswith(("/", "~")):
        return False
    path = place(context, source, command)
    if path.endswith((".sock", ".socket")):
        return True
    if files.is_inside(context, path):
        return False
    if path in _HARMLESS_MOUNTS:
        return False
    whole = ("/", "/root", "/home", str(context.home))
    return path in whole or any(files.is_below(path, folder) for folder in _SYSTEM_MOUNTS)


RULES: tuple[Callable[[Context, Command], Iterator[Finding]], ...] = (
    destroys,
    devices,
    takes_down,
    kernel_settings,
    leaves,
)
