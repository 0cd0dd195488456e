"""Taking errands away from dead workers."""

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from board.actions.containers import report_lost_try
from board.actions.dependencies import lock_cards
from board.actions.merges import return_to_review
from board.actions.projects import report_fetch_failure
from board.actions.transitions import transition
from board.errors import LeaseLostError
from board.events import Actor
from board.models import Errand
from board.states import ErrandKind, ErrandStatus

MAX_LOSSES = 3  # workers that died on it; then it is reported, not tried for ever
LOST = "The workers that tried this were lost. Look at their logs, then try again."


def lapsed_errands() -> QuerySet[Errand]:
    """Return the errands whose lease is over."""
    return Errand.objects.filter(status=ErrandStatus.RUNNING, lease_until__lt=Now())


def reap_errands() -> int:
    """Return the errands of dead workers to the queue, end those that killed too many; return how many."""
    return sum(_reap(errand) for errand in lapsed_errands().select_related("project"))


def _reap(errand: Errand) -> bool:
    again = errand.losses + 1 < MAX_LOSSES
    try:
        with transaction.atomic():
            lock_cards([] if errand.card_id is None else [errand.card_id])
            if not Errand.objects.filter(pk=errand.pk, lease_until__lt=Now()).exists():
                return False  # it beat in this moment
            transition(
                errand,
                ErrandStatus.QUEUED if again else ErrandStatus.FAILED,
                holding=errand.fence,
                losses=F("losses") + 1,
                worker=None,
                lease_until=None,
                **({} if again else {"message": LOST, "ended_at": Now()}),
            )
            if not again and errand.kind == ErrandKind.FETCH:
                report_fetch_failure(errand.project_id, LOST)
            elif not again and errand.kind == ErrandKind.TRY:
                report_lost_try(errand, LOST)
            elif not again:
                return_to_review(errand, reason=LOST, by=Actor.PULLCORD)
    except LeaseLostError:
        return False
    return True
