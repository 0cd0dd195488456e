"""Frames that wait for one browser: few enough that a slow one costs nothing, and it is told so."""

import asyncio
from collections import deque

from board.live import frame

LIMIT = 200  # frames; a browser that is further behind reads the present state instead


class Outbox:
    """A bounded queue. When it is full it is emptied, and one `lag` frame says so: the browser resumes."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._frames: deque[str] = deque()
        self._limit = limit
        self._filled = asyncio.Event()

    def put(self, text: str) -> None:
        """Add a frame. Never waits."""
        if len(self._frames) >= self._limit:
            self._frames.clear()
            self._frames.append(frame("lag"))
        self._frames.append(text)
        self._filled.set()

    def clear(self) -> None:
        """Forget what was not sent yet."""
        self._frames.clear()
        self._filled.clear()

    async def get(self) -> str:
        """Return the next frame; wait for it if there is none."""
        while not self._frames:
            self._filled.clear()
            await self._filled.wait()
        return self._frames.popleft()
