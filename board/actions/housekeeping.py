"""Checking what is stored twice, and forgetting what nobody needs."""

import logging
from functools import cache
from typing import Any

from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Now

from board.actions.dependencies import count_unmet, lock_cards
from board.actions.endings import expire_questions, overdue_questions
from board.actions.notices import remind, silent_questions
from board.actions.reaping import lapsed_errands, reap_errands
from board.actions.recovery import due_runs, lapsed_runs, reap_runs, wake_due_runs
from board.models import Card
from board.states import CardStatus

log = logging.getLogger(__name__)


def keep_house() -> int:
    """Wake what has waited long enough, and take work away from dead workers; return how many leases ended.

    Idempotent and cheap: beat fires it, and each worker does it too, in case no message comes through.
    """
    if not is_anything_due():
        return 0
    wake_due_runs()
    expire_questions()
    remind()
    lost = reap_runs() + reap_errands()
    if lost:
        log.warning("%s leases ran out; the work goes to other workers", lost)
    return lost


def is_anything_due() -> bool:
    """Return whether there may be something to do: one question instead of five."""
    sql, values = _is_anything_due(connection.vendor)
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return bool(cursor.fetchone()[0])


@cache
def _is_anything_due(_vendor: str) -> tuple[str, list[Any]]:
    """The question as SQL. It never changes, and to build it takes ten times as long as to answer it."""
    parts: list[str] = []
    values: list[Any] = []
    rows: QuerySet[Any]
    for rows in (
        due_runs(), overdue_questions(), silent_questions(), lapsed_runs(), lapsed_errands(),
    ):  # fmt: skip
        sql, its_values = rows.order_by().values("pk").query.sql_with_params()
        parts.append(f"EXISTS ({sql})")
        values += its_values
    return f"SELECT {' OR '.join(parts)}", values


def repair_unmet() -> list[int]:
    """Recompute `unmet` where it differs from the truth, under the lock; return the cards' ids."""
    true_count = Count("dependencies", filter=~Q(dependencies__needs__status=CardStatus.DONE))
    suspects = Card.objects.annotate(truth=true_count).exclude(truth=F("unmet"))
    repaired = []
    for pk in suspects.values_list("pk", flat=True):
        with transaction.atomic():
            (card,) = lock_cards([pk])
            truth = count_unmet(card)
            if truth != card.unmet:  # it was not only under way
                Card.objects.filter(pk=pk).update(unmet=truth, rev=F("rev") + 1)
                repaired.append(pk)
    return repaired


def forget_sessions() -> None:
    """Delete sessions that have ended."""
    Session.objects.filter(expire_date__lt=Now()).delete()
