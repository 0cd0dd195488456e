"""Claiming work: the one statement that decides which worker does what.

N workers and M cards give exactly M runs: a claim locks the row it takes, and raises its fence.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatch
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, F, Q
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from board import events
from board.actions.placement import at_end, column_for
from board.actions.transitions import transition
from board.events import Actor, publish
from board.models import Card, Column, Project, Run, Worker
from board.states import HELD, CardStatus, ProjectState, RunStatus

# So long a run that is ready again is left to the machine that has its files.
LEFT_TO_ITS_MACHINE = timedelta(seconds=10)


@dataclass(frozen=True)
class Claim:
    """A run that this worker holds now, under `fence`, until its lease ends."""

    run_id: int
    fence: int
    is_new: bool


# Idle workers ask each second. Written out, with constants, it costs a tenth of what the ORM needs, and SQLite
# can use the indexes that hold only such rows.
_IS_WORK_WAITING = f"""
    SELECT EXISTS (SELECT 1 FROM board_run WHERE status = '{RunStatus.READY.value}')
    OR EXISTS (
        SELECT 1 FROM board_card
        WHERE status = '{CardStatus.QUEUED.value}' AND unmet = 0 AND archived_at IS NULL
    )
"""  # noqa: S608  constants


def is_work_waiting() -> bool:
    """Return whether a claim could find anything. Only reads: idle workers poll this each second."""
    with connection.cursor() as cursor:
        cursor.execute(_IS_WORK_WAITING)
        return bool(cursor.fetchone()[0])


def claim_next(worker: UUID, *, agent: str, with_credential: bool) -> Claim | None:
    """Claim the next run that is ready, or else the next queued card; None if there is nothing to do.

    Without a credential only rehearsal projects are looked at. Order: ready runs by time, then
    cards by priority, rank and id.
    """
    with transaction.atomic():
        projects = _projects_with_room(with_credential=with_credential)
        return _claim_ready(projects, worker, agent) or _claim_card(projects, worker, agent)


def _projects_with_room(*, with_credential: bool) -> list[int]:
    projects = Project.objects.filter(state=ProjectState.READY, archived_at__isnull=True)
    if not with_credential:
        projects = projects.filter(is_rehearsal=True)
    held = Count("runs", filter=Q(runs__status__in=HELD))
    return list(
        projects.annotate(held=held).filter(held__lt=F("max_parallel")).values_list("pk", flat=True)
    )


def _claim_ready(projects: Sequence[int], worker: UUID, agent: str) -> Claim | None:
    ready = Run.objects.filter(status=RunStatus.READY).order_by("ready_at", "id")
    full: set[int] = set()
    kept: set[int] = set()  # for the machines that have them
    while True:
        rows = ready.filter(project_id__in=set(projects) - full).exclude(pk__in=kept)
        with transaction.atomic():
            # The card is locked before the project, as everywhere, and neither lock is waited for.
            locked = rows.select_for_update(of=("self", "card"), skip_locked=True)
            run = locked.select_related("card").first()
            if run is None:
                return None
            if _is_kept_for_its_machine(run, worker):
                kept.add(run.pk)
            elif _has_room(run.project_id):
                return _continue(run, worker, agent)
            else:
                full.add(run.project_id)
            transaction.set_rollback(True)  # gives the locks of the full project back


def _is_kept_for_its_machine(run: Run, worker: UUID) -> bool:
    """Return whether another machine, which has the run's files, is about to take it up.

    There the run finds also what was never committed, and an approval holds: it names real paths.
    """
    lately = Run.objects.filter(pk=run.pk, ready_at__gt=Now() - LEFT_TO_ITS_MACHINE)
    if not run.host or not lately.exists():
        return False
    alive = Worker.objects.filter(
        stopped_at__isnull=True,
        heartbeat_at__gte=Now() - timedelta(seconds=settings.LEASE_SECONDS),
    )
    if alive.filter(pk=worker, host=run.host).exists():
        return False
    return alive.filter(host=run.host, busy__lt=F("slots")).exists()


def _continue(run: Run, worker: UUID, agent: str) -> Claim:
    transition(
        run,
        RunStatus.RUNNING,
        worker=worker,
        agent=agent,
        fence=F("fence") + 1,
        waiting_for="",
        not_before=None,
        lease_until=_lease(),
        held_since=Now(),
    )
    Card.objects.filter(pk=run.card_id).update(rev=F("rev") + 1)
    publish(
        run.project_id,
        events.RunChanged(card_id=run.card_id, run_id=run.pk, status=RunStatus.RUNNING),
        by=Actor(agent),
    )
    return Claim(run.pk, run.fence, is_new=False)


def _claim_card(projects: Sequence[int], worker: UUID, agent: str) -> Claim | None:
    queued = Card.objects.filter(
        Q(not_before__isnull=True) | Q(not_before__lte=Now()),
        status=CardStatus.QUEUED,
        unmet=0,
        archived_at__isnull=True,
    ).order_by("-priority", "rank", "id")
    full: set[int] = set()
    passed_over: set[int] = set()
    while True:
        rows = queued.filter(project_id__in=set(projects) - full).exclude(pk__in=passed_over)
        with transaction.atomic():
            card = rows.select_for_update(skip_locked=True).first()
            if card is None:
                return None
            if not _has_room(card.project_id) or not _column_has_room(card.project_id):
                full.add(card.project_id)
            elif shared_files(card):
                passed_over |= {card.pk, *_in_the_way(card.project_id)}
            else:
                return _begin(card, worker, agent)
            transaction.set_rollback(True)  # gives the locks of what was passed over back


def _in_the_way(project_id: int) -> set[int]:
    """Return the queued cards that must come after one that is under way.

    All of a project's at once, so that a long row of them hides neither what is behind nor other projects.
    """
    queued = Card.objects.filter(
        project_id=project_id, status=CardStatus.QUEUED, unmet=0, archived_at__isnull=True
    )
    taken = files_under_way(project_id)
    return {pk for pk, files in queued.values_list("pk", "files") if overlap(files, taken)}


def _has_room(project_id: int) -> bool:
    """Return whether the project may have one more run; its row is locked until the commit."""
    project = Project.objects.select_for_update().get(pk=project_id)
    return Run.objects.filter(project_id=project_id, status__in=HELD).count() < project.max_parallel


def _column_has_room(project_id: int) -> bool:
    limit = (
        Column.objects.filter(project_id=project_id, lane="running")
        .values_list("limit", "pk")
        .first()
    )
    if limit is None or limit[0] is None:
        return True
    return Card.objects.filter(column_id=limit[1], archived_at__isnull=True).count() < limit[0]


def shared_files(card: Card) -> list[str]:
    """Return the files that this card and a card under way both name: they must come one after another."""
    if not card.files:
        return []
    return overlap(card.files, files_under_way(card.project_id, apart_from=[card.pk]))


def files_under_way(project_id: int, *, apart_from: Collection[int] = ()) -> set[str]:
    """Return the files that the project's running and merging cards name."""
    under_way = Card.objects.filter(
        project_id=project_id, status__in=[CardStatus.RUNNING, CardStatus.MERGING]
    ).exclude(pk__in=apart_from)
    return {name for files in under_way.values_list("files", flat=True) for name in files}


def overlap(mine: Iterable[str], theirs: Collection[str]) -> list[str]:
    """Return those of `mine` that name the same file or folder as one of `theirs`."""
    return [name for name in mine if any(_same(name, other) for other in theirs)]


def _same(left: str, right: str) -> bool:
    left, right = left.removeprefix("./"), right.removeprefix("./")
    inside = left.startswith(right.rstrip("/") + "/") or right.startswith(left.rstrip("/") + "/")
    return left == right or inside or fnmatch(left, right) or fnmatch(right, left)


def _begin(card: Card, worker: UUID, agent: str) -> Claim:
    project = Project.objects.get(pk=card.project_id)
    card.project = project
    run = Run.objects.create(
        project=project,
        card=card,
        attempt=card.attempts + 1,
        status=RunStatus.STARTING,
        worker=worker,
        agent=agent,
        lease_until=_lease(),
        held_since=Now(),
        model=project.model or settings.DEFAULT_MODEL,
    )
    column = column_for(project, CardStatus.RUNNING)
    transition(
        card,
        CardStatus.RUNNING,
        column=column,
        rank=at_end(column, card.number),
        attempts=run.attempt,
        run=run,
        failure="",
        failure_kind="",
        updated_at=Now(),
    )
    publish(
        project.pk,
        events.CardClaimed(card_id=card.pk, run_id=run.pk, attempt=run.attempt),
        by=Actor(agent),
    )
    return Claim(run.pk, run.fence, is_new=True)


def _lease() -> CombinedExpression:
    return Now() + timedelta(seconds=settings.LEASE_SECONDS)
