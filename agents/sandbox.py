"""Turns a command line into the same command in bubblewrap: no network, no secrets, one worktree.

Whether bubblewrap works is found out by running it with the real arguments, and a level is never
dropped silently: without it the level is `none`, the policy asks before every shell command,
and the board says so.
"""

import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agents import processes
from agents.harness.ports import CommandResult
from agents.harness.redaction import Redactor
from agents.sandbox_mounts import (
    HOME,
    PrivateGit,
    copy_etc,
    interpreter_folders,
    system_arguments,
    visible_search_path,
)

__all__ = ["PrivateGit", "Sandbox", "SandboxLevel", "probe", "strip_secrets"]

# The variables that a command may inherit; every other one stays outside, so no list of secrets
# has to be complete.
ALLOWED_VARIABLES = frozenset({"LANG", "LC_ALL", "LC_CTYPE", "TZ"})

SPOOL_KEPT_ABOVE_BYTES = 20_000  # shorter output is in the result as a whole

_PROBE_SECONDS = 10.0
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
_NO_NESTED_NAMESPACES = "--disable-userns"  # bubblewrap 0.8 and later
_MAX_PROCESSES = 1024  # of one run; root is exempt (see docs), so do not run workers as root
_MAX_OPEN_FILES = 8192
_MAX_FILE_BYTES = 4 * 1024**3


@dataclass(frozen=True)
class SandboxLevel:
    """How well commands are isolated here: `bubblewrap` or `none`, with a sentence for people."""

    name: str
    message: str
    bwrap: str = ""  # path of the program
    flags: tuple[str, ...] = ()  # optional isolation that works here


@cache
def probe() -> SandboxLevel:
    """Find the best level by running a command in it. Cached for the life of the process."""
    program = shutil.which("bwrap")
    if program is None:
        return SandboxLevel(
            "none",
            "bubblewrap is not installed, so every shell command has to be approved. "
            "Install it (for example: apt install bubblewrap) and start again.",
        )
    why = ""
    for flags, note in (
        ((_NO_NESTED_NAMESPACES,), ""),
        ((), f" This version does not know {_NO_NESTED_NAMESPACES}."),
    ):
        level = SandboxLevel("bubblewrap", f"Commands run in bubblewrap.{note}", program, flags)
        why = _try(level)
        if not why:
            return level
    return SandboxLevel(
        "none",
        f"bubblewrap does not work here ({why}), so every shell command has to be approved. "
        "The machine must allow unprivileged user namespaces (kernel, container or AppArmor).",
    )


def _try(level: SandboxLevel) -> str:
    """Run one command at `level`; return why it failed, or an empty string."""
    with tempfile.TemporaryDirectory(prefix="pullcord-probe-") as name:
        folder = Path(name).resolve()
        for part in ("workspace", "scratch", "outputs"):
            (folder / part).mkdir()
        sandbox = Sandbox(
            folder / "workspace",
            scratch=folder / "scratch",
            outputs=folder / "outputs",
            level=level,
        )
        try:
            result = sandbox.run("echo works", timeout_seconds=_PROBE_SECONDS)
        except OSError as error:
            return str(error)
    if result.exit_code == 0 and result.output == b"works\n":
        return ""
    return result.output.decode(errors="replace").strip()[-300:] or f"it {result.ended_by}"


def strip_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """What of `environment` a command may see: an allow-list, so no secret is in it."""
    return {name: value for name, value in environment.items() if name in ALLOWED_VARIABLES}


class Sandbox:
    """Runs the commands of one run; implements `agents.harness.ports.Shell`.

    `scratch` is bound at /tmp and lasts for the run, so that one command finds there what another
    has left. The home is empty in each command. `outputs` takes the spooled output. `hidden` are
    folders of the product (data, configuration) that must not be visible even if they lie in a
    system folder. `network` opens the network; it is for set-up commands that a person has written.
    `redactor` takes the run's secrets out of all output.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        scratch: Path,
        outputs: Path,
        git: PrivateGit | None = None,
        level: SandboxLevel | None = None,
        network: bool = False,
        hidden: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        extra_env: Mapping[str, str] | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._workspace = workspace.resolve()
        self._scratch = scratch.resolve()
        self._outputs = outputs.resolve()
        self._level = level or probe()
        # Without the mounts a commit would go to the shared refs, its objects to private ones.
        self._git = git if self._level.bwrap else None
        self._network = network
        self._redactor = redactor
        self._hidden = [path.resolve() for path in hidden]
        self._readable = [path.resolve() for path in readable]
        inherited = processes.base_environment()
        self._search_path = inherited.get("PATH", os.defpath)
        self._interpreters = interpreter_folders(self._search_path, hidden=self._hidden)
        self._environment = {**self._neutral(inherited), **(extra_env or {})}
        if self._git is not None:
            self._git.prepare()
        self._prefix = self._bwrap_arguments() if self._level.bwrap else []

    @property
    def sandbox_level(self) -> str:
        """`bubblewrap` or `none`."""
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
        bash = ["bash", "--noprofile", "--norc", "-c", command]
        limits = _limits(sandboxed=bool(self._prefix))
        result = processes.run(
            # The limits are set inside: a count of processes is one of a user namespace.
            [*self._prefix, *limits.wrap(bash)],
            cwd=self._workspace,
            env={} if self._prefix else self._environment,
            timeout_seconds=timeout_seconds,
            on_output=on_output,
            cancel=cancel,
            spool=spool,
            merge_stderr=True,
            die_with_parent=not self._prefix,  # bubblewrap does that by itself
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

    def _neutral(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The whole environment of a command."""
        sandboxed = bool(self._level.bwrap)
        environment = {
            "LANG": "C.UTF-8",
            **strip_secrets(inherited),
            "PATH": visible_search_path(self._search_path, self._interpreters)
            if sandboxed
            else self._search_path,
            "HOME": HOME if sandboxed else str(self._scratch),
            "TMPDIR": "/tmp" if sandboxed else str(self._scratch),  # noqa: S108  it is private
            "USER": "agent",
            "LOGNAME": "agent",
            "SHELL": "/bin/bash",
            "TERM": "dumb",
            "CI": "1",
            "DEBIAN_FRONTEND": "noninteractive",
            "PAGER": "cat",
            "GIT_PAGER": "cat",
            "GIT_EDITOR": "true",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "Agent",
            "GIT_AUTHOR_EMAIL": "agent@localhost",
            "GIT_COMMITTER_NAME": "Agent",
            "GIT_COMMITTER_EMAIL": "agent@localhost",
            # A collection would fail on the read-only store, at the end of a commit.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "gc.auto",
            "GIT_CONFIG_VALUE_0": "0",
        }
        if self._git is not None:
            environment |= self._git.environment()
        return environment

    def _bwrap_arguments(self) -> list[str]:
        arguments = [self._level.bwrap, *_ISOLATION, *self._level.flags]
        if not self._network:
            arguments.append("--unshare-net")
        for name, value in self._environment.items():
            arguments += ["--setenv", name, value]
        etc = self._outputs / ".etc"
        copy_etc(etc)
        arguments += system_arguments(etc=etc)
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
        return [*arguments, "--chdir", workspace, "--"]


def _limits(*, sandboxed: bool) -> processes.Limits:
    """Enough for a big build, too little to take the machine down."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return processes.Limits(
        file_bytes=_MAX_FILE_BYTES,
        open_files=_MAX_OPEN_FILES,
        memory_bytes=memory * 3 // 4,
        # Outside a namespace of its own the count would include everything the user runs.
        processes=_MAX_PROCESSES if sandboxed else None,
    )
