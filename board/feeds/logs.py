"""One run's log that somebody in this process follows: read once, and sent to each as fast as they take it."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from board import bus
from board.feeds.doorbells import Doorbells, wait_for
from board.feeds.readings import LogFrame, LogReading, read_log
from board.feeds.threads import in_thread

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
KEEP_CHARS = 1_000_000  # of frames in memory for those who are a little behind
CREDIT_CHARS = 256 * 1024  # sent beyond what a browser has acknowledged
SKIP_ITEMS = 4_000  # further behind than this, a browser is told to read the page again


class LogFeed:
    """Wakes on a doorbell or each second and reads what was appended."""

    def __init__(self, run_id: int, doorbells: Doorbells) -> None:
        self.run_id = run_id
        self.last: int | None = None  # seq of the last item read; None before the first reading
        self.members: frozenset[int] = frozenset()  # who might see it at the last reading
        self.head = ""  # the frame of the run's head as it was drawn last
        self._state: tuple[Any, ...] = ()
        self._frames: deque[LogFrame] = deque()
        self._kept = 0
        self._doorbells = doorbells
        self._followers = 0
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def join(self) -> None:
        """Count one more follower. The first one starts the reading."""
        self._followers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def leave(self) -> bool:
        """Count one follower less; return whether that was the last, which ends the reading."""
        self._followers -= 1
        if self._followers == 0 and self._task is not None:
            self._task.cancel()
            self._task = None
        return self._followers == 0

    async def wait(self, after: int, head: str) -> None:
        """Return when there is an item after `after`, another head than `head`, or the next reading."""
        async with self._changed:
            if self.last is None or (self.last <= after and self.head == head):
                await self._changed.wait()

    async def page(self, after: int) -> LogFrame | None:
        """Return the items that follow `after`: from memory if they begin a frame there."""
        if self.last is None or after >= self.last:
            return None
        until = self.last
        for kept in self._frames:
            if kept.first == after + 1:
                return kept
            if kept.first > after + 1:
                until = kept.first - 1
                break
            if kept.last > after:
                until = kept.last
                break
        reading = await in_thread(read_log)(self.run_id, after, until=until)
        self.members = frozenset(reading.members)
        return reading.frame

    async def _run(self) -> None:
        group = bus.run_group(self.run_id)
        bell = self._doorbells.listen(group)
        try:
            while True:
                try:
                    more = await self._step()
                except Exception as error:  # noqa: BLE001  a database that is away comes back
                    log.warning("The log of run %s cannot be read: %r", self.run_id, error)
                    more = False
                if not more:
                    await wait_for(bell, POLL_SECONDS)
        finally:
            self._doorbells.unlisten(group, bell)

    async def _step(self) -> bool:
        if self.last is None:
            # Followers read the past for themselves; this begins at the end.
            reading = await in_thread(read_log)(self.run_id, 1 << 62, state=())
            self.last = reading.last
        else:
            reading = await in_thread(read_log)(self.run_id, self.last, state=self._state)
        self._keep(reading)
        async with self._changed:
            self._changed.notify_all()
        return reading.frame is not None and reading.frame.last < reading.last

    def _keep(self, reading: LogReading) -> None:
        self.members = frozenset(reading.members)
        self._state = reading.state
        self.head = reading.head or self.head
        if reading.frame is None:
            return
        self.last = reading.frame.last
        self._frames.append(reading.frame)
        self._kept += len(reading.frame.text)
        while self._kept > KEEP_CHARS and len(self._frames) > 1:
            self._kept -= len(self._frames.popleft().text)


class LogFollower:
    """Sends one browser one run's log, at most CREDIT_CHARS beyond what it has acknowledged."""

    def __init__(
        self,
        feed: LogFeed,
        *,
        user_id: int,
        after: int,
        send: Callable[[str], Awaitable[None]],
        send_gap: Callable[[int], Awaitable[None]],
    ) -> None:
        self._feed = feed
        self._user_id = user_id
        self._after = after
        self._send, self._send_gap = send, send_gap
        self._head = ""
        self._unacknowledged: deque[tuple[int, int]] = deque()  # last seq and size of each frame
        self._acknowledged = asyncio.Event()

    def acknowledge(self, off: int) -> None:
        """Note that the browser has shown everything up to `off`."""
        while self._unacknowledged and self._unacknowledged[0][0] <= off:
            self._unacknowledged.popleft()
        self._acknowledged.set()

    async def run(self) -> None:
        """Send until cancelled, until the person may not see it any more, or until the rest is too much."""
        while self._feed.last is None or self._user_id in self._feed.members:
            await self._feed.wait(self._after, self._head)
            while not self._is_far() and await self._send_next():
                pass
            if self._is_far():
                # A page read afresh has the end of the log; the browser asks again from there.
                await self._send_gap(self._feed.last or 0)
                return

    def _is_far(self) -> bool:
        """Return whether sending all that is missing would take longer than anyone reads."""
        return self._feed.last is not None and self._feed.last - self._after > SKIP_ITEMS

    async def _send_next(self) -> bool:
        found = await self._feed.page(self._after)
        if self._user_id not in self._feed.members:
            return False
        if self._feed.head != self._head:
            self._head = self._feed.head
            await self._send(self._head)
        if found is None:
            return False
        while sum(size for _, size in self._unacknowledged) > CREDIT_CHARS:
            self._acknowledged.clear()
            await self._acknowledged.wait()
        if self._user_id not in self._feed.members:
            return False
        self._after = found.last
        self._unacknowledged.append((found.last, len(found.text)))
        await self._send(found.text)
        return True
