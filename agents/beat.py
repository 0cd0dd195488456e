"""Celery's beat in a thread of the worker. Any number of workers carry one; a lease in the database lets one fire."""

import logging
import threading
from typing import Any
from uuid import uuid4

from celery import bootsteps
from celery.beat import Scheduler, Service
from django.db import DatabaseError, connection

from board.actions.deliveries import is_notice_due
from board.actions.workers import take_lead
from board.tasks import deliver_notices

log = logging.getLogger(__name__)

LEAD_SECONDS = 15.0
MAX_SLEEP_SECONDS = 5  # of a leader; well within its lead


class LeaderScheduler(Scheduler):
    """Fires what is due while this process holds the lead; keeps no file."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._holder = uuid4()

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Fire what is due, if this is the leader, and return the seconds to the next look."""
        try:
            leads = take_lead("beat", self._holder, seconds=LEAD_SECONDS)
        except DatabaseError as error:
            log.warning("The lead cannot be taken: %s", error)
            connection.close()
            return MAX_SLEEP_SECONDS
        if not leads:
            return MAX_SLEEP_SECONDS
        return float(min(super().tick(*args, **kwargs), MAX_SLEEP_SECONDS))

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Fire a task, but not for messages that nobody waits for: to look is a tenth of the work."""
        try:
            is_needed = entry.task != deliver_notices.name or is_notice_due()
        except DatabaseError:
            connection.close()
            is_needed = True
        if is_needed:
            super().apply_entry(entry, producer=producer)


class BeatStep(bootsteps.StartStopStep):
    """Runs beat beside the consumer of a worker that listens to `housekeeping`."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._service: Service | None = None
        self.enabled = "housekeeping" in parent.app.amqp.queues.consume_from

    def start(self, parent: Any) -> None:
        """Start beat in a thread of its own."""
        service = Service(parent.app, max_interval=MAX_SLEEP_SECONDS, scheduler_cls=LeaderScheduler)
        self._service = service
        threading.Thread(
            target=service.start, kwargs={"embedded_process": False}, name="beat", daemon=True
        ).start()

    def stop(self, parent: Any) -> None:
        """End beat."""
        del parent
        if self._service is not None:
            self._service.stop()
            self._service = None

    terminate = stop
