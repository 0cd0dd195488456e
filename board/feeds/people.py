"""How many questions wait for each person who has a page open, over all their projects."""

import asyncio
import logging
from typing import Protocol

from board.feeds.doorbells import wait_for
from board.feeds.readings import count_questions
from board.feeds.threads import in_thread
from board.live import frame

log = logging.getLogger(__name__)

POLL_SECONDS = 3.0  # a question of a project that nobody here watches is seen after this time


class Asked(Protocol):
    """A browser of one person."""

    user_id: int

    def offer(self, text: str) -> None:
        """Take a frame. Never waits."""


class People:
    """Asks with one query for everybody, and tells each person whose number has changed."""

    def __init__(self) -> None:
        self.poke = asyncio.Event()  # set: ask now
        self._asked: set[Asked] = set()
        self._told: dict[Asked, int] = {}
        self._task: asyncio.Task[None] | None = None

    def join(self, asked: Asked) -> None:
        """Tell `asked` the number now and whenever it changes."""
        self._asked.add(asked)
        self.poke.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def leave(self, asked: Asked) -> None:
        """Tell `asked` nothing more."""
        self._asked.discard(asked)
        self._told.pop(asked, None)
        if not self._asked and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while True:
            await wait_for(self.poke, POLL_SECONDS)
            ids = sorted({asked.user_id for asked in self._asked})
            try:
                counts = await in_thread(count_questions)(ids)
            except Exception as error:  # noqa: BLE001  a database that is away comes back
                log.warning("The open questions cannot be counted: %r", error)
                continue
            for asked in list(self._asked):
                number = counts.get(asked.user_id, 0)
                if self._told.get(asked) != number:
                    self._told[asked] = number
                    asked.offer(frame("you", approvals=number))
