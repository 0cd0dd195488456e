"""Messages from people to a running agent: each reaches the journal exactly once."""

from django.db.models.functions import Now

from board.models import Comment


def undelivered(run_id: int) -> list[Comment]:
    """Return the messages to this run that no step holds yet, oldest first."""
    waiting = Comment.objects.select_related("author").filter(
        run_id=run_id, kind="steer", delivered_at__isnull=True
    )
    return list(waiting.order_by("id"))


def mark_delivered(run_id: int, *, seq: int) -> None:
    """Record that step `seq` holds the oldest message that was not delivered."""
    del seq  # the order of notes is the order of messages
    oldest = undelivered(run_id)[:1]
    Comment.objects.filter(pk__in=[comment.pk for comment in oldest]).update(delivered_at=Now())
