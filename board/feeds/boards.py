"""One board that somebody in this process watches: read once, sent to all of them."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from board import bus
from board.feeds.doorbells import Doorbells, wait_for
from board.feeds.readings import Ticks, read_board, read_present, redraw
from board.feeds.threads import in_thread
from board.live import frame
from board.models import Project
from board.states import Role

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0  # what a lost doorbell costs at most
HEARTBEAT_SECONDS = 25.0  # a browser that hears nothing for 60 s knows that it is cut off
NOTICES_SECONDS = 5.0  # the notices also tell of workers that die, which is no event
MAX_BACK_OFF = 5.0  # seconds between two tries while the database does not answer


class Watcher(Protocol):
    """An open browser. `role` is the one that it was told of last."""

    user_id: int
    role: Role

    def offer(self, text: str) -> None:
        """Take a frame. Never waits."""

    def revoke(self) -> None:
        """Send nothing more, not even what waits: the person may not see this project any more."""


class BoardFeed:
    """Wakes on a doorbell or each second, reads what happened, and tells its watchers."""

    def __init__(
        self, project: Project, doorbells: Doorbells, *, on_question: asyncio.Event
    ) -> None:
        self.project_id = project.pk
        self.seq = project.seq  # of the last event that was sent
        self.epoch = project.epoch
        self.reads = True  # whether the database answers
        self._watchers: set[Watcher] = set()
        self._doorbells = doorbells
        self._on_question = on_question
        self._advanced = asyncio.Condition()
        self._ticks: Ticks = {}
        self._notices = ""  # the frame with the notices as they are
        self._present_at = self._notices_at = self._sent_at = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def is_watched(self) -> bool:
        """Whether anybody watches."""
        return bool(self._watchers)

    def join(self, watcher: Watcher) -> None:
        """Send everything from now on to `watcher`. The first one starts the reading."""
        self._watchers.add(watcher)
        if self._notices:
            watcher.offer(self._notices)
        if self._ticks:
            watcher.offer(frame("tick", runs=list(self._ticks.values())))
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def leave(self, watcher: Watcher) -> None:
        """Send nothing more to `watcher`. The last one ends the reading."""
        self._watchers.discard(watcher)
        if not self._watchers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def wait_beyond(self, seq: int, seconds: float) -> None:
        """Return when something after `seq` was read, or after `seconds`."""
        try:
            async with asyncio.timeout(seconds), self._advanced:
                await self._advanced.wait_for(lambda: self.seq > seq)
        except TimeoutError:
            pass

    def heartbeat(self) -> str:
        """Return the frame that says how far the board was read, and how well that works."""
        layer = self._doorbells.working
        return frame("hb", seq=self.seq, epoch=self.epoch, layer=layer, reads=self.reads)

    def beat(self) -> None:
        """Send a heartbeat now, because what it says has changed."""
        self._tell(self.heartbeat())

    async def _run(self) -> None:
        group = bus.project_group(self.project_id)
        bell = self._doorbells.listen(group)
        rang, wait = True, POLL_SECONDS
        try:
            while True:
                try:
                    await self._step(rang=rang)
                except Exception as error:  # noqa: BLE001  a database that is away comes back
                    self._note_reading(works=False, why=error)
                    wait = min(wait * 2, MAX_BACK_OFF)
                else:
                    self._note_reading(works=True)
                    wait = POLL_SECONDS
                rang = await wait_for(bell, wait)
        finally:
            self._doorbells.unlisten(group, bell)

    async def _step(self, *, rang: bool) -> None:
        reading = await in_thread(read_board)(self.project_id, self.seq)
        self._check_rights(reading.members)
        if reading.members and reading.epoch != self.epoch:
            self.epoch = reading.epoch
            self._tell(frame("resync", reason="epoch"))
        if reading.frame:
            self._tell(reading.frame)
        if reading.has_questions:
            self._on_question.set()
        await self._advance(reading.seq)
        if reading.members:
            await self._tell_the_present(rang=rang)

    async def _tell_the_present(self, *, rang: bool) -> None:
        """Send what is no event, at most once a second: an event must not wait for it."""
        now = asyncio.get_running_loop().time()
        if now - self._present_at >= POLL_SECONDS:
            self._present_at = now
            with_notices = now - self._notices_at >= (POLL_SECONDS if rang else NOTICES_SECONDS)
            ticks, notices, members = await in_thread(read_present)(
                self.project_id, with_notices=with_notices
            )
            self._check_rights(members)
            await self._tell_ticks(ticks)
            if with_notices:
                self._notices_at = now
            if notices and notices != self._notices:
                self._notices = notices
                self._tell(notices)
        if now - self._sent_at >= HEARTBEAT_SECONDS:
            self._sent_at = now
            self.beat()

    def _check_rights(self, members: Mapping[int, Role]) -> None:
        for watcher in list(self._watchers):
            role = members.get(watcher.user_id)
            if role is None:
                self._watchers.discard(watcher)
                watcher.revoke()
            elif role != watcher.role:
                watcher.role = role
                watcher.offer(frame("you", role=role))

    async def _advance(self, seq: int) -> None:
        if seq != self.seq:
            self.seq = seq
            async with self._advanced:
                self._advanced.notify_all()

    async def _tell_ticks(self, ticks: Ticks) -> None:
        known, self._ticks = self._ticks, ticks
        changed = {run: tick for run, tick in ticks.items() if known.get(run) != tick}
        planned = [
            tick["card"]
            for run, tick in changed.items()
            if run in known and known[run]["plan"] != tick["plan"]
        ]
        if planned:
            text, members = await in_thread(redraw)(self.project_id, planned)
            self._check_rights(members)
            self._tell(text)
        if changed:
            self._tell(frame("tick", runs=list(changed.values())))

    def _tell(self, text: str) -> None:
        for watcher in self._watchers:
            watcher.offer(text)

    def _note_reading(self, *, works: bool, why: BaseException | None = None) -> None:
        if works == self.reads:
            return
        self.reads = works
        if not works:
            log.warning("The board of project %s cannot be read: %r", self.project_id, why)
        self.beat()
