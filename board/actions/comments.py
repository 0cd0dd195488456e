"""What people say on a card, and to the agent that works on it."""

from django.db import transaction
from django.db.models import F

from board import events
from board.actions.cleaning import MAX_TEXT
from board.errors import TransitionError, ValidationError
from board.events import Actor, publish
from board.models import Card, Comment, User


def comment_on_card(
    card: Card, *, by: User, body: str, steer: bool = False, op_id: str = ""
) -> Comment:
    """Say something on a card; `steer` delivers it to the agent that works on it now."""
    text = body.replace("\x00", "").strip()[:MAX_TEXT]
    if not text:
        raise ValidationError("Write something first.", fields={"body": "This is empty."})
    if steer and not (card.run and card.run.is_live):
        raise TransitionError("No agent works on this card now. Queue it, or leave a comment.")
    with transaction.atomic():
        comment = Comment.objects.create(
            card=card, run=card.run, author=by, kind="steer" if steer else "comment", body=text
        )
        Card.objects.filter(pk=card.pk).update(rev=F("rev") + 1)
        publish(
            card.project_id,
            events.CardCommented(card_id=card.pk, kind_of_comment=comment.kind),
            by=Actor.person(by),
            op_id=op_id,
        )
    return comment
