"""Turns a command line into the same command in a sandbox: no network, no secrets, one worktree.

How well it is isolated is the level, which `agents/sandbox_probe.py` finds out.
"""

import contextlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agents import cgroups, landlock, processes, sandbox_network, seccomp
from agents.harness.ports import CommandResult
from agents.harness.redaction import Redactor
from agents.process_limits import Limits
from agents.process_running import Started
from agents.process_trees import tasks_of
from agents.sandbox_environment import neutral
from agents.sandbox_levels import BUBBLEWRAP, NONE, SandboxLevel
from agents.sandbox_mounts import (
    HOME,
    PrivateGit,
    copy_etc,
    interpreter_folders,
    system_arguments,
    visible_search_path,
)
from agents.sandbox_ready import BASH, ReadySandbox

SPOOL_KEPT_ABOVE_BYTES = 20_000  # shorter output is in the result as a whole

_ISOLATION = (
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
    "--new-session",  # no terminal to push characters into (CVE-2017-5226)
    "--die-with-parent",
    "--clearenv",
)
_MAX_PROCESSES = 1024  # of one command
_MAX_OPEN_FILES = 8192
_MAX_FILE_BYTES = 4 * 1024**3
_MAX_CPU_SECONDS = 3600  # of one process; only a loop without end needs more


class Sandbox:
    """Runs the commands of one run; implements `agents.harness.ports.Shell`.

    `scratch` is bound at /tmp and lasts for the run, so that one command finds there what another
    has left. The home is empty in each command. `outputs` takes the spooled output. `hidden` are
    folders of the product (data, configuration) that must not be visible even if they lie in a
    system folder. `network` opens the network; it is for set-up commands that a person has written.
    `proxy` is the socket of the run's proxy, through which alone it is reached otherwise; only on
    the first level. `redactor` takes the run's secrets out of all output. `shared` is a folder for
    what all sandboxes of the machine have in common, so that it is made once. `etc` takes the place of
    the machine's /etc.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        scratch: Path,
        outputs: Path,
        level: SandboxLevel,
        git: PrivateGit | None = None,
        network: bool = False,
        proxy: Path | None = None,
        hidden: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        extra_env: Mapping[str, str] | None = None,
        redactor: Redactor | None = None,
        shared: Path | None = None,
        etc: Path | None = None,
    ) -> None:
        self._workspace = workspace.resolve()
        self._scratch = scratch.resolve()
        self._outputs = outputs.resolve()
        self._shared = shared or self._outputs
        self._etc = etc
        self._level = level
        self._git = git
        self._network = network
        self._proxy = proxy if level.name == BUBBLEWRAP and not network else None
        self._redactor = redactor
        self._hidden = [path.resolve() for path in hidden]
        self._readable = [path.resolve() for path in readable]
        inherited = processes.base_environment()
        search_path = inherited.get("PATH", os.defpath)
        self._interpreters = interpreter_folders(search_path, hidden=self._hidden)
        self._environment = self._neutral(inherited, search_path) | dict(extra_env or {})
        self._prefix: list[str] = []
        self._ready = ReadySandbox(self._start)
        if self._level.name == BUBBLEWRAP:
            if git is not None:
                git.prepare()
                # Without the mounts a commit would go to the shared refs, its objects to private ones.
                self._environment |= git.environment()
            if self._proxy is not None:
                self._environment |= sandbox_network.environment()
            self._prefix = self._bwrap_arguments()

    @property
    def sandbox_level(self) -> str:
        """`bubblewrap`, `landlock` or `none`."""
        return self._level.name

    def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        on_output: Callable[[bytes], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> CommandResult:
        """Run `command` with bash in the workspace; nothing of it is left when this returns.

        Raises OSError or ValueError if bash cannot be given the command (too long, a NUL in it).
        """
        spool = self._outputs / f"command-{secrets.token_hex(4)}.txt"
        with contextlib.ExitStack() as parts:
            started = self._ready.take(command, parts) or self._start([*BASH, command], [], parts)
            result = started.see_through(
                timeout_seconds=timeout_seconds,
                on_output=on_output,
                cancel=cancel,
                spool=spool,
                # Before it reaches a file or the log, and across the borders of chunks.
                make_filter=self._redactor.stream if self._redactor else None,
            )
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
        """Make the next command's sandbox before the command is known; on the first level only."""
        if self._level.name == BUBBLEWRAP:
            self._ready.make()

    def close(self) -> None:
        """End what waits for a command."""
        self._ready.close()

    def _start(
        self, bash: Sequence[str], descriptors: Sequence[int], parts: contextlib.ExitStack
    ) -> Started:
        """Start bash in a sandbox; it inherits `descriptors`. What it needs until its end is in `parts`."""
        if self._proxy is not None:
            bash = sandbox_network.command(bash)
        joining = self._counted(parts)
        limits = _limits(self._level, is_counted=bool(joining))
        if joining:  # one shell for both
            argv, more = self._isolated(bash, parts)
            argv = limits.wrap(argv, first=joining)
        else:  # the limits are set inside: a count of processes is one of a user namespace
            argv, more = self._isolated(limits.wrap(bash), parts)
        return processes.start(
            argv,
            cwd=self._workspace,
            env={} if self._level.name == BUBBLEWRAP else self._environment,
            merge_stderr=True,
            die_with_parent=self._level.name == NONE,  # the others do that by themselves
            pass_fds=[*descriptors, *more],
        )

    def _isolated(
        self, argv: Sequence[str], stack: contextlib.ExitStack
    ) -> tuple[list[str], list[int]]:
        """`argv` behind what holds it, and the descriptors that this reads."""
        match self._level.name:
            case "bubblewrap":
                if not self._level.filters:
                    return [*self._prefix, "--", *argv], []
                program = seccomp.namespaced_filter()
                assert program is not None  # noqa: S101  the level says that there is one
                fd = stack.enter_context(_readable_copy(program))
                return [*self._prefix, "--seccomp", str(fd), "--", *argv], [fd]
            case "landlock":
                stack.enter_context(
                    landlock.unchanged(self._workspace / ".git", aside=self._scratch)
                )
                abi = self._level.abi
                rules_fd = stack.enter_context(_readable_copy(self._rules()))
                program = landlock.system_filter(abi, network=self._network)
                filter_fd = stack.enter_context(_readable_copy(program))
                command = landlock.command(argv, rules_fd=rules_fd, filter_fd=filter_fd)
                return command, [rules_fd, filter_fd]
            case _:
                return list(argv), []

    def _counted(self, stack: contextlib.ExitStack) -> str:
        """How to enter a control group, where the limit of processes would not hold, or would count others."""
        if self._level.name == BUBBLEWRAP and not landlock.is_root():
            return ""
        return stack.enter_context(cgroups.process_limit(_MAX_PROCESSES)) or ""

    def _rules(self) -> bytes:
        return landlock.rules(
            self._level.abi,
            writable=[self._workspace, self._scratch],
            readable=[*self._interpreters, *self._readable],
            git=self._git,
            hidden=self._hidden,
            network=self._network,
        )

    def _neutral(self, inherited: Mapping[str, str], search_path: str) -> dict[str, str]:
        """The whole environment of a command."""
        visible = visible_search_path(search_path, self._interpreters)
        scratch = str(self._scratch)
        match self._level.name:
            case "bubblewrap":
                return neutral(inherited, path=visible, home=HOME, scratch="/tmp")  # noqa: S108  it is private
            case "landlock":
                found = neutral(inherited, path=visible, home=scratch, scratch=scratch)
                return found | landlock.VARIABLES
            case _:
                return neutral(inherited, path=search_path, home=scratch, scratch=scratch)

    def _bwrap_arguments(self) -> list[str]:
        arguments = [self._level.bwrap, *_ISOLATION, *self._level.flags]
        if not self._network:
            arguments.append("--unshare-net")
        for name, value in self._environment.items():
            arguments += ["--setenv", name, value]
        arguments += system_arguments(etc=self._etc or copy_etc(self._shared))
        arguments += sandbox_network.mounts(self._proxy)
        arguments += ["--bind", str(self._scratch), "/tmp"]  # noqa: S108  it is private
        for folder in [*self._interpreters, *self._readable]:
            arguments += ["--ro-bind", str(folder), str(folder)]
        for folder in self._hidden:
            if folder.is_dir():
                arguments += ["--tmpfs", str(folder)]
        if self._git is not None:
            arguments += self._git.arguments()
        workspace = str(self._workspace)
        arguments += ["--bind", workspace, workspace]
        if (self._workspace / ".git").exists():
            arguments += ["--ro-bind", f"{workspace}/.git", f"{workspace}/.git"]
        return [*arguments, "--chdir", workspace]


@contextlib.contextmanager
def _readable_copy(content: bytes) -> Iterator[int]:
    """A descriptor of its own that a child reads from the beginning."""
    fd = os.memfd_create("sandbox")
    try:
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _limits(level: SandboxLevel, *, is_counted: bool) -> Limits:
    """Enough for a big build, too little to take the machine down."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Limits(
        cpu_seconds=_MAX_CPU_SECONDS,
        file_bytes=_MAX_FILE_BYTES,
        open_files=_MAX_OPEN_FILES,
        memory_bytes=memory * 3 // 4,
        processes=None if is_counted else _most_processes(level),
    )


def _most_processes(level: SandboxLevel) -> int | None:
    """What the kernel's limit has to be: outside a namespace it counts all that the user runs."""
    if level.name == BUBBLEWRAP:
        return _MAX_PROCESSES
    if landlock.is_root():
        return None
    return tasks_of(os.geteuid()) + _MAX_PROCESSES
