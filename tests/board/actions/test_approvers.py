"""One outcome, whoever answers, however often, from wherever; and who may approve what."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from board.actions import approvals, cards, endings, looking, recovery, runs
from board.actions.approvals import Question, decide
from board.actions.claims import Claim, claim_next
from board.actions.journal import begin_step, load_steps, resume_step
from board.errors import (
    AlreadyDecidedError,
    LeaseLostError,
    NotAllowedError,
    TransitionError,
    ValidationError,
)
from board.models import (
    Approval,
    Event,
    Grant,
    LogItem,
    Membership,
    Project,
    Run,
    User,
    Worker,
)
from board.states import ApprovalScope, ApprovalStatus, Role, RunStatus, StepKind
from tests.races import at_once

pytestmark = pytest.mark.django_db

Ask = Callable[..., Approval]


@pytest.fixture
def ask(running: Run) -> Ask:
    def make(run: Run | None = None, **changes: Any) -> Approval:
        asking = run or running
        values: dict[str, Any] = {
            "call_id": "call-1",
            "tool": "bash",
            "input": {"command": "rm -r old"},
            "rule": "A3",
            "reasons": ["Deletes."],
            "digest": "0" * 64,
            "facts": {},
            "effects": [],
            "sandbox": "bubblewrap",
            **changes,
        }
        made = approvals.request_approval(
            asking.pk, asking.fence, Question(**values), seq=None, active_seconds=0
        )
        return Approval.objects.select_related("run").get(pk=made.pk)

    return make


@pytest.fixture
def carol(project: Project) -> User:
    """Another member."""
    user = User.objects.create_user(email="carol@example.org", name="Carol")
    Membership.objects.create(project=project, user=user, role=Role.MEMBER)
    return user


def claim(worker: Worker, agent: str) -> Claim:
    taken = claim_next(worker.pk, agent=agent, with_credential=True)
    assert taken is not None
    return taken


def fresh(approval: Approval) -> Approval:
    """The question as another page or process has loaded it."""
    return Approval.objects.select_related("run").get(pk=approval.pk)


def answer(approval: Approval, by: User, *, approve: bool = True, **more: Any) -> None:
    decide(approval, by=by, role=more.pop("role", Role.MEMBER), approve=approve, **more)


def outcomes() -> list[str]:
    return [
        event.payload["status"]
        for event in Event.objects.filter(kind="ApprovalDecided").order_by("seq")
    ]


# One outcome, everybody told.


@pytest.mark.django_db(transaction=True)
def test_a_double_click_is_one_answer_and_the_second_is_told_that_it_was_theirs(ask, bob):
    approval = ask()
    said = at_once(*[lambda: answer(fresh(approval), bob)] * 2)
    (refusal,) = [each for each in said if each is not None]
    assert isinstance(refusal, AlreadyDecidedError)
    assert refusal.message == "You approved this already."
    assert outcomes() == ["approved"]
    assert LogItem.objects.filter(kind="answer").count() == 1
    assert Run.objects.get().status == RunStatus.READY


@pytest.mark.django_db(transaction=True)
def test_phone_and_desk_at_once_are_one_answer(ask, bob):
    approval = ask()
    said = at_once(
        lambda: answer(fresh(approval), bob),
        lambda: answer(fresh(approval), bob, approve=False),
    )
    (refusal,) = [each for each in said if each is not None]
    status = fresh(approval).status
    assert refusal.message == f"You {status} this already."
    assert outcomes() == [status]


@pytest.mark.django_db(transaction=True)
def test_two_people_who_do_different_things_at_once_are_one_outcome(ask, alice, bob, carol):
    approval = ask()
    said = at_once(
        lambda: answer(fresh(approval), alice, scope=ApprovalScope.RUN),
        lambda: answer(fresh(approval), bob, approve=False),
        lambda: endings.ask_agent(fresh(approval), by=carol, question="Why?"),
        endings.expire_questions,
    )
    refusals = [each for each in said if isinstance(each, AlreadyDecidedError)]
    assert len(refusals) == 2
    row = fresh(approval)
    assert outcomes() == [row.status]
    assert all(str(row.decided_by) in refusal.message for refusal in refusals)
    assert Run.objects.get().status == RunStatus.READY
    assert Event.objects.filter(kind="RunChanged", payload__status="ready").count() == 1


def test_a_stale_tab_with_a_question_that_was_asked_anew_is_told(ask, bob, worker):
    first = ask()
    stale = fresh(first)
    answer(first, bob)
    taken = claim(worker, "agent-1")
    question = Question("call-1", "bash", {"command": "rm -r old"}, "A3", [], "1" * 64, {}, [], "")
    again = approvals.request_approval(
        taken.run_id, taken.fence, question, seq=first.step.seq, active_seconds=0
    )
    with pytest.raises(AlreadyDecidedError, match="You approved this already"):
        answer(stale, bob)
    assert fresh(again).status == ApprovalStatus.PENDING
    assert Run.objects.get().status == RunStatus.WAITING


def test_an_answer_to_another_digest_than_was_shown_is_refused(ask, bob):
    approval = ask()
    with pytest.raises(TransitionError, match="changed since you saw it"):
        answer(approval, bob, digest="f" * 64)
    answer(approval, bob, digest="0" * 64)
    assert outcomes() == ["approved"]


def test_an_answer_after_the_end_of_the_run_is_told_why(ask, alice, bob):
    from board.actions.cancels import cancel_card

    approval = ask()
    cancel_card(approval.run.card, by=alice)
    for late in (
        lambda: answer(fresh(approval), bob),
        lambda: answer(fresh(approval), bob, approve=False),
        lambda: endings.ask_agent(fresh(approval), by=bob, question="Why?"),
    ):
        with pytest.raises(AlreadyDecidedError, match="This run was cancelled"):
            late()
    assert outcomes() == ["cancelled"]


def test_an_approval_survives_the_loss_of_the_lease_and_is_carried_out_once(
    ask, running, bob, worker
):
    approval = ask()
    answer(approval, bob)
    lost = claim(worker, "agent-1")
    Run.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert recovery.reap_runs() == 1
    with pytest.raises(LeaseLostError):  # the worker that is gone comes back
        resume_step(running.pk, lost.fence, seq=approval.step.seq)
    taken = claim(worker, "agent-2")
    resume_step(running.pk, taken.fence, seq=approval.step.seq)
    with pytest.raises(TransitionError):
        resume_step(running.pk, taken.fence, seq=approval.step.seq)
    with pytest.raises(AlreadyDecidedError):
        answer(fresh(approval), bob, approve=False)


# Two people for what is critical.


@pytest.fixture
def of_two(project: Project) -> Project:
    Project.objects.update(second_approver=True)
    project.refresh_from_db()
    return project


def test_a_critical_call_takes_two_people(of_two, ask, bob, carol, worker):
    approval = ask(critical=True)
    answer(approval, bob, comment="Fine.")
    assert (approval.status, approval.first_by) == (ApprovalStatus.PENDING, bob)
    assert Run.objects.get().status == RunStatus.WAITING
    assert outcomes() == []
    assert Event.objects.filter(kind="FirstApprovalGiven", user=bob).count() == 1
    with pytest.raises(NotAllowedError, match="a second person must"):
        answer(fresh(approval), bob)
    answer(fresh(approval), carol)
    row = fresh(approval)
    assert (row.status, row.decided_by, row.first_by) == (ApprovalStatus.APPROVED, carol, bob)
    assert row.comment == "Fine."
    assert Run.objects.get().status == RunStatus.READY
    _, told = load_steps(row.run_id)[-1]
    assert told is not None
    assert told.first_by == bob


def test_the_second_person_approves_what_the_first_did(of_two, ask, bob, carol):
    approval = ask(critical=True)
    answer(approval, bob, edited_input={"command": "rm -r old/tmp"})
    for other in ({"command": "rm -r old"}, {"command": "rm -r new"}):
        with pytest.raises(ValidationError, match="Bob approved this as it stands"):
            answer(fresh(approval), carol, edited_input=other)
    answer(fresh(approval), carol, digest=fresh(approval).seen)
    assert fresh(approval).edited_input == {"command": "rm -r old/tmp"}


def test_a_page_from_before_the_first_ones_edit_approves_nothing(of_two, ask, bob, carol):
    approval = ask(critical=True)
    seen_by_carol = fresh(approval).seen
    answer(approval, bob, edited_input={"command": "rm -r old/tmp"})
    for digest in (seen_by_carol, ""):  # a stale tab, and a script that names nothing
        with pytest.raises(TransitionError, match="Look"):
            answer(fresh(approval), carol, digest=digest)
    assert fresh(approval).status == ApprovalStatus.PENDING
    answer(fresh(approval), carol, edited_input={"command": "rm -r old/tmp"})
    assert fresh(approval).edited_input == {"command": "rm -r old/tmp"}


@pytest.mark.parametrize("way", ["removed", "viewer", "inactive"])
@pytest.mark.usefixtures("of_two")
def test_the_first_approval_of_who_may_answer_no_more_counts_no_more(ask, bob, carol, alice, way):
    approval = ask(critical=True)
    answer(approval, bob)
    lose(bob, way)
    answer(fresh(approval), carol)
    row = fresh(approval)
    assert (row.status, row.first_by) == (ApprovalStatus.PENDING, carol)
    answer(fresh(approval), alice)
    assert fresh(approval).status == ApprovalStatus.APPROVED


@pytest.mark.parametrize("way", ["removed", "viewer", "inactive"])
def test_a_role_that_was_lost_while_the_answer_was_on_its_way_answers_nothing(ask, bob, way):
    approval = ask()
    lose(bob, way)  # the page had looked before
    for approve in (True, False):
        with pytest.raises(NotAllowedError):
            answer(fresh(approval), bob, approve=approve)
    with pytest.raises(NotAllowedError):
        endings.ask_agent(fresh(approval), by=bob, question="Why?")
    assert fresh(approval).status == ApprovalStatus.PENDING


def test_always_takes_the_role_of_the_moment(ask, bob):
    with pytest.raises(NotAllowedError, match="for ever"):
        answer(ask(), bob, role=Role.MAINTAINER, scope=ApprovalScope.ALWAYS)
    assert not Grant.objects.exists()


def lose(user: User, way: str) -> None:
    if way == "inactive":
        User.objects.filter(pk=user.pk).update(is_active=False)
    elif way == "viewer":
        Membership.objects.filter(user=user).update(role=Role.VIEWER)
    else:
        Membership.objects.filter(user=user).delete()


def test_who_changed_what_a_card_says_wrote_it_too(project, ask, bob, carol):
    Project.objects.filter(pk=project.pk).update(not_own_card=True)
    approval = ask()
    cards.edit_card(approval.run.card, by=bob, goal="And delete it all.")
    with pytest.raises(NotAllowedError, match="wrote or queued"):
        answer(fresh(approval), bob)
    answer(fresh(approval), carol)


@pytest.mark.parametrize("act", ["approve", "deny", "ask"])
def test_an_answer_after_the_time_is_over_is_none_also_before_anybody_has_looked(ask, bob, act):
    approval = ask()
    Approval.objects.update(expires_at=Now() - timedelta(seconds=1))
    acts: dict[str, Callable[[], None]] = {
        "ask": lambda: endings.ask_agent(fresh(approval), by=bob, question="Why?"),
        "approve": lambda: answer(fresh(approval), bob),
        "deny": lambda: answer(fresh(approval), bob, approve=False),
    }
    with pytest.raises(AlreadyDecidedError, match="expired"):
        acts[act]()
    row = fresh(approval)
    assert (row.status, row.decided_by) == (ApprovalStatus.EXPIRED, None)
    assert Run.objects.get().status == RunStatus.READY
    assert endings.expire_questions() == 0


@pytest.mark.parametrize("who", ["bob", "carol"])
def test_one_person_is_enough_to_deny(of_two, ask, bob, carol, who):
    approval = ask(critical=True)
    answer(approval, bob)
    answer(fresh(approval), {"bob": bob, "carol": carol}[who], approve=False, comment="No.")
    assert fresh(approval).status == ApprovalStatus.DENIED
    assert fresh(approval).edited_input is None


def test_what_is_not_critical_takes_one_person(of_two, ask, bob):
    approval = ask()
    answer(approval, bob)
    assert fresh(approval).status == ApprovalStatus.APPROVED


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_are_the_first_and_the_second(of_two, ask, bob, carol):
    approval = ask(critical=True)
    said = at_once(
        *[lambda who=who: answer(fresh(approval), who) for who in (bob, carol, bob, carol)]
    )
    row = fresh(approval)
    assert {row.first_by, row.decided_by} == {bob, carol}
    assert outcomes() == ["approved"]
    assert sum(each is None for each in said) == 2
    assert Event.objects.filter(kind="FirstApprovalGiven").count() == 1


@pytest.mark.parametrize("scope", [ApprovalScope.RUN, ApprovalScope.ALWAYS])
def test_nothing_of_a_critical_call_is_remembered(ask, alice, scope):
    approval = ask(critical=True)
    with pytest.raises(NotAllowedError, match="nothing of it is remembered"):
        answer(approval, alice, role=Role.OWNER, scope=scope)
    answer(approval, alice, role=Role.OWNER)
    assert not Grant.objects.exists()


# Not your own card.


def test_who_wrote_or_queued_a_card_may_not_approve_where_the_project_says_so(
    project, ask, alice, bob, carol
):
    Project.objects.update(not_own_card=True)
    approval = ask()  # Alice wrote the card and queued it
    with pytest.raises(NotAllowedError, match="another person to approve"):
        answer(approval, alice, role=Role.OWNER)
    Event.objects.filter(kind="CardQueued").update(user=bob)
    with pytest.raises(NotAllowedError, match="another person to approve"):
        answer(fresh(approval), bob)
    answer(fresh(approval), carol)
    assert fresh(approval).decided_by == carol


def test_who_wrote_a_card_may_always_deny_its_calls(project, ask, alice):
    Project.objects.update(not_own_card=True)
    approval = ask()
    answer(approval, alice, approve=False)
    assert fresh(approval).status == ApprovalStatus.DENIED


# Asking the agent.


def test_a_question_to_the_agent_lets_the_run_go_on_without_the_call(ask, running, bob, worker):
    approval = ask()
    endings.ask_agent(approval, by=bob, question=" Why that folder?\x00 ")
    row = fresh(approval)
    assert (row.status, row.comment, row.decided_by) == (
        ApprovalStatus.RETURNED,
        "Why that folder?",
        bob,
    )
    assert Run.objects.get().status == RunStatus.READY
    assert Event.objects.latest("seq").payload["status"] == "returned"
    taken = claim(worker, "agent-1")
    with pytest.raises(TransitionError):  # it is not carried out
        resume_step(running.pk, taken.fence, seq=approval.step.seq)


@pytest.mark.parametrize("nothing", ["", "  ", "\x00"])
def test_a_question_to_the_agent_needs_words(ask, bob, nothing):
    approval = ask()
    with pytest.raises(ValidationError) as caught:
        endings.ask_agent(approval, by=bob, question=nothing)
    assert set(caught.value.fields) == {"comment"}
    assert fresh(approval).status == ApprovalStatus.PENDING


# Expiry.


def test_a_question_waits_for_ever_unless_the_project_says_otherwise(ask):
    approval = ask()
    assert approval.expires_at is None
    assert endings.expire_questions() == 0


def test_an_expired_question_ends_as_expired_and_by_nobody(project, ask, bob):
    Project.objects.update(expiry_minutes=30)
    approval = ask()
    wait = approval.expires_at - approval.created_at
    assert abs(wait - timedelta(minutes=30)) < timedelta(minutes=1)
    assert endings.expire_questions() == 0
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert endings.expire_questions() == 1
    row = fresh(approval)
    assert (row.status, row.decided_by) == (ApprovalStatus.EXPIRED, None)
    assert Run.objects.get().status == RunStatus.READY
    event = Event.objects.filter(kind="ApprovalDecided").get()
    assert (event.actor, event.user, event.payload["status"]) == ("Pullcord", None, "expired")
    with pytest.raises(AlreadyDecidedError, match="This question expired"):
        answer(fresh(approval), bob)
    assert endings.expire_questions() == 0


# Who is looking.


def test_the_first_who_looks_is_shown_and_the_second_does_not_take_over(ask, bob, carol):
    approval = ask()
    looking.look_at(approval, by=bob)
    looking.look_at(approval, by=carol)
    looking.look_at(approval, by=bob)
    assert fresh(approval).looked_by == bob
    assert Event.objects.filter(kind="ApprovalLookedAt").count() == 1


def test_a_look_is_over_after_two_minutes_of_silence(ask, bob, carol):
    approval = ask()
    looking.look_at(approval, by=bob)
    until = fresh(approval).looked_until
    assert until is not None
    assert timedelta(seconds=110) < until - timezone.now() <= timedelta(seconds=121)
    Approval.objects.update(looked_until=timezone.now() - timedelta(seconds=1))
    looking.look_at(approval, by=carol)
    assert fresh(approval).looked_by == carol
    assert Event.objects.filter(kind="ApprovalLookedAt").count() == 2


def test_looking_stops_nobody_from_answering_and_ends_with_the_answer(ask, bob, carol):
    approval = ask()
    looking.look_at(approval, by=bob)
    answer(fresh(approval), carol)
    looking.look_at(fresh(approval), by=bob)
    assert Event.objects.filter(kind="ApprovalLookedAt").count() == 1


# A denial reaches the decision about the work.


@pytest.mark.parametrize("status", ["approved", "denied", "expired"])
def test_work_with_a_call_that_was_not_approved_is_not_merged_by_itself(ask, bob, worker, status):
    Project.objects.update(auto_merge=True)
    approval = ask()
    running = approval.run
    if status == "expired":
        Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        endings.expire_questions()
    else:
        answer(approval, bob, approve=status == "approved")
    taken = claim(worker, "agent-1")
    begin_step(running.pk, taken.fence, kind=StepKind.NOTE, request={})
    runs.finish_run(
        running.pk, taken.fence, head_sha="1" * 40, summary="Done.", evidence=[], changes={},
        active_seconds=0,
    )  # fmt: skip
    running.card.refresh_from_db()
    assert running.card.status == ("merging" if status == "approved" else "review")
