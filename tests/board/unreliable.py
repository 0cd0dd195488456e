"""A channel layer that loses, doubles and delays what it is given."""

import asyncio
import random
from typing import Any

from channels.layers import InMemoryChannelLayer


class UnreliableLayer(InMemoryChannelLayer):
    """Loses `loss` of all doorbells, sends some twice, and some so late that others overtake them."""

    def __init__(self, *, loss: float, seed: int = 0) -> None:
        super().__init__()
        self.loss = loss
        self.sent = 0
        self._chance = random.Random(seed)  # noqa: S311  no secret

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        self.sent += 1
        if self._chance.random() < self.loss:
            return
        for _ in range(self._chance.choice([1, 1, 2, 3])):
            await asyncio.sleep(self._chance.choice([0, 0, 0.05]))
            await super().group_send(group, message)


class DeadLayer(InMemoryChannelLayer):
    """Fails at every call while `is_dead`, as when nobody listens at the other end."""

    is_dead = True

    async def new_channel(self, prefix: str = "specific") -> str:
        self._check()
        return str(await super().new_channel(prefix))

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        self._check()
        await super().send(channel, message)

    async def group_add(self, group: str, channel: str) -> None:
        self._check()
        await super().group_add(group, channel)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        self._check()
        await super().group_send(group, message)

    def _check(self) -> None:
        if self.is_dead:
            raise ConnectionError("the layer is dead")
