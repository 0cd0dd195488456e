"""Runs a command in a container of podman or Docker: an image of the project's choice, one worktree, no network.

Each command has a container of its own, so nothing of it is left for the next. The image must be on the
machine already; it is never fetched from here. Whether it works is found out by `agents/container_probe.py`.
"""

import contextlib
import os
import resource
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agents import processes, sandbox_network
from agents.harness.ports import CommandResult
from agents.harness.redaction import Redactor
from agents.process_running import ProcessResult
from agents.process_trees import MARKER
from agents.sandbox import SPOOL_KEPT_ABOVE_BYTES
from agents.sandbox_environment import neutral
from agents.sandbox_levels import PODMAN
from agents.sandbox_mounts import HOME, Mount, PrivateGit

LABEL = "pullcord.worktree"  # of each container, with the path
MOST_PROCESSES = 1024  # of one command
_MAX_OPEN_FILES = 8192
_MAX_OF_USER = 16_384  # counted over the whole machine; what binds is MOST_PROCESSES
_MAX_FILE_BYTES = 4 * 1024**3
_MAX_CPU_SECONDS = 3600  # of one process
_REMOVE_SECONDS = 20.0
_REFUSED = 125  # the engine's own exit code: nothing has run
# The engine's own settings. No command in a container sees them.
_ENGINE_VARIABLES = (
    "HOME", "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG",
)  # fmt: skip
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
# The first process of a container. We hold the other end of its standard input: when that closes, because
# the worker or the engine's client has died, it kills all others, ends, and with it ends the container.
_FIRST = 'exec 3<&0; { read -r _ <&3; kill -KILL -1; } & "$@" </dev/null 3<&-; exit $?'
# Opens that end anew, for the client: dash knows no descriptors above 9 by their numbers.
_WITH_INPUT = 'end=$1; shift; exec "$@" <"/dev/fd/$end"'


class ContainerError(Exception):
    """A container cannot be had. The message says why, and what to do."""


@dataclass(frozen=True)
class Engine:
    """An engine on this machine with one image. `name` is the sandbox's level."""

    name: str  # podman or docker
    program: str  # path
    image: str  # its id, so that a name which is given to another image changes nothing
    has_python: bool = False  # then the image can reach listed hosts

    def environment(self) -> dict[str, str]:
        """The environment of the engine's client."""
        own = processes.own_environment()
        return {name: own[name] for name in _ENGINE_VARIABLES if name in own}


class ContainerShell:
    """Runs the commands of one run; implements `agents.harness.ports.Shell`.

    `scratch`, `outputs`, `network`, `proxy` and `redactor` are as for `agents.sandbox.Sandbox`. Paths of the
    worktree are the same inside. Raises ContainerError for a path that no engine can be told.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        scratch: Path,
        outputs: Path,
        engine: Engine,
        git: PrivateGit | None = None,
        network: bool = False,
        proxy: Path | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._workspace = workspace.resolve()
        self._outputs = outputs.resolve()
        self._engine = engine
        self._network = network
        self._proxy = proxy if engine.has_python and not network else None
        self._redactor = redactor
        mounts = [Mount("rw", scratch.resolve(), Path("/tmp"))]  # noqa: S108  it is private
        if git is not None:
            git.prepare()
            mounts += git.mounts()
        mounts.append(Mount("rw", self._workspace, self._workspace))
        link = self._workspace / ".git"
        if link.exists():
            mounts.append(Mount("ro", link, link))
        mounts += sandbox_network.mount_list(self._proxy)
        self._options = [
            *_limits(),
            *_isolation(engine.name, network=network),
            *_environment(git, with_proxy=self._proxy is not None),
            *(option for mount in mounts for option in ("--mount", _described(mount))),
            *("--workdir", str(self._workspace), "--label", f"{LABEL}={self._workspace}"),
        ]

    @property
    def sandbox_level(self) -> str:
        """`podman` or `docker`."""
        return self._engine.name

    def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        on_output: Callable[[bytes], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> CommandResult:
        """Run `command` with the image's bash in the workspace; nothing of it is left when this returns.

        Raises OSError or ValueError if the engine cannot be started.
        """
        spool = self._outputs / f"command-{secrets.token_hex(4)}.txt"
        name = f"pullcord-{secrets.token_hex(8)}"
        with _open_end() as end:
            result = processes.run(
                ["/bin/sh", "-c", _WITH_INPUT, "sh", str(end), *self._line(name, command)],
                cwd=self._outputs,
                env=self._engine.environment(),
                timeout_seconds=timeout_seconds,
                on_output=on_output,
                cancel=cancel,
                spool=spool,
                merge_stderr=True,
                pass_fds=[end],
                make_filter=self._redactor.stream if self._redactor else None,
            )
        if result.ended_by != "exit" or (result.exit_code or 0) < 0:
            self._remove(name)
        if result.exit_code == _REFUSED and not self._is_there():
            raise OSError(f"{self._engine.name} has lost the image; see the project's settings")
        if spool.stat().st_size <= SPOOL_KEPT_ABOVE_BYTES:
            spool.unlink()
        return CommandResult(
            exit_code=result.exit_code,
            output=result.stdout,
            ended_by=result.ended_by,
            seconds=result.seconds,
            spool=str(spool) if spool.exists() else None,
        )

    def get_ready(self) -> None:
        """A container is made when its command is known."""

    def close(self) -> None:
        """Nothing waits."""

    def _line(self, name: str, command: str) -> list[str]:
        bash = ["bash", "--noprofile", "--norc", "-c", command]
        if self._proxy is not None:
            bash = sandbox_network.command(bash, python="python3")
        head = [self._engine.program, "run", "--rm", "--interactive", "--sig-proxy=false"]
        return [
            *head,
            "--name",
            name,
            *self._options,
            self._engine.image,
            "-c",
            _FIRST,
            "sh",
            *bash,
        ]

    def _remove(self, name: str) -> None:
        """Make sure: its processes are dead by now, unless the engine runs them where we see none."""
        self._ask("rm", "--force", name)

    def _is_there(self) -> bool:
        return self._ask("image", "inspect", self._engine.image).exit_code == 0

    def _ask(self, *arguments: str) -> ProcessResult:
        return processes.run(
            [self._engine.program, *arguments],
            cwd=self._outputs,
            env=self._engine.environment(),
            timeout_seconds=_REMOVE_SECONDS,
        )


def _isolation(name: str, *, network: bool) -> list[str]:
    user = f"{os.geteuid()}:{os.getegid()}"
    options = [
        "--pull=never",
        "--entrypoint=/bin/sh",
        "--read-only",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        # Labels of SELinux would have to be put on the worktree's files.
        "--security-opt=label=disable",
        "--ipc=private",
        "--hostname=sandbox",
        "--log-driver=none",
        f"--user={user}",
    ]
    if name == PODMAN:
        options += ["--http-proxy=false", "--read-only-tmpfs=false"]
        if os.geteuid() != 0:
            options.append("--userns=keep-id")  # what it writes belongs to the worker's user
    for folder in ("/run", "/var/tmp", HOME):  # noqa: S108  they are private
        options += ["--mount", f"type=tmpfs,destination={folder},tmpfs-mode=1777"]
    return options if network else [*options, "--network=none"]


def _limits() -> list[str]:
    """As in the other sandboxes; no more than we have ourselves, for nobody can give more."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    wanted = {
        "core": (resource.RLIMIT_CORE, 0),
        "cpu": (resource.RLIMIT_CPU, _MAX_CPU_SECONDS),
        "fsize": (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
        "nofile": (resource.RLIMIT_NOFILE, _MAX_OPEN_FILES),
        "nproc": (resource.RLIMIT_NPROC, _MAX_OF_USER),
    }
    limits = [f"--pids-limit={MOST_PROCESSES}", f"--memory={memory}b", f"--memory-swap={memory}b"]
    for name, (kind, most) in wanted.items():
        held = resource.getrlimit(kind)[1]
        value = most if held == resource.RLIM_INFINITY else min(most, held)
        limits.append(f"--ulimit={name}={value}:{value}")
    return limits


def _environment(git: PrivateGit | None, *, with_proxy: bool) -> list[str]:
    """Nothing is inherited. The search path is the image's own; other programs lie in there."""
    values = neutral({}, path="", home=HOME, scratch="/tmp")  # noqa: S108  it is private
    del values["PATH"]
    # An engine may put a proxy of its own in, with a password; so each is given a value.
    values |= {name: "" for lower in _PROXIES for name in (lower, lower.upper())}
    if git is not None:
        values |= git.environment()
    if with_proxy:
        values |= sandbox_network.environment()
    options = [option for item in values.items() for option in ("--env", "=".join(item))]
    # The mark by which the processes of a command are found; the client has it from `processes`.
    return [*options, "--env", MARKER]


def _described(mount: Mount) -> str:
    """The mount in the words of both engines. They take commas apart, and some versions colons."""
    for path in (mount.source, mount.target):
        if not set(str(path)).isdisjoint(',:"\n'):
            raise ContainerError(
                f"{path} has a comma, a colon or a quote in it, which container engines cannot be told. "
                "Move the data folder."
            )
    if mount.kind == "tmpfs":
        return f"type=tmpfs,destination={mount.target},tmpfs-mode=1777"
    read_only = ",readonly" if mount.kind == "ro" else ""
    return f"type=bind,source={mount.source},destination={mount.target}{read_only}"


@contextlib.contextmanager
def _open_end() -> Iterator[int]:
    """The reading end of a pipe whose other end stays open until the block ends, or we die."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)
