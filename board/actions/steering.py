"""Messages from people to a running agent: each reaches the journal exactly once."""

from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from board.actions.journal import begin_step
from board.models import Comment


def undelivered(run_id: int) -> list[Comment]:
    """Return the messages to this run that no step holds yet, oldest first."""
    waiting = Comment.objects.select_related("author").filter(
        run_id=run_id, kind="steer", delivered_at__isnull=True
    )
    return list(waiting.order_by("id"))


def deliver(run_id: int, fence: int, **step: Any) -> int:
    """Add the step that holds the oldest message, which is delivered with it; return the step's seq."""
    with transaction.atomic():
        seq = begin_step(run_id, fence, **step)
        oldest = [comment.pk for comment in undelivered(run_id)[:1]]
        Comment.objects.filter(pk__in=oldest).update(delivered_at=Now())
    return seq
