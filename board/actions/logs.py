"""The live log of a run: items appended in batches, numbered without gaps."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import connection, transaction

from board import bus
from board.actions.texts import clean
from board.errors import LeaseLostError
from board.models import LogItem

Item = tuple[str, dict[str, Any]]  # kind, data


def append_log(run_id: int, items: Sequence[Item], *, fence: int | None = None) -> int:
    """Append items and return the seq of the last one.

    A worker names its fence, and LeaseLostError is raised if it is stale; a person's page names none.
    """
    with transaction.atomic():
        last = _take_numbers(run_id, len(items), fence)
        first = last - len(items) + 1
        LogItem.objects.bulk_create(
            LogItem(run_id=run_id, seq=first + place, kind=kind, data=clean(data))
            for place, (kind, data) in enumerate(items)
        )
        transaction.on_commit(partial(bus.ring, bus.run_group(run_id)))
    return last


def _take_numbers(run_id: int, count: int, fence: int | None) -> int:
    held, values = ("", []) if fence is None else (" AND fence = %s", [fence])
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE board_run SET log_seq = log_seq + %s WHERE id = %s{held} RETURNING log_seq",  # noqa: S608
            [count, run_id, *values],
        )
        row = cursor.fetchone()
    if row is None:
        raise LeaseLostError("Another worker holds this run now.")
    return int(row[0])
