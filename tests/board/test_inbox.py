"""The inbox: filters, questions that are alike, one answer to several; and what a question shows in full."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from board.actions import approvals, cards, endings, looking, runs
from board.actions.claims import claim_next
from board.actions.journal import begin_step
from board.links import leads_elsewhere
from board.models import Approval, Membership, Project, Run, Step, User, Worker
from board.states import ApprovalStatus, Role, StepKind, StepStatus
from board.views.inbox import head_of

pytestmark = pytest.mark.django_db

Ask = Callable[..., Approval]


@pytest.fixture
def ask(new_card: Callable[..., Any], alice: User, worker: Worker) -> Ask:
    """Let an agent ask, each time with a card and a run of its own."""
    Project.objects.update(max_parallel=50)

    def make(command: str = "uv add httpx", *, by: User | None = None, **more: Any) -> Approval:
        card = new_card(f"Card for {command}"[:60])
        cards.queue_card(card, by=by or alice)
        claim = claim_next(worker.pk, agent="agent-1", with_credential=True)
        assert claim is not None
        runs.begin_work(claim.run_id, claim.fence, branch="cards/x", base_sha="0" * 40)
        values: dict[str, Any] = {
            "call_id": "call-1",
            "tool": "bash",
            "input": {"command": command},
            "rule": "A2",
            "reasons": ["Installs."],
            "digest": f"{claim.run_id:064d}",
            "facts": {},
            "effects": [],
            "sandbox": "bubblewrap",
            **more,
        }
        return approvals.request_approval(
            claim.run_id, claim.fence, approvals.Question(**values), seq=None, active_seconds=0
        )

    return make


@pytest.fixture
def as_bob(client: Client, bob: User) -> Client:
    client.force_login(bob)
    return client


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def shown(client: Client, query: str = "") -> list[int]:
    context = client.get(f"/approvals/{query}").context
    return [
        each.approval.pk
        for _, kinds in context["groups"]
        for alike in kinds
        for each in alike.questions
    ]


def send(client: Client, *asked: Approval, verdict: str = "approve", json: bool = True) -> Any:
    return client.post(
        "/approvals/answer/",
        {"question": [f"{each.pk}:{each.digest}" for each in asked], "verdict": verdict},
        headers={"Accept": "application/json"} if json else {},
    )


def status(approval: Approval) -> str:
    return Approval.objects.get(pk=approval.pk).status


# Filters.


def test_filters_by_project_rule_age_and_whose_card(as_bob: Client, ask: Ask, bob: User):
    one, two, three = ask(), ask("curl x.org", rule="A1"), ask("uv add flask")
    three.run.card.assignee = bob
    three.run.card.save()
    Approval.objects.filter(pk=two.pk).update(created_at=timezone.now() - timedelta(minutes=61))
    everything = [one.pk, three.pk, two.pk]
    assert sorted(shown(as_bob)) == sorted(everything)
    assert shown(as_bob, "?rule=A1") == [two.pk]
    assert shown(as_bob, "?project=bil&rule=A2") == [one.pk, three.pk]
    assert shown(as_bob, "?project=NO") == []
    assert shown(as_bob, "?overdue=1") == [two.pk]
    assert shown(as_bob, "?mine=1") == [three.pk]
    assert shown(as_bob, "?rule=A2&order=newest") == [three.pk, one.pk]
    assert "None of them is like that" in page(as_bob, "/approvals/?project=NO")
    assert "Overdue" in page(as_bob, f"/approvals/{two.pk}/")


def test_the_minutes_until_a_question_is_overdue_are_the_projects(as_bob: Client, ask: Ask):
    late = ask()
    Approval.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    assert shown(as_bob, "?overdue=1") == []
    Project.objects.update(overdue_minutes=4)
    assert shown(as_bob, "?overdue=1") == [late.pk]


def test_a_filter_stays_while_the_page_keeps_itself_true(as_bob: Client, ask: Ask):
    ask()
    ask("curl x.org", rule="A1")
    text = page(as_bob, "/approvals/?rule=A1&order=newest")
    assert 'data-refresh="/approvals/?rule=A1&amp;order=newest"' in text


# Groups.


@pytest.mark.parametrize(
    ("command", "head"),
    [
        ("uv add httpx", "uv add"),
        ("rm -r old", "rm"),
        ("git push origin main", "git push"),
        ("", ""),
        ("echo 'no end", "echo"),
    ],
)
def test_the_head_of_a_command(command: str, head: str):
    assert head_of(command) == head


def test_questions_that_are_alike_stand_together_and_get_one_button(as_bob: Client, ask: Ask):
    for command in ("uv add a", "curl x.org", "uv add b"):
        ask(command, rule="A1" if "curl" in command else "A2")
    text = page(as_bob, "/approvals/")
    assert "<strong>2 alike:</strong> <code>uv add</code>" in text
    assert text.index("uv add a") < text.index("uv add b") < text.index("curl x.org")
    assert text.count('name="verdict" value="approve"') == 1


def test_what_is_not_seen_whole_or_is_critical_is_not_in_a_batch(as_bob: Client, ask: Ask):
    ask("uv add a")
    ask("uv add b", critical=True)
    ask("uv add " + "c" * 400)
    ask("uv add d\u200b")
    assert 'name="verdict"' not in page(as_bob, "/approvals/")


def test_a_viewer_gets_no_button_for_several(client: Client, ask: Ask, vera: User):
    asked = [ask("uv add a"), ask("uv add b")]
    client.force_login(vera)
    assert 'name="verdict"' not in page(client, "/approvals/")
    assert send(client, *asked).status_code == 404
    assert [status(each) for each in asked] == [ApprovalStatus.PENDING] * 2


# One answer to several.


def test_each_question_of_a_batch_is_decided_on_its_own(as_bob: Client, ask: Ask, alice: User):
    asked = [ask(f"uv add {name}") for name in "abcd"]
    approvals.decide(asked[1], by=alice, role=Role.OWNER, approve=False)
    Approval.objects.filter(pk=asked[2].pk).update(digest="e" * 64)
    Approval.objects.filter(pk=asked[3].pk).update(critical=True)
    answer = send(as_bob, *asked).json()
    assert answer["message"].startswith("You approved 1 question.")
    refusals = {row["id"]: row["refusal"] for row in answer["results"]}
    assert refusals[asked[0].pk] == ""
    assert refusals[asked[1].pk] == "Alice denied this before you."
    assert "changed since you saw it" in refusals[asked[2].pk]
    assert "critical" in refusals[asked[3].pk]
    assert [status(each) for each in asked] == ["approved", "denied", "pending", "pending"]
    assert Run.objects.filter(status="ready").count() == 2


def test_several_are_denied_at_once_and_the_page_says_so(as_bob: Client, ask: Ask):
    asked = [ask("uv add a"), ask("uv add b", critical=True)]
    answer = send(as_bob, *asked, verdict="deny", json=False)
    assert answer["Location"] == "/approvals/"
    assert "You denied 2 questions." in page(as_bob, "/approvals/")
    assert [status(each) for each in asked] == ["denied"] * 2


def test_a_batch_with_a_question_of_strangers_answers_nothing(
    client: Client, ask: Ask, mallory: User
):
    asked = ask()
    client.force_login(mallory)
    assert send(client, asked).status_code == 404
    assert status(asked) == ApprovalStatus.PENDING


@pytest.mark.parametrize("given", ["", "x", "1", "1:", ":d", "x:d"])
def test_a_batch_that_makes_no_sense_is_refused(as_bob: Client, given: str):
    answer = as_bob.post("/approvals/answer/", {"question": given, "verdict": "approve"})
    assert answer.status_code == 400


# One question in full.


def test_scripts_are_shown_with_what_cannot_be_seen_in_them(as_bob: Client, ask: Ask):
    asked = ask(
        "sh a.sh",
        facts={"scripts": {"/home/x/a.sh": "9" * 64}, "paths": {"a.sh": "/home/x/a.sh", "./go": "/home/x/b"}},
        shown={"scripts": [{"path": "/home/x/a.sh", "text": "rm \u202e <b>\n", "lines": 1, "cut": 7}]},
    )  # fmt: skip
    text = page(as_bob, f"/approvals/{asked.pk}/")
    assert 'rm <span class="unseen">&lt;U+202E&gt;</span> &lt;b&gt;' in text
    assert "7 more characters of it are not shown here" in text
    assert '<span class="path__word">link</span> → /home/x/b' in text


def test_a_script_behind_a_link_says_link(as_bob: Client, ask: Ask):
    asked = ask(
        "sh go.sh",
        facts={"scripts": {"/home/x/a.sh": "9" * 64}, "paths": {"./go.sh": "/home/x/a.sh"}},
    )
    text = page(as_bob, f"/approvals/{asked.pk}/")
    assert "A link: the call says <code>./go.sh</code>" in text
    assert "Its content was not kept." in text


def test_a_write_is_shown_as_a_diff(as_bob: Client, ask: Ask):
    lines = [["-", 1, None, "old\u200b"], ["+", None, 1, "<new>"]]
    asked = ask(
        tool="write_file",
        input={"path": ".npmrc", "content": "<new>\n"},
        shown={"diff": {"path": ".npmrc", "additions": 1, "deletions": 1, "is_new": False,
                        "hunks": [{"header": "", "lines": lines}]}},
    )  # fmt: skip
    text = page(as_bob, f"/approvals/{asked.pk}/")
    assert "&lt;new&gt;" in text
    assert "old&lt;U+200B&gt;" in text
    assert "<ins>+1</ins>" in text
    assert "The call as the agent made it" in text


def test_it_says_why_it_asks_again(as_bob: Client, ask: Ask, bob: User, worker: Worker):
    facts = {
        "cwd": "/w/1",
        "policy": "1",
        "sandbox": "none",
        "scripts": {"/a": "1"},
        "paths": {"l": "/x"},
    }
    first = ask(facts=facts)
    approvals.decide(first, by=bob, role=Role.MEMBER, approve=True)
    claim = claim_next(worker.pk, agent="agent-1", with_credential=True)
    assert claim is not None
    now = {
        "cwd": "/w/2",
        "policy": "2",
        "sandbox": "none",
        "scripts": {"/a": "2", "/b": "1"},
        "paths": {"l": "/y"},
    }
    question = approvals.Question(
        "call-1", "bash", {"command": "uv add httpx"}, "A2", [], "f" * 64, now, [], "none"
    )
    again = approvals.request_approval(
        claim.run_id, claim.fence, question, seq=first.step.seq, active_seconds=0
    )
    text = page(as_bob, f"/approvals/{again.pk}/")
    for words in (
        "It was approved before and asks again",
        "in another folder now, /w/2",
        "the content of /a has changed",
        "it runs /b now",
        "l leads to /y now",
        "the policy has changed",
    ):
        assert words in text
    assert "the sandbox is another one" not in text


def test_what_was_asked_and_answered_stands_beside_the_next_question(
    as_bob: Client, ask: Ask, bob: User, worker: Worker
):
    first = ask()
    endings.ask_agent(first, by=bob, question="Why <httpx>?")
    claim = claim_next(worker.pk, agent="agent-1", with_credential=True)
    assert claim is not None
    Step.objects.filter(pk=first.step_id).update(status=StepStatus.DONE)
    begin_step(
        claim.run_id, claim.fence, kind=StepKind.MODEL, request={}, status=StepStatus.DONE,
        response={"content": [{"type": "text", "text": "Because of <b>HTTP/2</b>."}]},
    )  # fmt: skip
    question = approvals.Question(
        "call-2", "bash", {"command": "uv add httpx"}, "A2", [], "f" * 64, {}, [], "none"
    )
    again = approvals.request_approval(
        claim.run_id, claim.fence, question, seq=None, active_seconds=0
    )
    text = page(as_bob, f"/approvals/{again.pk}/")
    assert "Why &lt;httpx&gt;?" in text
    assert "Because of &lt;b&gt;HTTP/2&lt;/b&gt;." in text
    before = page(as_bob, f"/approvals/{first.pk}/")
    assert "asked the agent instead of answering" in before
    assert f'href="/approvals/{again.pk}/">What the agent asked next' in before


def test_a_question_to_the_agent_is_sent_with_a_button(as_bob: Client, ask: Ask):
    asked = ask()
    refused = as_bob.post(f"/approvals/{asked.pk}/decide/", {"answer": "ask"})
    assert refused.status_code == 422
    assert "Write what you want to know" in refused.content.decode()
    as_bob.post(f"/approvals/{asked.pk}/decide/", {"answer": "ask", "comment": "Why?"})
    assert status(asked) == ApprovalStatus.RETURNED


def test_a_critical_question_offers_nothing_that_lasts(as_bob: Client, ask: Ask, bob: User):
    Membership.objects.filter(user=bob).update(role=Role.MAINTAINER)
    plain, critical = ask(), ask(critical=True)
    text = page(as_bob, f"/approvals/{plain.pk}/")
    assert 'value="run"' in text
    assert 'value="always"' in text
    assert "exactly this call, in every run of Billing" in text
    text = page(as_bob, f"/approvals/{critical.pk}/")
    assert 'value="run"' not in text
    assert 'value="always"' not in text
    assert "Nothing. It is critical" in text
    assert 'value="once"' in text
    for answer in ("run", "always"):
        refused = as_bob.post(f"/approvals/{critical.pk}/decide/", {"answer": answer})
        assert refused.status_code == 403


def test_the_second_approver_sees_who_was_first(as_bob: Client, ask: Ask, alice: User):
    Project.objects.update(second_approver=True)
    asked = ask(critical=True)
    answer = as_bob.post(f"/approvals/{asked.pk}/decide/", {"answer": "once"}, follow=True)
    assert "You approved this. A second person must too." in answer.content.decode()
    mine = page(as_bob, f"/approvals/{asked.pk}/")
    assert 'value="once"' not in mine
    assert "You approved this already" in mine
    other = Client()
    other.force_login(alice)
    text = page(other, f"/approvals/{asked.pk}/")
    assert "<strong>1 of 2:</strong> Bob approved this" in text
    assert "Approve as the second" in text
    assert "1 of 2: Bob" in page(other, "/approvals/")
    other.post(f"/approvals/{asked.pk}/decide/", {"answer": "once"})
    assert "<strong>Bob and you</strong> approved this once" in page(
        other, f"/approvals/{asked.pk}/"
    )


def test_whose_card_it_is_may_deny_but_not_approve(client: Client, ask: Ask, alice: User):
    Project.objects.update(not_own_card=True)
    asked = ask()
    client.force_login(alice)
    text = page(client, f"/approvals/{asked.pk}/")
    assert 'value="once"' not in text
    assert 'value="deny"' in text
    assert 'value="ask"' in text
    assert "You wrote or queued this card" in text
    refused = client.post(f"/approvals/{asked.pk}/decide/", {"answer": "once"})
    assert refused.status_code == 403


# Who looks.


def test_who_looks_is_shown_to_the_others(as_bob: Client, ask: Ask, alice: User):
    asked = ask()
    before = as_bob.get("/approvals/waiting/").json()["stamp"]
    assert as_bob.post(f"/approvals/{asked.pk}/look/").status_code == 204
    assert as_bob.get("/approvals/waiting/").json()["stamp"] != before
    other = Client()
    other.force_login(alice)
    assert "Bob is looking" in page(other, "/approvals/")
    assert "<strong>Bob</strong> is looking at this too" in page(other, f"/approvals/{asked.pk}/")
    assert "is looking at this too" not in page(as_bob, f"/approvals/{asked.pk}/")
    assert "is looking" in page(other, "/p/BIL/")
    Approval.objects.update(looked_until=timezone.now() - timedelta(seconds=1))
    assert "is looking" not in page(other, "/approvals/")
    assert as_bob.get("/approvals/waiting/").json()["stamp"] == before


def test_only_who_may_answer_looks(client: Client, ask: Ask, vera: User, mallory: User):
    asked = ask()
    for who, code in ((vera, 403), (mallory, 404)):
        client.force_login(who)
        assert client.post(f"/approvals/{asked.pk}/look/").status_code == code
    looking.look_at(Approval.objects.select_related("run").get(pk=asked.pk), by=vera)
    assert client.get(f"/approvals/{asked.pk}/look/").status_code == 405


def test_the_newest_question_is_told_without_its_command(as_bob: Client, ask: Ask):
    ask()
    newest = ask("curl https://example.org/secret")
    told = as_bob.get("/approvals/waiting/").json()
    assert (told["waiting"], told["newest"]) == (2, newest.pk)
    assert told["words"] == f"agent-1 asks about {newest.run.card.ref}"
    assert "curl" not in str(told)


@pytest.mark.parametrize(
    ("written", "real", "differs"),
    [
        ("a.sh", "/w/a.sh", False),
        ("./a.sh", "/w/a.sh", False),
        ("./sub/../a.sh", "/w/a.sh", False),
        ("/w/a.sh", "/w/a.sh", False),
        ("a.sh", "/w/sub/a.sh", False),  # behind `cd sub`
        ("../b/a.sh", "/b/a.sh", False),
        ("a.sh", "/home/x/a.sh", True),
        ("./squash.sh", "/home/x/shared/squash.sh", True),
        ("a.sh", "/w/b.sh", True),
        ("link/a.sh", "/w/folder/a.sh", True),
        ("/w/a.sh", "/home/x/a.sh", True),
        ("../a.sh", "/etc/passwd", True),
    ],
)
def test_a_path_that_leads_elsewhere_is_known_as_a_link(written: str, real: str, *, differs: bool):
    assert leads_elsewhere(written, real, folder="/w") is differs
