"""The desk of one run: its worktree, sandbox and tools on this machine."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.container_probe import find_engine
from agents.containers import ContainerError, ContainerShell, Engine
from agents.harness.errors import FailureKind, FatalError
from agents.harness.policy.context import Context
from agents.harness.ports import Shell, Sink
from agents.harness.redaction import Redactor
from agents.harness.tools.registry import ToolContext
from agents.hunks import describe
from agents.looking_through import findings_in
from agents.proxy import Proxy
from agents.sandbox import Sandbox
from agents.sandbox_levels import BUBBLEWRAP
from agents.sandbox_mounts import PrivateGit as SandboxGit
from agents.sandbox_probe import probe
from agents.workspaces.diffs import diff
from agents.workspaces.hub import take_over
from agents.workspaces.records import Worktree
from agents.workspaces.saves import commit_all
from agents.workspaces.worktrees import private_git


@dataclass(frozen=True)
class Places:
    """Where a project's git lives: the hub, and this machine's clone and worktrees."""

    hub: Path
    clone: Path
    root: Path


def places(hubs: Path, workspaces: Path, key: str) -> Places:
    """Return the places of the project called `key`."""
    return Places(hubs / f"{key}.git", workspaces / key / "clone.git", workspaces / key)


def engine_of(container: tuple[str, str]) -> Engine | None:
    """Return the engine for a project's choice, tried just now; None for the worker's own sandbox. Blocking.

    Raises FatalError if it does not work: nothing takes its place.
    """
    name, image = container
    if not name:
        return None
    try:
        return find_engine(name, image)
    except ContainerError as error:
        raise FatalError(str(error), kind=FailureKind.INFRASTRUCTURE) from error


class Desk:
    """Everything of a run that is on this machine. Blocking git work runs in threads."""

    def __init__(
        self,
        worktree: Worktree,
        where: Places,
        *,
        hidden: list[Path],
        redactor: Redactor | None = None,
        hosts: Sequence[str] = (),
        engine: Engine | None = None,
    ) -> None:
        self.worktree = worktree
        self.redactor = redactor or Redactor()
        self.where = where
        self._hidden = hidden
        self._listed = hosts
        self._engine = engine
        # Only there has a command a network of its own, in which the proxy is the one way out.
        has_own = probe().name == BUBBLEWRAP if engine is None else engine.has_python
        self.hosts = frozenset(hosts) if has_own else frozenset()
        self._proxy = worktree.private / "proxy.sock" if self.hosts else None
        self._in_hub = ""  # the commit that was taken over last
        self.left_out: tuple[str, ...] = ()  # files that the last save could not take, with why
        self.scratch = worktree.private / "scratch"
        self.outputs = worktree.private / "outputs"
        for folder in (self.scratch, self.outputs):
            folder.mkdir(parents=True, exist_ok=True)
        self.shell = self._sandbox(network=False)
        self.context = ToolContext(
            workspace=worktree.path,
            shell=self.shell,
            outputs=self.outputs,
            redact=self.redactor.text,
        )

    def _sandbox(self, *, network: bool) -> Shell:
        git = private_git(self.worktree)
        mounts = SandboxGit(git.common, git.entry, git.refs, git.logs, git.objects, git.entry_copy)
        if self._engine is not None:
            return self._container(self._engine, mounts, network=network)
        return Sandbox(
            self.worktree.path,
            scratch=self.scratch,
            outputs=self.outputs,
            git=mounts,
            level=probe(),
            network=network,
            proxy=self._proxy,
            hidden=self._hidden,
            redactor=self.redactor,
            shared=self.where.root.parent,
        )

    def _container(self, engine: Engine, git: SandboxGit, *, network: bool) -> Shell:
        try:
            return ContainerShell(
                self.worktree.path,
                scratch=self.scratch,
                outputs=self.outputs,
                engine=engine,
                git=git,
                network=network,
                proxy=self._proxy,
                redactor=self.redactor,
            )
        except ContainerError as error:
            raise FatalError(str(error), kind=FailureKind.INFRASTRUCTURE) from error

    def shell_for_setup(self) -> Shell:
        """Return the shell for the set-up command, which may use the network: a person wrote it."""
        return self._sandbox(network=True)

    @asynccontextmanager
    async def network(self, sink: Sink) -> AsyncIterator[None]:
        """Let commands reach the listed hosts, if the sandbox can hold them to these; noted in `sink`.

        Raises FatalError if the proxy cannot be started.
        """
        if self._listed and self._proxy is None:
            need = (
                "python3 in the image"
                if self._engine
                else f"bubblewrap, and here is {probe().name}"
            )
            text = f"The allow-list of hosts is off: it needs {need}"
            sink.emit("note", text=text, level="warning")
        if self._proxy is None:
            yield
            return
        proxy = Proxy(self.hosts, say=lambda text, level: sink.emit("note", text=text, level=level))
        try:
            await proxy.start(self._proxy)
        except OSError as error:
            raise FatalError(
                f"The proxy for the allow-list of hosts cannot be started: {error}. Retry, or empty the list.",
                kind=FailureKind.INFRASTRUCTURE,
            ) from error
        try:
            yield
        finally:
            await proxy.close()

    @property
    def is_set_up(self) -> bool:
        """Whether the set-up command has succeeded here."""
        return (self.worktree.private / "is-set-up").exists()

    def note_set_up(self) -> None:
        """Remember that the set-up command has succeeded."""
        (self.worktree.private / "is-set-up").touch()

    async def save(self, message: str) -> str:
        """Commit the working tree, bring the commit into the hub, and return its sha."""
        return await asyncio.to_thread(self._save, message)

    def _save(self, message: str) -> str:
        saved = commit_all(self.worktree, message, redactor=self.redactor)
        self.left_out = saved.skipped
        if saved.sha not in {self.worktree.base_sha, self._in_hub}:
            take_over(self.where.hub, self.where.clone, sha=saved.sha, branch=self.worktree.branch)
            self._in_hub = saved.sha
        return saved.sha

    async def changes(self, base: str, head: str, context: Context | None = None) -> dict[str, Any]:
        """Return what a reviewer sees: totals and the files with their hunks.

        With `context`, also what the policy objects to in them.
        """
        return await asyncio.to_thread(self._changes, base, head, context)

    def _changes(self, base: str, head: str, context: Context | None) -> dict[str, Any]:
        found = diff(self.where.clone, base, head)
        changes = describe(found, redact=self.redactor.text)
        if context is not None:
            findings = findings_in(found, context, self.where.clone, base, head)
            changes["findings"] = self.redactor.json(findings)
        return changes
