"""Housekeeping: short, idempotent tasks without content. Losing or doubling one changes only when."""

import logging

from celery import shared_task

from board.actions import deliveries, housekeeping

log = logging.getLogger(__name__)


@shared_task(name="board.keep_house", ignore_result=True)
def keep_house() -> None:
    """Wake runs that are due, and take work away from dead workers."""
    housekeeping.keep_house()


@shared_task(name="board.deliver_notices", ignore_result=True)
def deliver_notices() -> None:
    """Send mails and webhooks about questions that wait."""
    deliveries.deliver_notices()


@shared_task(name="board.tidy", ignore_result=True)
def tidy() -> None:
    """Check what is counted against what is true, and forget what is no longer needed."""
    drift = housekeeping.repair_unmet()
    if drift:
        log.error("The count of unmet dependencies was wrong on cards %s and is mended", drift)
    housekeeping.forget_sessions()
