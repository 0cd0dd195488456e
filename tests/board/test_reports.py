"""The numbers of a project, on the page and in the API; questions on the run page; denials at the review."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from board.actions import accounts, approvals, endings
from board.actions.claims import claim_next
from board.models import Approval, Project, Run, Step, User, Worker
from board.reports import report
from board.states import CardStatus, Role

pytestmark = pytest.mark.django_db

Ask = Callable[..., Approval]


@pytest.fixture
def ask(running: Run, worker: Worker) -> Ask:
    """Let the run ask, one question after another: each that is answered lets it go on."""

    def make(rule: str = "A2", *, seconds: int = 0, **more: Any) -> Approval:
        run = Run.objects.get()
        if run.status == "ready":
            assert claim_next(worker.pk, agent="agent-1", with_credential=True) is not None
            run.refresh_from_db()
        Step.objects.update(status="done")
        question = approvals.Question(
            "call", "bash", {"command": "uv add x"}, rule, ["Installs."], "d" * 64, {}, [], "none", **more
        )  # fmt: skip
        made = approvals.request_approval(run.pk, run.fence, question, seq=None, active_seconds=0)
        began = timezone.now() - timedelta(seconds=seconds)
        Approval.objects.filter(pk=made.pk).update(created_at=began)
        return Approval.objects.select_related("run").get(pk=made.pk)

    return make


def answer(approval: Approval, by: User, *, approve: bool = True, **more: Any) -> None:
    approvals.decide(approval, by=by, role=Role.MEMBER, approve=approve, **more)


def test_questions_are_counted_with_who_answered_and_how_fast(
    project: Project, ask: Ask, alice: User, bob: User
):
    answer(ask(seconds=60), bob)
    answer(ask(seconds=120), bob, approve=False)
    endings.ask_agent(ask("A1", seconds=300), by=alice, question="Why?")
    ask("A1")
    found = report(project, days=14)
    assert (found.runs, found.questions, found.questions_per_run) == (1, 4, 4.0)
    assert (found.open, found.approved, found.denied, found.asked_back) == (1, 1, 1, 1)
    assert found.median_seconds == pytest.approx(120, abs=5)
    by_name = {row.name: row for row in found.people}
    assert (by_name["Bob"].approved, by_name["Bob"].denied) == (1, 1)
    assert by_name["Bob"].median_seconds == pytest.approx(90, abs=5)
    assert by_name["Alice"].asked_back == 1
    assert [(row.rule, row.questions) for row in found.rules] == [("A1", 2), ("A2", 2)]
    assert found.busiest[0].questions == 4


def test_both_people_who_approved_a_critical_call_are_counted(
    project: Project, ask: Ask, alice: User, bob: User
):
    Project.objects.update(second_approver=True)
    asked = ask(critical=True)
    answer(asked, bob)
    answer(asked, alice)
    found = report(project, days=14)
    assert {row.name: row.approved for row in found.people} == {"Alice": 1, "Bob": 1}
    assert found.approved == 1


def test_an_expired_question_is_nobodys_answer(project: Project, ask: Ask):
    asked = ask()
    Approval.objects.filter(pk=asked.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    endings.expire_questions()
    found = report(project, days=14)
    assert (found.expired, found.denied, found.people) == (1, 0, [])


def test_what_is_older_does_not_count(project: Project, ask: Ask):
    ask()
    Approval.objects.update(created_at=timezone.now() - timedelta(days=8))
    Run.objects.update(created_at=timezone.now() - timedelta(days=8))
    assert report(project, days=7).questions == 0
    assert report(project, days=14).questions == 1


def test_the_page_shows_the_numbers_and_takes_the_number_of_queries_of_an_empty_one(
    client: Client, ask: Ask, bob: User, django_assert_max_num_queries: Any
):
    client.force_login(bob)
    assert "Nobody was asked" in client.get("/p/BIL/reports/").content.decode()
    answer(ask(seconds=60), bob)
    answer(ask(seconds=60), bob, approve=False)
    with django_assert_max_num_queries(20):
        page = client.get("/p/BIL/reports/?days=7").content.decode()
    for words in ("The last 7 days", "2.0 a run", "Bob", "1 min", "Runs that asked most", "BIL-1"):
        assert words in page, words
    assert "The last 14 days" in client.get("/p/BIL/reports/?days=13").content.decode()


def test_the_api_gives_the_same_numbers(client: Client, ask: Ask, bob: User):
    answer(ask(seconds=60), bob)
    token = accounts.create_token(bob, name="t")
    headers = {"Authorization": f"Bearer {token}"}
    found = client.get("/api/v1/projects/BIL/reports?days=7", headers=headers).json()
    assert (found["questions"], found["questions_per_run"], found["cost"]) == (1, 1.0, "0.000000")
    assert found["people"][0]["name"] == "Bob"
    assert client.get("/api/v1/projects/BIL/reports?days=0", headers=headers).status_code == 422
    run = Run.objects.get()
    assert client.get(f"/api/v1/runs/{run.pk}", headers=headers).json()["questions"] == 1


def test_the_run_page_says_how_often_it_asked(client: Client, ask: Ask, bob: User):
    answer(ask(), bob)
    ask()
    client.force_login(bob)
    page = client.get("/cards/BIL-1/run/").content.decode()
    run = Run.objects.get()
    assert f'href="/approvals/answered/?run={run.pk}">2 questions</a>' in page
    found = client.get(f"/approvals/answered/?run={run.pk}").context["answered"]
    assert [each.approval.run_id for each in found] == [run.pk]
    assert client.get("/approvals/answered/?run=999").context["answered"] == []


def test_the_review_lists_the_calls_that_nobody_approved(client: Client, ask: Ask, bob: User):
    answer(ask(), bob)
    answer(ask(), bob, approve=False, comment="Not this <package>.")
    late = ask()
    Approval.objects.filter(pk=late.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    endings.expire_questions()
    run = Run.objects.select_related("card").get()
    run.card.status = CardStatus.REVIEW
    run.card.save()
    client.force_login(bob)
    page = client.get("/cards/BIL-1/changes/").content.decode()
    assert "2 calls" in page
    assert "Bob denied it. “Not this &lt;package&gt;.”" in page
    assert "Nobody answered in time." in page
