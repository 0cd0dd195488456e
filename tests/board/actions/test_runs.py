"""The life of a run: fences, leases, the reaper, waiting, ending, cancelling."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from board.actions import recovery, runs
from board.actions.approvals import Question, request_approval
from board.actions.cancels import cancel_card
from board.actions.claims import claim_next
from board.actions.logs import append_log
from board.actions.workers import beat, cancelled_among
from board.errors import LeaseLostError, TransitionError
from board.models import Approval, Card, Errand, Event, LogItem, Project, Run
from board.states import ApprovalStatus, CardStatus, FailureKind, RunStatus, WaitingFor
from tests.races import at_once

pytestmark = pytest.mark.django_db

OUTCOME: dict[str, Any] = {
    "head_sha": "a" * 40,
    "summary": "Done.",
    "evidence": [],
    "changes": {"files": 1},
}


def claim(worker, agent="agent-1") -> Any:
    return claim_next(worker.pk, agent=agent, with_credential=True)


def expire(run):
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - timedelta(seconds=1))


def last_event(run):
    return Event.objects.filter(card_id=run.card_id).latest("seq")


def ask(run, command="rm -rf build"):
    question = Question(
        call_id="call-1",
        tool="bash",
        input={"command": command},
        rule="D1",
        reasons=["It deletes files."],
        digest="0" * 64,
        facts={},
        effects=[],
        sandbox="bubblewrap",
    )
    return request_approval(run.pk, run.fence, question, seq=None, active_seconds=2.0)


def test_a_run_that_succeeds_takes_its_card_to_review(running):
    runs.finish_run(running.pk, running.fence, active_seconds=3, **OUTCOME)
    running.refresh_from_db()
    card = running.card
    card.refresh_from_db()
    assert (running.status, running.worker, running.lease_until) == ("succeeded", None, None)
    assert (running.summary, running.changes, running.active_seconds) == ("Done.", {"files": 1}, 3)
    assert running.ended_at is not None
    assert (card.status, card.column.lane) == ("review", "review")
    assert (last_event(running).kind, last_event(running).actor) == ("CardReviewed", "agent-1")
    assert not Errand.objects.filter(kind="merge").exists()


def test_a_project_may_merge_by_itself(running):
    Project.objects.update(auto_merge=True)
    runs.finish_run(running.pk, running.fence, active_seconds=3, **OUTCOME)
    assert Card.objects.get().status == CardStatus.MERGING
    errand = Errand.objects.get(kind="merge")
    assert (errand.card_id, errand.requested_by, errand.status) == (running.card_id, None, "queued")
    assert (last_event(running).kind, last_event(running).actor) == ("MergeRequested", "Pullcord")


def test_work_that_the_policy_objects_to_is_not_merged_by_itself(running):
    Project.objects.update(auto_merge=True)
    finding = {"path": "up.sh", "rule": "C1", "reason": "Brings code", "line": 2}
    outcome = {**OUTCOME, "changes": {"files": 1, "findings": [finding]}}
    runs.finish_run(running.pk, running.fence, active_seconds=3, **outcome)
    assert Card.objects.get().status == CardStatus.REVIEW
    assert not Errand.objects.filter(kind="merge").exists()


def test_a_run_that_fails_fails_its_card_with_the_reason(running):
    runs.fail_run(
        running.pk, running.fence,
        kind=FailureKind.VERIFICATION, message="make test: exit 2", active_seconds=1,
        evidence=[{"command": "make test"}], remaining="The tests.",
    )  # fmt: skip
    running.refresh_from_db()
    card = Card.objects.get()
    assert (running.status, running.failure_kind) == ("failed", "verification")
    assert running.evidence == [{"command": "make test"}]
    assert (card.status, card.failure, card.remaining) == (
        "failed",
        "make test: exit 2",
        "The tests.",
    )
    event = last_event(running)
    assert (event.kind, event.payload["kind"]) == ("CardFailed", "verification")


def test_a_run_that_waits_gives_its_slot_back_and_is_ready_again_in_time(running):
    runs.put_aside(
        running.pk, running.fence,
        waiting_for=WaitingFor.RETRY, active_seconds=1, seconds=30, reason="Overloaded.",
    )  # fmt: skip
    running.refresh_from_db()
    assert (running.status, running.waiting_for, running.worker) == ("waiting", "retry", None)
    assert last_event(running).payload == {
        "status": "waiting", "waiting_for": "retry", "reason": "Overloaded.",
    }  # fmt: skip
    assert recovery.wake_due_runs() == 0
    Run.objects.update(not_before=Now() - timedelta(seconds=1))
    assert recovery.wake_due_runs() == 1
    running.refresh_from_db()
    assert (running.status, running.not_before) == ("ready", None)
    assert last_event(running).payload["status"] == "ready"
    assert recovery.wake_due_runs() == 0


WRITES = {
    "note_progress": lambda run, fence: runs.note_progress(run, fence, activity="x"),
    "begin_work": lambda run, fence: runs.begin_work(run, fence, branch="x"),
    "give_back": lambda run, fence: runs.give_back(run, fence, active_seconds=0),
    "put_aside": lambda run, fence: runs.put_aside(
        run, fence, waiting_for=WaitingFor.PAUSE, active_seconds=0
    ),
    "finish_run": lambda run, fence: runs.finish_run(run, fence, active_seconds=0, **OUTCOME),
    "fail_run": lambda run, fence: runs.fail_run(
        run, fence, kind=FailureKind.LOOP, message="x", active_seconds=0
    ),
    "end_cancelled": lambda run, fence: runs.end_cancelled(run, fence, active_seconds=0),
    "append_log": lambda run, fence: append_log(run, [("text", {"text": "x"})], fence=fence),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_worker_whose_lease_was_taken_writes_nothing_by(running, worker, write):
    expire(running)
    assert recovery.reap_runs() == 1
    before: dict[str, Any] = dict(Run.objects.values().get())
    events = Event.objects.count()
    with pytest.raises(LeaseLostError):
        WRITES[write](running.pk, running.fence)
    taken = claim(worker, agent="agent-2")
    assert taken.fence == running.fence + 2
    with pytest.raises(LeaseLostError):
        WRITES[write](running.pk, running.fence)
    after: dict[str, Any] = dict(Run.objects.values().get())
    same = ("branch", "activity", "log_seq", "summary", "failure", "ended_at")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert Event.objects.count() == events + 1  # the new claim's
    assert not LogItem.objects.exists()


def heart(worker_id, *runs):
    return beat(worker_id, runs=runs, errands=[], busy=1, lag_ms=3)


def test_a_heartbeat_keeps_a_run_and_tells_what_is_held_and_cancelled(running, worker, alice):
    expire(running)
    assert heart(worker.pk, running.pk, 99).held_runs == {running.pk}
    assert recovery.reap_runs() == 0
    assert heart(uuid4(), running.pk).held_runs == frozenset()
    assert cancelled_among([running.pk, 99]) == []
    cancel_card(running.card, by=alice)
    assert cancelled_among([running.pk, 99]) == [running.pk]
    worker.refresh_from_db()
    assert (worker.busy, worker.lag_ms) == (1, 3)


def test_a_run_that_its_worker_does_not_work_on_is_left_to_its_lease(running, worker):
    expire(running)
    assert heart(worker.pk).held_runs == frozenset()
    assert recovery.reap_runs() == 1


def test_a_lost_run_is_ready_for_others_and_says_so(running):
    expire(running)
    assert recovery.reap_runs() == 1
    assert recovery.reap_runs() == 0
    running.refresh_from_db()
    assert (running.status, running.losses, running.worker) == ("ready", 1, None)
    assert last_event(running).payload["status"] == "ready"
    assert Card.objects.get().status == CardStatus.RUNNING


def test_a_run_that_is_lost_again_and_again_fails(running, worker):
    for _ in range(recovery.MAX_LOSSES):
        expire(running)
        recovery.reap_runs()
        claim_next(worker.pk, agent="agent-1", with_credential=True)
    expire(running)
    assert recovery.reap_runs() == 1
    running.refresh_from_db()
    assert (running.status, running.failure_kind) == ("failed", "infrastructure")
    assert "lost 6 times" in Card.objects.get().failure


def test_a_run_at_work_is_told_to_stop_and_then_its_card_is_cancelled(running, bob):
    cancel_card(running.card, by=bob)
    running.refresh_from_db()
    assert (running.status, running.cancelled_by) == ("running", bob)
    assert Card.objects.get().status == CardStatus.RUNNING
    assert last_event(running).payload["status"] == "cancelling"
    with pytest.raises(TransitionError, match="cancelled"):
        runs.finish_run(running.pk, running.fence, active_seconds=0, **OUTCOME)
    runs.end_cancelled(running.pk, running.fence, active_seconds=1)
    running.refresh_from_db()
    assert (running.status, Card.objects.get().status) == ("cancelled", "cancelled")
    assert (last_event(running).kind, last_event(running).actor) == ("CardCancelled", "Bob")


def test_a_failure_after_the_wish_to_cancel_cancels_the_card(running, bob):
    cancel_card(running.card, by=bob)
    runs.fail_run(running.pk, running.fence, kind=FailureKind.LOOP, message="x", active_seconds=0)
    assert Card.objects.get().status == CardStatus.CANCELLED


def test_a_dead_worker_does_not_keep_a_card_from_being_cancelled(running, bob):
    cancel_card(running.card, by=bob)
    expire(running)
    assert recovery.reap_runs() == 1
    running.refresh_from_db()
    assert (running.status, Card.objects.get().status) == ("cancelled", "cancelled")


def test_a_card_whose_question_waits_is_cancelled_at_once(running, alice):
    approval = ask(running)
    cancel_card(running.card, by=alice)
    approval.refresh_from_db()
    running.refresh_from_db()
    assert (running.status, approval.status) == ("cancelled", "cancelled")
    assert Card.objects.get().status == CardStatus.CANCELLED
    assert approval.step.status == "done"
    assert Event.objects.filter(kind="ApprovalDecided").count() == 1


def test_a_run_does_not_begin_to_wait_behind_a_wish_to_cancel(running, bob):
    cancel_card(running.card, by=bob)
    with pytest.raises(TransitionError, match="cancelled"):
        ask(running)
    assert not Approval.objects.exists()
    runs.put_aside(
        running.pk, running.fence, waiting_for=WaitingFor.RETRY, seconds=3600, active_seconds=1
    )
    running.refresh_from_db()
    card = Card.objects.get()
    assert (running.status, running.worker, card.status) == ("cancelled", None, "cancelled")
    assert (last_event(running).kind, last_event(running).actor) == ("CardCancelled", "Bob")


def test_log_items_are_numbered_without_gaps(running):
    assert append_log(running.pk, [("text", {"text": "a"}), ("text", {"text": "b"})], fence=1) == 2
    assert append_log(running.pk, [("said", {"text": "\x00\ud800"})]) == 3
    items = LogItem.objects.values_list("seq", "data")
    assert list(items) == [(1, {"text": "a"}), (2, {"text": "b"}), (3, {"text": "\ufffd?"})]


@pytest.mark.django_db(transaction=True)
def test_a_run_ends_once_when_it_finishes_fails_and_is_reaped_at_the_same_moment(running):
    expire(running)
    at_once(
        lambda: runs.finish_run(running.pk, running.fence, active_seconds=0, **OUTCOME),
        lambda: runs.fail_run(
            running.pk, running.fence, kind=FailureKind.LOOP, message="x", active_seconds=0
        ),
        recovery.reap_runs,
        recovery.reap_runs,
    )
    running.refresh_from_db()
    card = Card.objects.get()
    assert (running.status, card.status) in {
        ("succeeded", "review"), ("failed", "failed"), ("ready", "running"),
    }  # fmt: skip
    endings = Event.objects.filter(kind__in=["CardReviewed", "CardFailed"]).count()
    assert endings == (running.status != RunStatus.READY)
    assert running.losses <= 1


@pytest.mark.django_db(transaction=True)
def test_a_cancel_and_an_end_at_the_same_moment_leave_one_outcome(running, alice):
    at_once(
        lambda: cancel_card(Card.objects.get(), by=alice),
        lambda: runs.finish_run(running.pk, running.fence, active_seconds=0, **OUTCOME),
    )
    running.refresh_from_db()
    card = Card.objects.get()
    assert (running.status, card.status) in {
        ("succeeded", "cancelled"),  # it was in review when it was cancelled
        ("running", "running"),  # its worker has been told
    }


@pytest.mark.django_db(transaction=True)
def test_waking_claiming_and_cancelling_at_the_same_moment_lock_nobody_out(running, worker, alice):
    runs.put_aside(
        running.pk, running.fence, waiting_for=WaitingFor.RETRY, active_seconds=0, seconds=1
    )
    Run.objects.update(not_before=Now() - timedelta(seconds=1))
    at_once(
        recovery.wake_due_runs,
        lambda: claim_next(worker.pk, agent="agent-1", with_credential=True),
        lambda: cancel_card(Card.objects.get(), by=alice),
        recovery.wake_due_runs,
    )
    running.refresh_from_db()
    card = Card.objects.get()
    told = running.status == RunStatus.RUNNING and running.cancel_requested_at is not None
    assert told or (running.status, card.status) == ("cancelled", "cancelled")


@pytest.mark.django_db(transaction=True)
def test_log_items_of_several_writers_share_one_numbering(running):
    at_once(
        *[
            lambda: [
                append_log(running.pk, [("text", {}), ("text", {})], fence=1) for _ in range(5)
            ]
            for _ in range(3)
        ]
    )
    assert list(LogItem.objects.values_list("seq", flat=True)) == list(range(1, 31))


def test_questions_of_a_run_that_fails_are_over(running, worker):
    approval = ask(running)
    Approval.objects.filter(pk=approval.pk).update(status=ApprovalStatus.PENDING)
    Run.objects.filter(pk=running.pk).update(
        status=RunStatus.RUNNING, worker=worker.pk, lease_until=Now() + timedelta(seconds=60)
    )
    runs.fail_run(running.pk, running.fence, kind=FailureKind.LOOP, message="x", active_seconds=0)
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.CANCELLED
