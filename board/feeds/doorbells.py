"""Hearing doorbells: one channel for the whole process, and an honest answer to "does it work?".

The layer is proved to work by a message to ourselves every few seconds. While it does not, everyone polls.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from channels.layers import get_channel_layer

log = logging.getLogger(__name__)

PROBE_SECONDS = 2.0  # between two proofs, and how long one may take
GIVE_UP_SECONDS = 30.0  # of deafness; then a new channel is tried
MAX_BACK_OFF = 5.0  # seconds


class Doorbells:
    """Sets an event for each ring of a group that somebody listens to. Works while anyone listens."""

    def __init__(self) -> None:
        self.working = False
        self.on_change: Callable[[], None] = lambda: None
        self._bells: dict[str, set[asyncio.Event]] = {}
        self._joined: set[str] = set()
        self._wanted_changed = asyncio.Event()
        self._heard = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def listen(self, group: str) -> asyncio.Event:
        """Return an event that every ring of `group` sets. End it with `unlisten`."""
        bell = asyncio.Event()
        self._bells.setdefault(group, set()).add(bell)
        self._wanted_changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return bell

    def unlisten(self, group: str, bell: asyncio.Event) -> None:
        """Stop setting `bell`."""
        bells = self._bells.get(group, set())
        bells.discard(bell)
        if not bells:
            self._bells.pop(group, None)
            self._wanted_changed.set()
        if not self._bells and self._task is not None:
            self._task.cancel()
            self._task = None
            self._joined.clear()
            self.working = False

    async def _run(self) -> None:
        wait = 0.5
        while True:
            try:
                await self._serve()
            except* Exception as group:  # noqa: BLE001  whatever the layer raises, polling goes on
                self._note(working=False, why=group.exceptions[0])
            self._joined.clear()
            await asyncio.sleep(wait)
            wait = min(wait * 2, MAX_BACK_OFF)

    async def _serve(self) -> None:
        layer = get_channel_layer()
        if layer is None:
            raise RuntimeError("no channel layer is configured")
        channel = await _soon(layer.new_channel())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._receive(layer, channel))
            tasks.create_task(self._prove(layer, channel))

    async def _receive(self, layer: Any, channel: str) -> None:
        while True:
            message = await layer.receive(channel)
            if message["type"] == "probe":
                self._heard.set()
            for bell in self._bells.get(message.get("group", ""), ()):
                bell.set()

    async def _prove(self, layer: Any, channel: str) -> None:
        deaf_since: float | None = None
        clock = asyncio.get_running_loop().time
        while deaf_since is None or clock() - deaf_since < GIVE_UP_SECONDS:
            try:
                await self._join(layer, channel)
                self._heard.clear()
                await _soon(layer.send(channel, {"type": "probe"}))
                await _soon(self._heard.wait())
            except Exception as error:  # noqa: BLE001  see _run
                deaf_since = deaf_since or clock()
                self._note(working=False, why=error)
                await asyncio.sleep(PROBE_SECONDS / 2)
            else:
                deaf_since = None
                self._note(working=True)
                await self._pause()
        raise ConnectionError("the channel layer has been silent for too long")

    async def _join(self, layer: Any, channel: str) -> None:
        self._wanted_changed.clear()
        wanted = set(self._bells)
        for group in wanted - self._joined:
            await _soon(layer.group_add(group, channel))
            self._joined.add(group)
            self._ring_all(group)  # what rang before we listened
        for group in self._joined - wanted:
            self._joined.discard(group)
            await _soon(layer.group_discard(group, channel))

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._wanted_changed.wait()
        except TimeoutError:
            pass

    def _ring_all(self, group: str) -> None:
        for bell in self._bells.get(group, ()):
            bell.set()

    def _note(self, *, working: bool, why: BaseException | None = None) -> None:
        if working == self.working:
            return
        self.working = working
        if working:
            for group in list(self._bells):
                self._ring_all(group)
        else:
            log.warning("Doorbells are not heard (%r); boards are read every second", why)
        self.on_change()


async def _soon(call: Awaitable[Any]) -> Any:
    """Await a call of the layer for at most PROBE_SECONDS."""
    async with asyncio.timeout(PROBE_SECONDS):
        return await call


async def wait_for(bell: asyncio.Event, seconds: float) -> bool:
    """Wait for `bell` for at most `seconds`, clear it, and return whether it rang."""
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return False
    bell.clear()
    return True
