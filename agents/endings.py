"""How a run's stay at this worker ends when it does not succeed, and how that is written for sure."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any

from django.conf import settings

from agents.bridge import Lease
from agents.database import DATABASE_IS_AWAY, RedactedDatabase
from agents.harness.errors import FatalError, Waiting
from agents.log_sink import LogSink
from agents.workspaces.errors import WorkspaceError
from board.actions import runs, workers
from board.errors import LeaseLostError, TransitionError
from board.states import FailureKind, WaitingFor

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0  # before the end of a run is written again

# Saves what there is of the work and returns it for the run's row.
Leave = Callable[[], Awaitable[Mapping[str, Any]]]


class StopReason(StrEnum):
    """Why the coroutine of a run is cancelled."""

    CANCELLED = "cancelled"  # by a person
    DRAIN = "drain"  # this worker is stopping
    LOST = "lost"  # the lease is gone: nothing may be written any more


class UnfinishedError(FatalError):
    """The agent itself reported that it could not do it."""

    def __init__(self, summary: str, remaining: str) -> None:
        super().__init__(summary or "The agent reported that it could not do this.")
        self.remaining = remaining


class Endings:
    """Writes the end of one run's stay."""

    def __init__(self, lease: Lease, *, db: RedactedDatabase, sink: LogSink) -> None:
        self._lease = lease
        self._db = db
        self._sink = sink

    async def put_aside(self, wait: Waiting) -> None:
        """Let go of a run that waits for a time to come."""
        if wait.reason == "approval":  # the question is committed, the run is let go already
            return
        self._sink.emit(
            "note", text=f"{wait} Tried again in {wait.seconds:.0f} s.", level="warning"
        )
        await self._try_end(
            runs.put_aside,
            waiting_for=WaitingFor.RETRY,
            seconds=wait.seconds,
            reason=str(wait),
        )

    async def give_back(self, error: Exception) -> None:
        """Leave the run to whichever worker claims it next: the database was away and steps are missing."""
        log.warning("Run %s is given back, the database was away: %s", self._lease.run_id, error)
        await self._try_end(runs.give_back)

    async def end_early(self, reason: StopReason | None, leave: Leave) -> None:
        """End the stay of a run whose coroutine was cancelled."""
        match reason:
            case StopReason.CANCELLED:
                await self._try_end(runs.end_cancelled, **await leave())
            case StopReason.DRAIN:
                await leave()
                await self._try_end(runs.give_back)
            case StopReason.LOST | None:
                log.warning(
                    "Run %s was stopped, because its lease could not be renewed", self._lease.run_id
                )

    async def fail(self, error: Exception, leave: Leave) -> None:
        """End the run as failed, with the reason that a person can act on."""
        remaining = ""
        if await self._db(workers.cancelled_among, [self._lease.run_id]):
            # A person cancelled it in the moment in which it ended.
            await self._try_end(runs.end_cancelled, **await leave())
            return
        match error:
            case UnfinishedError():
                kind, message, remaining = FailureKind.REPORTED, str(error), error.remaining
            case FatalError():
                kind, message = FailureKind(error.kind), str(error)
            case WorkspaceError():
                kind, message = FailureKind.INFRASTRUCTURE, str(error)
            case _:
                log.error("Run %s ended by a fault of ours", self._lease.run_id, exc_info=error)
                kind = FailureKind.INTERNAL
                message = f"A fault of Pullcord's own: {error!r}. See the worker's log."
        self._sink.emit("note", text=message, level="error")
        left = await leave()
        await self._try_end(runs.fail_run, kind=kind, message=message, remaining=remaining, **left)

    async def _try_end(self, action: Callable[..., None], **values: Any) -> None:
        """Write the end of this run's stay here, unless another worker holds it now.

        Tried for the length of a lease: an end that is not written is a run done twice.
        """
        seconds = self._lease.active_seconds()
        deadline = time.monotonic() + settings.LEASE_SECONDS
        while True:
            try:
                await self._sink.flush()
                await self._db(action, *self._lease.key, active_seconds=seconds, **values)
            except (LeaseLostError, TransitionError) as error:
                log.info("Run %s: %s", self._lease.run_id, error)
            except DATABASE_IS_AWAY as error:
                if time.monotonic() < deadline:
                    await asyncio.sleep(AGAIN_SECONDS)
                    continue
                log.warning("Run %s is left to its lease: %s", self._lease.run_id, error)
            return
