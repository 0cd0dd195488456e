"""Who is looking at a question: a soft claim that the others see, and that is over by itself."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from board import events
from board.events import Actor, publish
from board.models import Approval, User
from board.states import ApprovalStatus

LOOK_SECONDS = 120  # of silence; an open page says so again every 45 s


def look_at(approval: Approval, *, by: User) -> None:
    """Say that `by` looks at an open question, unless somebody else does. It stops nobody from answering."""
    mine = Q(looked_by=by)
    free = Q(looked_until__isnull=True) | Q(looked_until__lte=Now())
    until = Now() + timedelta(seconds=LOOK_SECONDS)
    rows = Approval.objects.filter(pk=approval.pk, status=ApprovalStatus.PENDING)
    with transaction.atomic():
        if rows.filter(mine & ~free).update(looked_until=until):
            return
        if not rows.filter(free).update(looked_by=by, looked_until=until):
            return
        publish(
            approval.project_id,
            events.ApprovalLookedAt(
                card_id=approval.run.card_id, run_id=approval.run_id, approval_id=approval.pk
            ),
            by=Actor.person(by),
        )
