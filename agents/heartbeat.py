"""The heartbeat of a worker: renews its leases, as long as the event loop feeds it.

A loop that is stuck, or a database that stays away or silent, lets the leases end; before they do, by
this machine's monotonic clock, everything that runs under them is killed. Two threads, because the one
that writes to the database may be stuck there.
"""

import logging
import os
import threading
import time
from typing import Protocol
from uuid import UUID

from django.conf import settings
from django.db import connection

from agents.database import call
from board.actions import workers

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
LEAVING_SECONDS = 0.5
STUCK_CODE = 70  # EX_SOFTWARE


class Body(Protocol):
    """What the heart keeps alive."""

    def held(self) -> dict[int, float]:
        """Return the ids of the runs in the slots, with the monotonic time of each claim."""

    def held_errands(self) -> list[int]:
        """Return the ids of the errands under way."""

    def abandon(self, run_ids: set[int] | None) -> None:
        """Stop these runs, or all; nothing of them may be written any more."""


class Heart:
    """Beats every quarter of a lease, as long as it is fed."""

    def __init__(self, worker_id: UUID, body: Body) -> None:
        self._worker_id = worker_id
        self._body = body
        self._interval = settings.LEASE_SECONDS / 4
        self._fresh = settings.LEASE_SECONDS / 2  # an older feed does not count
        # Nothing runs on past this point of a lease that was not renewed.
        self._patience = settings.LEASE_SECONDS * 0.75
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=f"agents-heart-{name}", daemon=True)
            for name, work in (("beat", self._beat_forever), ("watch", self._watch_forever))
        ]
        self._fed_at = self._renewed_at = time.monotonic()
        self._busy = 0
        self._lag_ms = 0

    def start(self) -> None:
        """Begin to beat."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop beating."""
        self._stop.set()
        for thread in self._threads:
            thread.join(1)

    def feed(self, *, busy: int, lag_ms: int) -> None:
        """Say that the loop is alive; called by the loop itself, each second."""
        self._fed_at = time.monotonic()
        self._busy, self._lag_ms = busy, lag_ms

    def _beat_forever(self) -> None:
        while not self._stop.wait(self._interval):
            now = time.monotonic()
            if now - self._fed_at < self._fresh:
                self._beat(now)
        connection.close()

    def _beat(self, now: float) -> None:
        ours = self._body.held()
        try:
            beat = call(
                workers.beat,
                self._worker_id,
                runs=list(ours),
                errands=self._body.held_errands(),
                busy=self._busy,
                lag_ms=self._lag_ms,
            )
        except Exception as error:  # noqa: BLE001  tried again in seconds; patience decides
            log.warning("The heartbeat was not written: %s", error)
            return
        self._renewed_at = now
        # A run that was claimed while the statement ran has its lease from the claim.
        gone = {run_id for run_id, since in ours.items() if since < now} - beat.held_runs
        # A run that ended or asked just now has given its lease back itself, and is leaving its slot.
        if gone and not self._stop.wait(LEAVING_SECONDS):
            still = self._body.held()
            gone = {run_id for run_id in gone if still.get(run_id) == ours[run_id]}
        if gone:
            log.warning("The leases of runs %s are gone", sorted(gone))
            self._body.abandon(gone)

    def _watch_forever(self) -> None:
        """Kill what runs before its lease ends, and the whole process when its loop is stuck for good."""
        abandoned_at = stuck_seconds = 0.0
        while not self._stop.wait(LOOK_SECONDS):
            now = time.monotonic()
            # Counted in looks: in a process that was stopped and continued the loop is not stuck.
            stuck_seconds = (
                0.0 if now - self._fed_at < self._fresh else stuck_seconds + LOOK_SECONDS
            )
            if stuck_seconds > 2 * settings.LEASE_SECONDS:
                log.critical("The event loop is stuck; this worker ends, for another to be started")
                os._exit(STUCK_CODE)
            if now - max(self._renewed_at, abandoned_at) > self._patience:
                abandoned_at = now
                if self._body.held():
                    log.error("The leases could not be renewed; everything is stopped")
                    self._body.abandon(None)
