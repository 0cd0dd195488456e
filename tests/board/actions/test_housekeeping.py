"""Housekeeping: one cheap question says whether there is anything to do, and then it is done."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from board.actions import runs
from board.actions.approvals import Question, request_approval
from board.actions.housekeeping import is_anything_due, keep_house
from board.models import Approval, Errand, Project, Run
from board.states import ApprovalStatus, ErrandStatus, RunStatus, WaitingFor

pytestmark = pytest.mark.django_db

PAST = timedelta(seconds=1)


def ask(run: Run) -> None:
    question = Question(
        call_id="call-1", tool="bash", input={"command": "rm -rf build"}, rule="D1",
        reasons=["It deletes files."], digest="0" * 64, facts={}, effects=[], sandbox="bubblewrap",
    )  # fmt: skip
    request_approval(run.pk, run.fence, question, seq=None, active_seconds=2.0)


def test_where_nothing_is_due_one_query_says_so(running: Run) -> None:
    runs.put_aside(
        running.pk, running.fence,
        waiting_for=WaitingFor.RETRY, active_seconds=1, seconds=30, reason="Overloaded.",
    )  # fmt: skip
    with CaptureQueriesContext(connection) as queries:
        assert keep_house() == 0
    assert len(queries) == 1


def test_a_lease_that_is_over_is_noticed(running: Run) -> None:
    assert not is_anything_due()
    Run.objects.update(lease_until=Now() - PAST)
    assert keep_house() == 1
    assert Run.objects.get().status == RunStatus.READY
    assert not is_anything_due()


def test_a_waiting_time_that_is_over_is_noticed(running: Run) -> None:
    runs.put_aside(
        running.pk, running.fence,
        waiting_for=WaitingFor.RETRY, active_seconds=1, seconds=30, reason="Overloaded.",
    )  # fmt: skip
    assert not is_anything_due()
    Run.objects.update(not_before=Now() - PAST)
    keep_house()
    assert Run.objects.get().status == RunStatus.READY


def test_a_question_whose_time_is_over_is_noticed(running: Run) -> None:
    ask(running)
    Approval.objects.update(reminded_at=Now(), expires_at=Now() + timedelta(minutes=1))
    assert not is_anything_due()
    Approval.objects.update(expires_at=Now() - PAST)
    keep_house()
    assert Approval.objects.get().status == ApprovalStatus.EXPIRED


def test_a_question_of_which_nobody_was_reminded_is_noticed(running: Run) -> None:
    ask(running)
    Approval.objects.update(created_at=Now() - timedelta(days=1))
    keep_house()
    assert Approval.objects.get().reminded_at is not None
    assert not is_anything_due()


def test_an_errand_of_a_dead_worker_is_noticed(project: Project) -> None:
    Errand.objects.update(status=ErrandStatus.RUNNING, lease_until=Now() + timedelta(minutes=1))
    assert Errand.objects.get().project == project
    assert not is_anything_due()
    Errand.objects.update(lease_until=Now() - PAST)
    assert keep_house() == 1
    assert Errand.objects.get().status == ErrandStatus.QUEUED
