"""Messages from people to a running agent: each reaches the journal exactly once."""

from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from board.actions.journal import begin_step
from board.models import Comment


def undelivered(run_id: int) -> list[Comment]:
    """Return the messages to this run that no step holds yet, oldest first."""
    if not _is_anything_said(run_id):
        return []
    waiting = Comment.objects.select_related("author").filter(
        run_id=run_id, kind="steer", delivered_at__isnull=True
    )
    return list(waiting.order_by("id"))


def _is_anything_said(run_id: int) -> bool:
    """Each turn asks, and nearly always the answer is no; see `board.actions.journal` for the SQL."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM board_comment "
            "WHERE run_id = %s AND kind = 'steer' AND delivered_at IS NULL LIMIT 1",
            [run_id],
        )
        return cursor.fetchone() is not None


def deliver(run_id: int, fence: int, *, up_to: int, **step: Any) -> int:
    """Add the step that holds the messages up to the comment `up_to`, and return the step's seq.

    They count as delivered in the same transaction; one that came since waits for the next step.
    """
    with transaction.atomic():
        seq = begin_step(run_id, fence, **step)
        held = [comment.pk for comment in undelivered(run_id) if comment.pk <= up_to]
        Comment.objects.filter(pk__in=held).update(delivered_at=Now())
    return seq
