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


def deliver(run_id: int, fence: int, *, up_to: int, **step: Any) -> int:
    """Add the step that holds the messages up to the comment `up_to`, and return the step's seq.

    They count as delivered in the same transaction; one that came since waits for the next step.
    """
    with transaction.atomic():
        seq = begin_step(run_id, fence, **step)
        held = [comment.pk for comment in undelivered(run_id) if comment.pk <= up_to]
        Comment.objects.filter(pk__in=held).update(delivered_at=Now())
    return seq
