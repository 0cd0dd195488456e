"""What a worker does beside its runs, each a coroutine for as long as the worker lives."""

import asyncio
import contextlib
import logging
import random

from django.conf import settings

from agents.database import Database
from agents.sandbox_levels import BUBBLEWRAP
from agents.sandbox_mounts import copy_etc
from agents.sandbox_probe import probe
from board.actions.housekeeping import keep_house

log = logging.getLogger(__name__)

HOUSEKEEPING_SECONDS = 3.0  # also without a broker, which would let beat's tasks through


async def keep_house_forever(db: Database) -> None:
    """Do what must not depend on a broker: wake runs whose time has come, and reap dead workers'."""
    while True:
        await asyncio.sleep(HOUSEKEEPING_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311
        try:
            await db(keep_house)
        except Exception as error:  # noqa: BLE001  tried again in seconds
            log.warning("Housekeeping was left out: %s", error)


async def prepare_sandbox() -> None:
    """Make what the first run's sandbox needs before there is a first run."""
    if probe().name == BUBBLEWRAP:
        with contextlib.suppress(OSError):  # the first run says it better
            await asyncio.to_thread(copy_etc, settings.WORKSPACES)
