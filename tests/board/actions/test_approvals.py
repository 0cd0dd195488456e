"""The cord: who may answer, whose answer counts, what may be edited, and that the call runs once."""

from typing import Any

import pytest

from board.actions.approvals import Question, decide, grants_of, request_approval
from board.actions.claims import claim_next
from board.actions.journal import resume_step
from board.errors import (
    AlreadyDecidedError,
    LeaseLostError,
    NotAllowedError,
    TransitionError,
    ValidationError,
)
from board.gate import GrantedCall
from board.models import Approval, Event, Grant, LogItem, Run, Step
from board.states import ApprovalScope, Role, RunStatus
from tests.races import at_once

pytestmark = pytest.mark.django_db


def question(call="call-1", **call_input):
    return Question(
        call_id=call,
        tool="bash",
        input=call_input or {"command": "rm -rf build", "timeout": 60},
        rule="D1",
        reasons=["It deletes files."],
        digest="0" * 64,
        facts={"cwd": ".", "scripts": {"make.sh": "f" * 64}},
        effects=[{"argv": ["rm"]}],
        sandbox="bubblewrap",
    )


def claim(worker) -> Any:
    return claim_next(worker.pk, agent="agent-1", with_credential=True)


def ask(run, **options):
    return request_approval(run.pk, run.fence, question(**options), seq=None, active_seconds=2.0)


def answer(approval, by, *, role=Role.MEMBER, approve=True, **options):
    decide(approval, by=by, role=role, approve=approve, **options)


def test_a_question_puts_its_run_aside_and_holds_nothing(running):
    approval = ask(running)
    running.refresh_from_db()
    assert (running.status, running.waiting_for) == ("waiting", "approval")
    assert (running.worker, running.lease_until, running.held_since) == (None, None, None)
    assert (running.questions, running.active_seconds) == (1, 2.0)
    assert (approval.status, approval.step.status, approval.step.kind) == (
        "pending",
        "pending",
        "tool",
    )
    event = Event.objects.latest("seq")
    assert (event.kind, event.actor) == ("ApprovalRequested", "agent-1")
    assert event.payload == {"approval_id": approval.pk, "what": "rm -rf build"}
    assert LogItem.objects.get().data == {"approval": approval.pk, "call": "call-1"}


def test_a_worker_without_the_lease_cannot_ask(running):
    with pytest.raises(LeaseLostError):
        request_approval(running.pk, running.fence + 1, question(), seq=None, active_seconds=0)
    assert not Approval.objects.exists()
    assert not Step.objects.exists()


def test_an_approval_makes_the_run_ready_and_its_call_runs_once(running, bob, worker):
    approval = ask(running)
    answer(approval, bob, comment=" Fine.\x00 ", op_id="op-1")
    running.refresh_from_db()
    assert (approval.status, approval.scope, approval.comment) == ("approved", "once", "Fine.")
    assert (approval.decided_by, running.status) == (bob, RunStatus.READY)
    assert approval.decided_at is not None
    event = Event.objects.latest("seq")
    assert (event.kind, event.actor, event.op_id) == ("ApprovalDecided", "Bob", "op-1")
    assert event.payload["status"] == "approved"
    taken = claim(worker)
    resume_step(running.pk, taken.fence, seq=approval.step.seq)
    with pytest.raises(TransitionError, match="no approval"):
        resume_step(running.pk, taken.fence, seq=approval.step.seq)


def test_a_denial_is_kept_with_its_reason_and_its_call_never_runs(running, bob, worker):
    approval = ask(running)
    answer(approval, bob, approve=False, scope=ApprovalScope.ALWAYS, comment="Not that folder.")
    assert (approval.status, approval.scope, approval.comment) == ("denied", "", "Not that folder.")
    taken = claim(worker)
    with pytest.raises(TransitionError):
        resume_step(running.pk, taken.fence, seq=approval.step.seq)
    assert not Grant.objects.exists()


def test_the_second_answer_is_told_who_was_first(running, alice, bob):
    approval = ask(running)
    late = Approval.objects.get(pk=approval.pk)
    answer(approval, bob)
    with pytest.raises(AlreadyDecidedError, match="Bob approved this before you") as caught:
        answer(late, alice, approve=False)
    assert caught.value.fields == {"status": "approved", "decided_by": "Bob"}
    with pytest.raises(AlreadyDecidedError):
        answer(approval, bob)
    assert Event.objects.filter(kind="ApprovalDecided").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_answers_at_the_same_moment_one_counts(running, alice, bob):
    approval = ask(running)
    people = [(alice, True), (bob, False)] * 3
    answers = at_once(
        *[
            lambda by=by, approve=approve: answer(
                Approval.objects.select_related("run").get(pk=approval.pk), by, approve=approve
            )
            for by, approve in people
        ]
    )
    winners = [person for person, outcome in zip(people, answers, strict=True) if outcome is None]
    assert len(winners) == 1
    assert sum(isinstance(outcome, AlreadyDecidedError) for outcome in answers) == 5
    approval.refresh_from_db()
    assert approval.decided_by == winners[0][0]
    assert approval.status == ("approved" if winners[0][1] else "denied")
    assert Event.objects.filter(kind="ApprovalDecided").count() == 1
    assert Run.objects.get().status == RunStatus.READY


@pytest.mark.django_db(transaction=True)
def test_an_answer_and_a_cancel_at_the_same_moment_leave_one_outcome(running, alice, bob):
    from board.actions.cancels import cancel_card
    from board.models import Card

    approval = ask(running)
    at_once(
        lambda: answer(Approval.objects.select_related("run").get(pk=approval.pk), bob),
        lambda: cancel_card(Card.objects.get(), by=alice),
    )
    approval.refresh_from_db()
    assert Run.objects.get().status == RunStatus.CANCELLED
    assert Card.objects.get().status == "cancelled"
    assert Event.objects.filter(kind="ApprovalDecided").count() == 1


def test_an_edited_input_replaces_the_call(running, bob):
    approval = ask(running)
    answer(approval, bob, edited_input={"command": "rm -rf build/tmp", "timeout": 5})
    assert approval.edited_input == {"command": "rm -rf build/tmp", "timeout": 5}
    assert approval.input == {"command": "rm -rf build", "timeout": 60}
    assert Event.objects.latest("seq").payload["edited"] is True


def test_an_edit_that_changes_nothing_is_no_edit(running, bob):
    approval = ask(running)
    answer(approval, bob, edited_input={"timeout": 60, "command": "rm -rf build"})
    assert approval.edited_input is None
    assert Event.objects.latest("seq").payload["edited"] is False


@pytest.mark.parametrize(
    "edited",
    [
        {"command": "ls"},
        {"command": "ls", "timeout": 60, "cwd": "/"},
        {"command": ["ls"], "timeout": 60},
        {"command": "ls", "timeout": "60"},
        {"command": "ls", "timeout": True},
        {"command": "  ", "timeout": 60},
        {},
    ],
    ids=["a field less", "a field more", "a list", "a text", "a truth", "nothing to run", "empty"],
)
def test_an_edit_keeps_the_shape_of_the_call_so_it_is_refused_with(running, bob, edited):
    approval = ask(running)
    with pytest.raises(ValidationError) as caught:
        answer(approval, bob, edited_input=edited)
    assert set(caught.value.fields) == {"input"}
    approval.refresh_from_db()
    assert approval.status == "pending"
    assert Run.objects.get().status == RunStatus.WAITING


def test_a_member_may_not_approve_for_ever(running, bob):
    approval = ask(running)
    with pytest.raises(NotAllowedError, match="Only a maintainer"):
        answer(approval, bob, scope=ApprovalScope.ALWAYS)
    approval.refresh_from_db()
    assert approval.status == "pending"


def test_approving_for_ever_writes_one_rule_for_exactly_this_call(running, alice, worker):
    approval = ask(running)
    answer(approval, alice, role=Role.MAINTAINER, scope=ApprovalScope.ALWAYS)
    grant = Grant.objects.get()
    scripts = {"make.sh": "f" * 64}
    assert (grant.tool, grant.input, grant.scripts) == ("bash", approval.input, scripts)
    assert (grant.granted_by, grant.approval) == (alice, approval)
    taken = claim(worker)
    Step.objects.update(status="done")
    again = request_approval(running.pk, taken.fence, question(), seq=None, active_seconds=0)
    answer(again, alice, role=Role.OWNER, scope=ApprovalScope.ALWAYS)
    assert Grant.objects.count() == 1
    assert grants_of(running.pk) == [GrantedCall("bash", approval.input, scripts)]


def test_what_is_allowed_for_a_run_is_allowed_in_this_run_only(running, bob):
    approval = ask(running)
    assert grants_of(running.pk) == []
    answer(approval, bob, scope=ApprovalScope.RUN, edited_input={"command": "ls", "timeout": 60})
    edited = {"command": "ls", "timeout": 60}
    assert grants_of(running.pk) == [GrantedCall("bash", edited, {"make.sh": "f" * 64})]
    other = Run.objects.create(
        project=running.project, card=running.card, attempt=2, status=RunStatus.FAILED
    )
    assert grants_of(other.pk) == []


def test_a_run_with_two_questions_is_ready_after_the_second_answer(running, bob):
    first = ask(running)
    second = Approval.objects.create(
        project=first.project, run=running, tool="bash", rule="D1", digest="1" * 64,
        step=Step.objects.create(run=running, seq=99, kind="tool", status="pending", fence=1),
    )  # fmt: skip
    answer(first, bob)
    assert Run.objects.get().status == RunStatus.WAITING
    answer(second, bob)
    assert Run.objects.get().status == RunStatus.READY


def test_a_call_that_changed_after_its_approval_is_asked_about_again(running, bob, worker):
    first = ask(running)
    answer(first, bob)
    taken = claim(worker)
    second = request_approval(
        running.pk, taken.fence, question(), seq=first.step.seq, active_seconds=0
    )
    assert second.step == first.step
    with pytest.raises(AlreadyDecidedError):
        answer(first, bob)
    answer(second, bob)
    again = claim(worker)
    resume_step(running.pk, again.fence, seq=first.step.seq)


def test_the_question_of_a_cancelled_run_cannot_be_answered(running, alice, bob):
    from board.actions.cancels import cancel_card

    approval = ask(running)
    cancel_card(running.card, by=alice)
    with pytest.raises(AlreadyDecidedError, match="This run was cancelled") as caught:
        answer(approval, bob)
    assert caught.value.fields["status"] == "cancelled"
    assert Run.objects.get().status == RunStatus.CANCELLED
    assert caught.value.status == 409
