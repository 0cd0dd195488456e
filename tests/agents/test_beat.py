"""Beat sends no task through the broker that would find nothing to do."""

from datetime import timedelta

import pytest
from celery.beat import ScheduleEntry
from django.utils import timezone

from agents.beat import LeaderScheduler
from board.actions import approvals
from board.celery import app
from board.models import Approval, Notice, Run

pytestmark = pytest.mark.django_db
QUESTION = approvals.Question(
    "call", "bash", {"command": "uv add x"}, "A2", ["Installs."], "d" * 64, {}, [], "none"
)


@pytest.fixture
def asked(running: Run) -> Approval:
    return approvals.request_approval(
        running.pk, running.fence, QUESTION, seq=None, active_seconds=0
    )


def sent_by(name: str) -> int:
    """Fire the entry of the schedule and return how many messages that sent."""
    scheduler = LeaderScheduler(app=app, lazy=True)
    entry = ScheduleEntry(name=name, app=app, **app.conf.beat_schedule[name])
    with app.connection_for_write() as connection:
        queue = connection.SimpleQueue("housekeeping")
        queue.clear()
        scheduler.apply_entry(entry)
        return queue.qsize()


def test_messages_that_are_due_are_fired(asked: Approval) -> None:
    Notice.objects.create(approval=asked, reason="asked", channel="webhook", next_at=timezone.now())
    assert sent_by("notices") == 1


def test_messages_that_are_not_due_are_not_fired(asked: Approval) -> None:
    later = timezone.now() + timedelta(hours=1)
    Notice.objects.create(approval=asked, reason="asked", channel="webhook", next_at=later)
    assert sent_by("notices") == 0


def test_housekeeping_is_fired_always() -> None:
    assert sent_by("keep_house") == 1
