"""The wake-up that Celery carries to a worker."""

import logging

from kombu.exceptions import OperationalError

from agents import wakes
from board.celery import app

log = logging.getLogger(__name__)
WAKE_EXPIRES_SECONDS = 5  # later than that the poll has found the work


# Of our own app: a process that has imported no other would publish to a broker that is not ours.
@app.task(name="agents.wake", ignore_result=True)
def wake() -> None:
    """Tell this process's worker loop to look for work now."""
    wakes.wake_all()


def send_wake() -> None:
    """Publish a wake-up, once, without waiting for a broker that is away."""
    try:
        wake.apply_async(expires=WAKE_EXPIRES_SECONDS, retry=False)
    except (OperationalError, OSError) as error:
        log.info("No wake-up was sent (%s); the workers poll", error)
