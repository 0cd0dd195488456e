"""Boards to measure on. Import it after `django.setup()`."""

from importlib import import_module

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

from board.actions import cards, claims, projects, runs, workers
from board.actions.placement import at_end
from board.models import Card, Column, Project, User, Worker


def make_project(user: User, key: str) -> Project:
    """Make a board whose repository counts as fetched; nothing on it needs one."""
    project = projects.create_project(by=user, key=key, name="Bench", repository="/nowhere")
    Project.objects.filter(pk=project.pk).update(state="ready")
    project.refresh_from_db()
    return project


def fill(project: Project, user: User, number: int) -> None:
    """Make cards and spread them over the columns that need no run."""
    columns = list(
        Column.objects.filter(project=project, lane__in=["backlog", "queued", "review", "done"])
    )
    for index in range(number):
        card = cards.create_card(
            project,
            by=user,
            title=f"Card {index} with a title of ordinary length",
            checks=["make test"],
        )
        column = columns[index % len(columns)]
        Card.objects.filter(pk=card.pk).update(
            column=column, status=column.lane, rank=at_end(column, card.number)
        )


def make_run(project: Project, user: User) -> int:
    """Return the id of a run under way, of a worker that there is not."""
    row = Worker(host="bench", pid=1, version="0", slots=1, sandbox="none")
    workers.register_worker(row)
    card = cards.create_card(project, by=user, title="Running", checks=["true"])
    Card.objects.filter(pk=card.pk).update(priority=1_000)
    cards.queue_card(Card.objects.get(pk=card.pk), by=user)
    claim = claims.claim_next(row.pk, agent="agent-1", with_credential=True)
    if claim is None:
        raise RuntimeError("nothing could be claimed")
    runs.begin_work(claim.run_id, claim.fence, branch=f"cards/{card.ref}-1", base_sha="0" * 40)
    return claim.run_id


def sign_in(user: User) -> str:
    """Return the cookie of a new session."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return f"{settings.SESSION_COOKIE_NAME}={session.session_key}"
