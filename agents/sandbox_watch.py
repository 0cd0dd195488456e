"""Looks again and again whether the sandbox that a worker started with still works, and says if not.

The worker does not take a lower level then: whoever can make a probe fail could choose it. Its
commands fail instead, until somebody mends the machine or starts the worker anew.
"""

import asyncio
import logging
from uuid import UUID

from agents.database import DATABASE_IS_AWAY, Database
from agents.sandbox_levels import BROKEN, SandboxLevel
from agents.sandbox_probe import look_again
from board.actions.workers import note_sandbox

log = logging.getLogger(__name__)

LOOK_SECONDS = 300.0
SURE_SECONDS = 5.0  # a machine under load may fail once


async def watch(worker_id: UUID, start: SandboxLevel, db: Database) -> None:
    """Look for ever; what is found is in the worker's row."""
    said = start.name
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        found = await asyncio.to_thread(look_again)
        if found.is_worse_than(start):
            await asyncio.sleep(SURE_SECONDS)
            found = await asyncio.to_thread(look_again)
        name, message = state(start, found)
        if name == said:
            continue
        log.warning("Sandbox: %s. %s", name, message)
        try:
            await db(note_sandbox, worker_id, name, message)
        except DATABASE_IS_AWAY:
            continue
        said = name


def state(start: SandboxLevel, found: SandboxLevel) -> tuple[str, str]:
    """What the board is told: the level of the start, or that it does not work any more."""
    if not found.is_worse_than(start):
        return start.name, start.message
    return BROKEN, (
        f"The sandbox of this worker's start ({start.name}) does not work any more, so its commands "
        f"fail. Mend it, or start the worker again to go on with the level that is left. "
        f"Found now: {found.message}"
    )
