"""Has a spare working tree made, on this machine, for each project in which something goes on."""

import asyncio
import logging
import threading

from django.conf import settings

from agents.desk import places
from agents.workspaces.errors import WorkspaceError
from agents.workspaces.refs import tip
from agents.workspaces.spares import drop_unused, prepare
from agents.workspaces.worktrees import ensure_clone

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.3  # behind a run that has just begun: its first words come first


class Spares:
    """One for a worker. `want` never blocks and never raises; spares are made one at a time."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()
        self._cancel = threading.Event()

    def want(self, project_key: str, target_branch: str, *, pause: float = PAUSE_SECONDS) -> None:
        """Have a spare of the project's target branch in a moment."""
        if project_key not in self._tasks and not self._cancel.is_set():
            task = asyncio.create_task(self._make(project_key, target_branch, pause))
            self._tasks[project_key] = task
            task.add_done_callback(lambda _task: self._tasks.pop(project_key, None))

    async def close(self) -> None:
        """Stop what is under way; half a spare is cleared away."""
        self._cancel.set()
        for task in (tasks := list(self._tasks.values())):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _make(self, key: str, branch: str, pause: float) -> None:
        await asyncio.sleep(pause)
        async with self._turn:
            try:
                await asyncio.to_thread(self._make_now, key, branch)
            except (WorkspaceError, OSError) as error:
                if not self._cancel.is_set():
                    log.warning("No spare worktree for %s: %s", key, error)

    def _make_now(self, key: str, branch: str) -> None:
        where = places(settings.HUBS, settings.WORKSPACES, key)
        sha = tip(where.hub, f"refs/heads/{branch}")
        if sha is None:
            return
        ensure_clone(where.clone, where.hub)
        prepare(where.clone, where.root, sha, cancel=self._cancel)
        for other in where.root.parent.glob("*/clone.git"):
            if other != where.clone:
                drop_unused(other.parent)
