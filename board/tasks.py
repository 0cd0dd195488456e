"""Housekeeping: short, idempotent tasks without content. Losing or doubling one changes only when."""

import logging

from celery import shared_task

from board.actions import housekeeping
from board.actions.reaping import reap_errands
from board.actions.runs import reap_runs, wake_due_runs

log = logging.getLogger(__name__)


@shared_task(name="board.wake_due_runs", ignore_result=True)
def wake_due() -> None:
    """Make runs ready whose waiting time is over."""
    wake_due_runs()


@shared_task(name="board.reap", ignore_result=True)
def reap() -> None:
    """Take runs and errands away from workers that are dead."""
    lost = reap_runs() + reap_errands()
    if lost:
        log.warning("%s leases ran out; the work goes to other workers", lost)


@shared_task(name="board.tidy", ignore_result=True)
def tidy() -> None:
    """Check what is counted against what is true, and forget what is no longer needed."""
    drift = housekeeping.repair_unmet()
    if drift:
        log.error("The count of unmet dependencies was wrong on cards %s and is mended", drift)
    housekeeping.forget_sessions()
