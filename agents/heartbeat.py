"""The heartbeat of a worker: renews its leases from a thread that the event loop must feed.

A loop that is stuck, or a database that stays away, lets the leases end; before they do, by this
machine's monotonic clock, everything that runs under them is killed.
"""

import logging
import threading
import time
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.db import connection

from agents.database import call
from board.actions import workers

log = logging.getLogger(__name__)


class Held(Protocol):
    """What the heart keeps alive."""

    def abandon(self, run_ids: set[int] | None) -> None:
        """Stop these runs, or all; nothing of them may be written any more."""

    def held(self) -> dict[int, float]:
        """Return the ids of the runs in the slots, with the monotonic time of each claim."""


class Heart:
    """Beats every quarter of a lease, as long as it is fed."""

    def __init__(self, worker_id: UUID, body: Held) -> None:
        self._worker_id = worker_id
        self._body = body
        self._interval = settings.LEASE_SECONDS / 4
        # Nothing runs on past this point of a lease that was not renewed.
        self._patience = settings.LEASE_SECONDS * 0.75
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agents-heart", daemon=True)
        self._fed_at = self._renewed_at = time.monotonic()
        self._busy = 0
        self._lag_ms = 0

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Stop beating."""
        self._stop.set()
        self._thread.join(2)

    def feed(self, *, busy: int, lag_ms: int) -> None:
        """Say that the loop is alive; called by the loop itself, each second."""
        self._fed_at = time.monotonic()
        self._busy, self._lag_ms = busy, lag_ms

    def _run(self) -> None:
        while not self._stop.wait(min(self._interval, 5)):
            now = time.monotonic()
            is_fed = now - self._fed_at < self._interval
            if is_fed and now - self._renewed_at >= self._interval - 5:
                self._beat(now)
            if time.monotonic() - self._renewed_at > self._patience:
                log.error(
                    "The leases could not be renewed for %.0f s; everything is stopped",
                    self._patience,
                )
                self._body.abandon(None)
                self._renewed_at = time.monotonic()
        connection.close()

    def _beat(self, now: float) -> None:
        ours = self._body.held()
        try:
            beat = call(workers.beat, self._worker_id, busy=self._busy, lag_ms=self._lag_ms)
        except Exception as error:  # noqa: BLE001  tried again in seconds; patience decides
            log.warning("The heartbeat was not written: %s", error)
            return
        self._renewed_at = now
        # A run claimed while the statement ran is not in its answer.
        lost = {run_id for run_id, since in ours.items() if since < now} - beat.held_runs
        if lost:
            log.warning("The leases of runs %s are gone", sorted(lost))
            self._body.abandon(lost)
