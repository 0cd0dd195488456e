"""The pages of policies: the editor, the tester, the replay, lists of another program, versions."""

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide
from agents.harness.ports import ToolCall
from agents.policies import renewed
from board.actions.policies import Scope, add_grant, save_policy
from board.models import Approval, Card, Grant, Membership, PolicyVersion, Project, Run, Step, User
from board.states import ApprovalStatus, Role, StepKind, StepStatus
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db
DENY = "version: 1\ndeny:\n  commands:\n    - git push *  # only people\n"
PART = {"X-Fragment": "1"}


@pytest.fixture
def client(alice: User) -> Client:
    return signed_in(alice)


def signed_in(user: User) -> Client:
    client = Client()
    assert client.login(email=user.email, password=PASSWORD)
    return client


def post(client: Client, url: str, do: str, *, part: bool = False, **fields):
    return client.post(url, {"do": do, **fields}, headers=PART if part else {})


def page_of(answer) -> str:
    return str(answer.content.decode())


ADDRESSES = ["/policy/", "/p/BIL/policy/", "/cards/BIL-1/policy/"]


@pytest.mark.parametrize("url", ADDRESSES)
def test_a_version_is_saved_shown_and_found_among_the_versions(client, new_card, url):
    new_card()
    assert "Nobody has added a rule" in page_of(client.get(url))
    saved = post(client, url, "save", text=DENY, base=0, comment="Push by hand")
    assert (saved.status_code, saved["Location"]) == (302, url)
    page = page_of(client.get(url))
    assert "Version 1" in page
    assert "only people" in page  # the text is kept as it was typed, comments too
    assert "line 4" in page
    post(client, url, "save", text="version: 1\n", base=1)
    versions = page_of(client.get(f"{url}versions/?n=1"))
    assert "Push by hand" in versions
    assert "Bring it back" in versions
    post(client, url, "restore", version=1)
    newest = PolicyVersion.objects.latest("number")
    assert (newest.number, newest.text, newest.comment) == (3, DENY, "Brings back version 1")


def test_what_is_refused_says_the_line_and_loses_nothing(client, project):
    text = "version: 1\nask:\n  commands:\n  - {rule: ls *, match: [cat <x>]}\n"
    answer = post(client, "/p/BIL/policy/", "save", text=text, base=0, comment="My <why>")
    page = page_of(answer)
    assert answer.status_code == 422
    assert "Line 4" in page
    assert "does not cover `cat &lt;x&gt;`" in page
    assert "match: [cat &lt;x&gt;]" in page
    assert "My &lt;why&gt;" in page
    assert not PolicyVersion.objects.exists()


def test_who_was_second_keeps_the_text_and_sees_who_was_first(client, project, bob):
    save_policy(Scope(project), DENY, by=bob, base=0)
    answer = post(client, "/p/BIL/policy/", "save", text="version: 1\n# mine\n", base=0)
    assert answer.status_code == 409
    assert "Bob saved version 1 while you were writing" in page_of(answer)
    assert "# mine" in page_of(answer)
    base = re.search(r'name="base" value="(\d+)"', page_of(answer))
    assert base is not None
    again = post(client, "/p/BIL/policy/", "save", text="version: 1\n# mine\n", base=base[1])
    assert again.status_code == 302
    assert "# mine" in PolicyVersion.objects.latest("number").text


def test_only_maintainers_change_a_project_and_only_owners_the_organisation(
    project, new_card, bob, vera, mallory
):
    new_card()
    member, viewer, stranger = signed_in(bob), signed_in(vera), signed_in(mallory)
    for url in ADDRESSES[1:]:
        for do in ("save", "replay", "import", "restore", "profile"):
            assert post(member, url, do, text=DENY, base=0).status_code == 403, (url, do)
            assert post(stranger, url, do, text=DENY, base=0).status_code == 404, (url, do)
        assert viewer.get(url).status_code == 200
        assert "readonly" in page_of(viewer.get(url))
        assert stranger.get(url).status_code == 404
        assert stranger.get(f"{url}versions/").status_code == 404
    assert member.get("/policy/").status_code == 403
    assert post(member, "/policy/", "save", text=DENY, base=0).status_code == 403
    Membership.objects.filter(user=bob).update(role=Role.MAINTAINER)
    assert post(member, "/p/BIL/policy/", "save", text=DENY, base=0).status_code == 302
    assert not PolicyVersion.objects.filter(scope="organisation").exists()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"call": "ls && sudo git push -f"},
            ["Denied", "project BIL denies `git push *`", "line 4"],
        ),
        ({"call": "pytest -q"}, ["Runs at once", "L3"]),
        ({"call": "uv add x"}, ["Asks", "A2"]),
        ({"call": "src/../LICENSE", "tool": "write_file"}, ["Runs at once", "LICENSE"]),
        ({"call": '{"tool": "read_file", "input": {"path": "/etc/shadow"}}'}, ["Asks", "A12"]),
        ({"call": ""}, []),
    ],
)
def test_a_typed_call_is_judged_under_the_typed_text(client, project, fields, words):
    page = page_of(post(client, "/p/BIL/policy/", "try", part=True, text=DENY, base=0, **fields))
    assert all(word in page.replace("&#x27;", "'") for word in words), page
    assert "<html" not in page
    assert not PolicyVersion.objects.exists()
    whole = page_of(post(client, "/p/BIL/policy/", "try", text=DENY, base=0, **fields))
    assert "<html" in whole  # without scripts: the page, with all that was typed
    assert "only people" in whole


def test_a_typed_call_reads_no_file_of_the_server(client, project, tmp_path):
    script = tmp_path / "x.sh"
    script.write_text("rm -rf /\n")
    page = page_of(post(client, "/p/BIL/policy/", "try", part=True, text=DENY, call=f"sh {script}"))
    assert "Denied" not in page
    script.unlink()
    assert page == page_of(
        post(client, "/p/BIL/policy/", "try", part=True, text=DENY, call=f"sh {script}")
    )


def record(run: Run, context: Context, seq: int, tool: str = "bash", **given: str) -> Step:
    """A step as the worker leaves it behind a call."""
    verdict = decide(ToolCall(f"c{seq}", tool, given), renewed(context, run.pk))
    details = {"refused": True, "rule": verdict.rule} if verdict.tier == "deny" else {}
    return Step.objects.create(
        run=run,
        seq=seq,
        kind=StepKind.TOOL,
        status=StepStatus.DONE,
        fence=1,
        request={"id": f"c{seq}", "tool": tool, "input": given, "gate": verdict.record},
        response={"text": "", "is_error": False, "details": details},
    )


COMMANDS = [
    "ls",
    "pytest -q",
    "pytest --slow",
    "git push",
    "rm -rf /",
    "cat a; pytest -q",
    "uv add x",
]


def test_the_replay_shows_exactly_the_calls_that_would_have_asked(client, running, alice, tmp_path):
    context = Context(workspace=tmp_path, sandbox="bubblewrap")
    for seq, command in enumerate(COMMANDS, 10):
        record(running, context, seq, command=command)
    text = "version: 1\nask: {commands: [pytest *]}\n"
    page = page_of(post(client, "/p/BIL/policy/", "replay", part=True, text=text, base=0))
    rows = re.findall(r'<td class="wide"><code class="break">(.*?)</code>', page)
    assert sorted(rows) == ["cat a; pytest -q", "pytest --slow", "pytest -q"]
    assert "7 calls replayed" in page
    assert "3 questions more, as many refusals" in page
    save_policy(Scope(running.project), text, by=alice, base=0)
    asked = [
        command
        for command in COMMANDS
        if decide(ToolCall("x", "bash", {"command": command}), renewed(context, running.pk)).tier
        == "ask"
    ]
    assert sorted(asked) == sorted([*rows, "git push", "uv add x"])  # those two asked before too


def test_the_replay_warns_of_what_a_person_denied_and_says_what_it_cannot_judge(
    client, running, alice, tmp_path
):
    context = Context(workspace=tmp_path, sandbox="bubblewrap")
    asked = record(running, context, 10, command="uv add x")
    Approval.objects.create(
        project=running.project,
        run=running,
        step=asked,
        tool="bash",
        rule="A2",
        digest="0",
        status=ApprovalStatus.DENIED,
        decided_by=alice,
    )
    old = record(running, context, 11, command="ls")
    Step.objects.filter(pk=old.pk).update(request={"id": "c", "tool": "bash", "input": {}})
    unknown_tool = record(running, context, 12, tool="nonsense", x="y")
    Step.objects.filter(pk=unknown_tool.pk).update(
        request={"id": "c", "tool": "nonsense", "input": {}},
        response={"text": "", "is_error": True, "details": {"refused": True}},
    )
    text = "version: 1\nallow: {commands: [uv add *]}\n"
    page = page_of(post(client, "/p/BIL/policy/", "replay", part=True, text=text, base=0))
    assert "1 call replayed" in page
    assert "A person has denied this." in page
    assert "1 call that a person denied would run at once" in page
    assert "1 call cannot be judged again" in page


def test_the_replay_of_the_organisation_shows_only_projects_of_the_person(
    client, running, alice, tmp_path
):
    context = Context(workspace=tmp_path, sandbox="bubblewrap")
    record(running, context, 10, command="pytest")
    text = "version: 1\nask: {rules: [L3]}\n"
    assert "1 call replayed" in page_of(post(client, "/policy/", "replay", part=True, text=text))
    Membership.objects.filter(user=alice).delete()
    assert "0 calls replayed" in page_of(post(client, "/policy/", "replay", part=True, text=text))


def test_an_answer_that_lasts_is_a_rule_and_can_be_withdrawn(client, project, alice, bob):
    add_grant(
        Grant(
            project=project,
            tool="bash",
            input={"command": "make deploy <x>"},
            granted_by=alice,
            granted_at=timezone.now(),
        )
    )
    grant = Grant.objects.get()
    assert "make deploy &lt;x&gt;" in page_of(client.get("/p/BIL/policy/"))
    url = "/p/BIL/policy/"
    assert post(signed_in(bob), url, "withdraw", grant=grant.pk).status_code == 403
    assert post(client, url, "withdraw", grant=grant.pk).status_code == 302
    assert "make deploy" not in page_of(client.get(url))
    assert post(client, url, "withdraw", grant=10**8).status_code == 404


def test_what_is_asked_often_is_shown_with_its_answers(client, running, alice, tmp_path):
    context = Context(workspace=tmp_path, sandbox="bubblewrap")
    answers = [("uv add x", "approved"), ("uv add x", "denied"), ("git push", "approved")]
    for seq, (command, status) in enumerate(answers, 10):
        Approval.objects.create(
            project=running.project,
            run=running,
            step=record(running, context, seq, command=command),
            tool="bash",
            input={"command": command},
            rule="A2",
            digest="0",
            status=status,
            decided_by=alice,
        )
    page = page_of(client.get("/p/BIL/policy/"))
    assert "1 of 2 approved" in page
    assert page.count("data-policy-try=") == 1


def test_a_list_of_another_program_is_explained_and_put_behind_the_text(client, project):
    lists = {"permissions": {"allow": ["Bash(python:*)"], "deny": ["Bash(git push:*)"]}}
    given: dict[str, Any] = {"imported": json.dumps(lists), "text": "version: 1\n", "base": 0}
    page = page_of(post(client, "/p/BIL/policy/", "import", part=True, **given))
    assert "so this would allow any program" in page
    assert "git push *" in page
    whole = page_of(post(client, "/p/BIL/policy/", "import", add=1, **given))
    assert "---\nversion: 1\ndeny:" in whole
    broken = page_of(post(client, "/p/BIL/policy/", "import", part=True, imported="{", text="x"))
    assert "This is not JSON" in broken


def test_the_tools_of_a_project_are_set_and_shown_on_its_cards(client, project: Project, new_card):
    card: Card = new_card()
    assert post(client, "/p/BIL/policy/", "profile", tool_profile="edit-test").status_code == 302
    assert "Edit and test" in page_of(client.get(f"/cards/{card.ref}/"))
    form = page_of(client.get(f"/cards/{card.ref}/edit/"))
    assert "As the project: edit and test" in form
    post(client, "/p/BIL/policy/", "profile", tool_profile="all")
    project.refresh_from_db()
    assert project.tool_profile == "edit-test"
    assert post(client, "/policy/", "profile", tool_profile="full").status_code == 404
    assert post(client, "/p/BIL/policy/", "nonsense").status_code == 404
