"""What the board announces becomes a wake-up for the workers. A lost wake-up only costs a poll."""

from typing import Any

from board import bus, signals


def connect() -> None:
    """Listen to the board's signals."""
    for signal in (
        signals.card_queued,
        signals.run_ready,
        signals.errand_queued,
        signals.run_cancel_requested,
    ):
        signal.connect(wake_workers, dispatch_uid="agents.wake_workers")


def wake_workers(**_ids: Any) -> None:
    """Send one wake-up without content, from the bus's thread: a slow broker holds nobody up."""
    bus.run_soon(_send_wake)


def _send_wake() -> None:
    # Celery is big; a process that wakes nobody (a command, the supervisor) starts without it.
    from agents import tasks

    tasks.send_wake()
