"""The inbox and one question in full: what a person sees before answering, and what an answer does."""

import json
from collections.abc import Callable

import pytest
from django.test import Client

from board.actions import approvals
from board.models import Approval, Grant, Membership, Project, Run, User
from board.states import ApprovalScope, ApprovalStatus, Role, RunStatus

pytestmark = pytest.mark.django_db

Ask = Callable[..., Approval]


@pytest.fixture
def ask(running: Run) -> Ask:
    """Let the running agent ask; one run asks one question at a time."""

    def make(
        command: str = "git push --force origin main",
        *,
        tool: str = "bash",
        call: dict[str, object] | None = None,
        facts: dict[str, object] | None = None,
        effects: tuple[dict[str, object], ...] = (),
    ) -> Approval:
        question = approvals.Question(
            call_id="call-1",
            tool=tool,
            input={"command": command} if call is None else call,
            rule="A9",
            reasons=["Rewrites shared history.", "Talks to the network."],
            digest="d" * 64,
            facts=facts or {},
            effects=effects,
            sandbox="bubblewrap",
        )
        return approvals.request_approval(
            running.pk, running.fence, question, seq=None, active_seconds=0
        )

    return make


@pytest.fixture
def as_bob(client: Client, bob: User) -> Client:
    client.force_login(bob)
    return client


def decide(client: Client, approval: Approval, **values: str):
    return client.post(f"/approvals/{approval.pk}/decide/", values)


def test_the_inbox_shows_questions_of_the_persons_projects_only(
    as_bob: Client, ask: Ask, mallory: User
):
    ask()
    page = as_bob.get("/approvals/").content.decode()
    assert "Billing" in page
    assert "git push --force origin main" in page
    assert "<title>(1) Approvals" in page
    stranger = Client()
    stranger.force_login(mallory)
    assert "git push" not in stranger.get("/approvals/").content.decode()
    assert stranger.get("/approvals/waiting/").json()["waiting"] == 0


def test_the_question_shows_the_call_its_parts_its_reasons_and_its_place(as_bob: Client, ask: Ask):
    approval = ask(
        "./squash.sh && git push",
        facts={
            "cwd": "/srv/agents/BIL-1",
            "paths": {"squash.sh": "/home/build/evil.sh", "src/a.py": "/srv/agents/BIL-1/src/a.py"},
            "scripts": {"/home/build/evil.sh": "91b0aa" * 10},
        },
        effects=({"argv": ["./squash.sh"]}, {"argv": ["git", "push", "a b"], "network": "x.org"}),
    )
    page = as_bob.get(f"/approvals/{approval.pk}/").content.decode()
    for shown in (
        "./squash.sh &amp;&amp; git push",
        "git push &#x27;a b&#x27;",
        "network x.org",
        "Rewrites shared history.",
        "rule <code>A9</code>",
        "/srv/agents/BIL-1",
        "→ /home/build/evil.sh",
        "sha256 91b0aa91b0aa",
        "bubblewrap: no network",
        "agent-1 wants to run a script",
        "/cards/BIL-1/run/",
    ):
        assert shown in page, shown
    assert page.index("Rewrites") < page.index("Talks to the network")
    assert "→ /srv/agents/BIL-1/src/a.py" not in page


@pytest.mark.parametrize(
    "hidden",
    ["\u202e", "\u200b", "\u2066", "\ufeff", "\u3164", "\x1b", "\r", "\u00a0", "\U000e0041"],
)
def test_a_character_that_cannot_be_seen_is_named(as_bob: Client, ask: Ask, hidden: str):
    approval = ask(f"rm -rf build{hidden}/all")
    shown = f'rm -rf build<span class="unseen">&lt;U+{ord(hidden):04X}&gt;</span>/all'
    assert shown in as_bob.get(f"/approvals/{approval.pk}/").content.decode()
    assert shown in as_bob.get("/approvals/").content.decode()


def test_markup_in_a_command_stays_text(as_bob: Client, ask: Ask):
    approval = ask("echo '<img src=x onerror=alert(1)>' {{ shell.version }}")
    page = as_bob.get(f"/approvals/{approval.pk}/").content.decode()
    assert "<img" not in page
    assert "{{ shell.version }}" in page


def test_a_long_command_is_whole_and_can_be_answered_only_in_full_view(as_bob: Client, ask: Ask):
    long = "echo " + " " * 5_000 + "&& rm -rf /"
    approval = ask(long)
    assert b'value="once"' not in as_bob.get("/approvals/").content
    page = as_bob.get(f"/approvals/{approval.pk}/").content.decode()
    assert " " * 5_000 + "&amp;&amp; rm -rf /" in page
    assert 'value="once"' in page


def test_a_short_command_can_be_answered_in_the_inbox(as_bob: Client, ask: Ask, running: Run):
    approval = ask()
    assert b'value="once"' in as_bob.get("/approvals/").content
    answer = decide(as_bob, approval, answer="once", next="/approvals/")
    assert answer["Location"] == "/approvals/"
    approval.refresh_from_db()
    running.refresh_from_db()
    assert (approval.status, approval.scope) == (ApprovalStatus.APPROVED, ApprovalScope.ONCE)
    assert running.status == RunStatus.READY
    page = as_bob.get("/approvals/").content.decode()
    assert "Nothing waits for you" in page
    assert "You approved this once" in page


def test_a_denial_carries_the_chosen_reason_and_the_words(as_bob: Client, ask: Ask):
    approval = ask()
    decide(as_bob, approval, answer="deny", reason="Do it another way.", comment="Use the package.")
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.DENIED
    assert approval.comment == "Do it another way. Use the package."
    page = as_bob.get(f"/approvals/{approval.pk}/").content.decode()
    assert "It was not run." in page
    assert "Use the package." in page


def test_an_edited_command_is_stored_as_the_person_wrote_it(as_bob: Client, ask: Ask):
    approval = ask()
    decide(as_bob, approval, answer="edit", input="git push\r\norigin main")
    approval.refresh_from_db()
    assert approval.edited_input == {"command": "git push\norigin main"}
    page = as_bob.get(f"/approvals/{approval.pk}/").content.decode()
    assert "What was approved instead" in page


def test_another_tool_is_edited_as_json(as_bob: Client, ask: Ask):
    approval = ask(tool="write_file", call={"path": "a.sh", "content": "rm x"})
    for wrong in ("{", "[]", json.dumps({"path": "a.sh"}), json.dumps({"path": 1, "content": ""})):
        refused = decide(as_bob, approval, answer="edit", input=wrong)
        assert refused.status_code == 422
        assert 'role="alert"' in refused.content.decode()
    decide(as_bob, approval, answer="edit", input=json.dumps({"path": "a.sh", "content": "ls"}))
    approval.refresh_from_db()
    assert approval.edited_input == {"path": "a.sh", "content": "ls"}


def test_an_empty_edit_is_refused_and_the_question_stays(as_bob: Client, ask: Ask):
    approval = ask()
    refused = decide(as_bob, approval, answer="edit", input="  ", comment="hm")
    assert refused.status_code == 422
    assert "hm" in refused.content.decode()
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.PENDING


def test_a_late_answer_is_told_who_was_first(as_bob: Client, ask: Ask, alice: User, bob: User):
    approval = ask()
    other = Client()
    other.force_login(alice)
    decide(other, approval, answer="deny")
    late = as_bob.post(
        f"/approvals/{approval.pk}/decide/",
        {"answer": "once"},
        headers={"Accept": "application/json"},
    )
    assert late.status_code == 409
    assert late.json()["fields"]["decided_by"] == "Alice"
    page = as_bob.post(f"/approvals/{approval.pk}/decide/", {"answer": "once"}, follow=True)
    assert "Alice denied this before you." in page.content.decode()
    approval.refresh_from_db()
    assert approval.decided_by == alice


def test_a_viewer_reads_the_question_and_cannot_answer(ask: Ask, vera: User, client: Client):
    approval = ask()
    client.force_login(vera)
    page = client.get(f"/approvals/{approval.pk}/").content.decode()
    assert "git push --force origin main" in page
    assert "You are a viewer of Billing" in page
    assert 'name="answer"' not in page
    assert b'name="answer"' not in client.get("/approvals/").content
    assert decide(client, approval, answer="once").status_code == 403
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.PENDING


def test_only_a_maintainer_may_approve_for_ever(
    as_bob: Client, ask: Ask, bob: User, project: Project
):
    approval = ask()
    assert b'value="always"' not in as_bob.get(f"/approvals/{approval.pk}/").content
    assert decide(as_bob, approval, answer="always").status_code == 403
    Membership.objects.filter(user=bob).update(role=Role.MAINTAINER)
    assert b'value="always"' in as_bob.get(f"/approvals/{approval.pk}/").content
    assert decide(as_bob, approval, answer="always").status_code == 302
    assert Grant.objects.get(project=project).input == approval.input


def test_an_answer_is_never_given_by_get_nor_by_an_unknown_word(as_bob: Client, ask: Ask):
    approval = ask()
    for answer in ("once", "deny"):
        got = as_bob.get(f"/approvals/{approval.pk}/decide/", {"answer": answer})
        assert got.status_code == 405
    assert decide(as_bob, approval, answer="yes").status_code == 400
    assert decide(as_bob, approval).status_code == 400
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.PENDING


def test_a_stranger_gets_404_for_the_question_and_its_answer(
    client: Client, ask: Ask, mallory: User
):
    approval = ask()
    client.force_login(mallory)
    assert client.get(f"/approvals/{approval.pk}/").status_code == 404
    assert decide(client, approval, answer="once").status_code == 404
    assert client.get(f"/approvals/{10**30}/").status_code == 404


@pytest.mark.parametrize(("scope", "stored"), [("", "once"), ("once", "once"), ("run", "run")])
def test_a_script_answers_with_a_verdict_and_a_scope(
    as_bob: Client, ask: Ask, scope: str, stored: str
):
    approval = ask()
    answer = as_bob.post(
        f"/approvals/{approval.pk}/decide/",
        {"verdict": "approve", "scope": scope, "op_id": "op-1"},
        headers={"Accept": "application/json"},
    )
    assert answer.json()["status"] == "approved"
    approval.refresh_from_db()
    assert approval.scope == stored


def test_the_stamp_changes_with_the_open_questions(as_bob: Client, ask: Ask):
    before = as_bob.get("/approvals/waiting/").json()
    approval = ask()
    after = as_bob.get("/approvals/waiting/").json()
    assert (before["waiting"], after["waiting"]) == (0, 1)
    assert before["stamp"] != after["stamp"]
    decide(as_bob, approval, answer="once")
    assert as_bob.get("/approvals/waiting/").json() == before


def test_the_answered_page_goes_back_in_pages(as_bob: Client, ask: Ask, monkeypatch):
    approval = ask()
    decide(as_bob, approval, answer="run")
    page = as_bob.get("/approvals/answered/").content.decode()
    assert "You approved this for the whole run" in page
    assert as_bob.get(f"/approvals/answered/?before={approval.pk}").context["answered"] == []
    assert as_bob.get("/approvals/answered/?before=x").status_code == 200
