"""Which worktrees are still of use: what a person may look at or go on with, and what is just over."""

from collections.abc import Collection
from datetime import timedelta

from django.utils import timezone

from board.models import Run
from board.states import LIVE, CardStatus


def reasons_to_keep(project_key: str, branches: Collection[str], *, days: float) -> dict[str, str]:
    """Return why the worktrees on these branches are kept, in words, by branch.

    The reason is "" where it is of no use any more: its run is over for more than `days`, or its card is
    done or archived. A branch of which no run is known is not in the answer.
    """
    runs = Run.objects.filter(project__key=project_key, branch__in=branches)
    runs = runs.select_related("card__project").order_by("pk")
    return {run.branch: _reason(run, days) for run in runs}


def _reason(run: Run, days: float) -> str:
    if run.status in LIVE:
        return "its run is not over"
    if run.card.status in (CardStatus.REVIEW, CardStatus.MERGING):
        return f"{run.card.ref} is in review"
    if run.card.status == CardStatus.DONE or run.card.archived_at is not None:
        return ""
    if run.ended_at is not None and timezone.now() - run.ended_at < timedelta(days=days):
        return f"its run ended less than {days:g} days ago"
    return ""
