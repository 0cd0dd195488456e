"""What the board announces to code that it does not know: after commit, with ids only.

A signal is a hint. It may be lost, late or doubled; every listener also polls.
"""

from collections.abc import Mapping
from functools import partial

from django.db import transaction
from django.dispatch import Signal

card_queued = Signal()  # card_id
run_ready = Signal()  # run_id
run_cancel_requested = Signal()  # run_id
errand_queued = Signal()  # errand_id


def announce(signal: Signal, **ids: int) -> None:
    """Send `signal` with `ids` once the transaction is committed; a failing listener harms nobody."""
    transaction.on_commit(partial(_send, signal, ids))


def _send(signal: Signal, ids: Mapping[str, int]) -> None:
    signal.send_robust(sender=None, **ids)
