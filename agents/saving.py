"""Committing an agent's work after each turn, beside the model's next thought."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from agents.workspaces.errors import WorkspaceError

log = logging.getLogger(__name__)


class Saver:
    """Saves at most once a turn, and only if the turn may have changed a file.

    `save` commits the working tree and brings the commit into the hub. It runs while the model
    thinks; `settle` waits for it, so that no later call changes the files under it.
    """

    def __init__(self, save: Callable[[str], Awaitable[object]]) -> None:
        self._save = save
        self._is_changed = False
        self._task: asyncio.Task[None] | None = None

    def note_change(self) -> None:
        """Remember that a call of this turn may change files."""
        self._is_changed = True

    async def after_turn(self, seq: int) -> None:
        """Begin to save what the turn did."""
        if self._is_changed:
            self._is_changed = False
            await self.settle()
            self._task = asyncio.create_task(self._try(f"Step {seq}"))

    async def settle(self) -> None:
        """Wait for a save that is under way."""
        if self._task is not None:
            await asyncio.shield(self._task)
            self._task = None

    async def close(self) -> None:
        """Wait for a save that is under way, whatever becomes of it."""
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # it has been looked at
            self._task = None

    async def _try(self, message: str) -> None:
        try:
            await self._save(message)
        except WorkspaceError as error:
            # The next save holds these files too; the last one, at the end, may not fail.
            log.warning("Work was not saved after a turn: %s", error)
