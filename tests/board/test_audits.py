"""The audit is read by owners only, whole or in parts, and every way of rewriting it is seen."""

import csv
import io
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.db import connection
from django.test import AsyncClient, Client

from board import audits
from board.actions import (
    accounts,
    approvals,
    credentials,
    invitations,
    journal,
    local_files,
    merges,
    projects,
    runs,
    signins,
)
from board.actions.audit import Act, record
from board.errors import BoardError, NotAllowedError, ValidationError
from board.events import Actor
from board.models import AuditEntry, Invitation, Membership, Project, Run, User
from board.states import ApprovalScope, Role, StepKind, StepStatus
from tests.audit_guards import migration, rewrite
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db

CALL = {
    "id": "call_1",
    "tool": "bash",
    "input": {"command": "make"},
    "gate": {"verdict": ["allow", "L3"]},
}
RESULT = {"text": "built", "is_error": False, "details": {"exit_code": 0, "seconds": 1.5}}


def last(kind: str = "") -> AuditEntry:
    entries = AuditEntry.objects.filter(kind=kind) if kind else AuditEntry.objects.all()
    return entries.latest("number")


def data(kind: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(last(kind).data)
    return found


def ask(run: Run, **changes: Any) -> Any:
    values: dict[str, Any] = {
        "call_id": "c", "tool": "bash", "input": {"command": "curl x"}, "rule": "A1",
        "reasons": ["It uses the network."], "digest": "d" * 64, "facts": {}, "effects": [],
        "sandbox": "bubblewrap", **changes,
    }  # fmt: skip
    question = approvals.Question(**values)
    return approvals.request_approval(run.pk, run.fence, question, seq=None, active_seconds=0)


# What is recorded.


def test_a_call_is_recorded_before_it_runs_and_when_it_has_ended(running: Run) -> None:
    seq = journal.begin_step(running.pk, running.fence, kind=StepKind.TOOL, request=CALL)
    begun = last("tool_called")
    assert (begun.verdict, begun.rule, begun.step) == ("allow", "L3", seq)
    assert (begun.card, begun.project, begun.actor) == (running.card.ref, "BIL", "agent-1")
    assert data()["input"] == {"command": "make"}
    journal.finish_step(running.pk, running.fence, seq=seq, response=RESULT)
    ended = data("tool_ended")
    assert (ended["result_bytes"], ended["outcome"], ended["exit_code"]) == (5, "done", 0)


def test_a_refused_call_is_recorded_with_the_reason(running: Run) -> None:
    call = {**CALL, "gate": {"verdict": ["deny", "D1"]}}
    journal.begin_step(
        running.pk, running.fence, kind=StepKind.TOOL, request=call,
        response={**RESULT, "text": "Denied."}, status=StepStatus.DONE,
    )  # fmt: skip
    entry = last("tool_refused")
    assert (entry.verdict, entry.rule) == ("deny", "D1")
    assert data()["result"] == "Denied."


def test_turns_of_the_model_are_no_entries(running: Run) -> None:
    before = AuditEntry.objects.count()
    seq = journal.begin_step(running.pk, running.fence, kind=StepKind.MODEL, request={})
    journal.finish_step(running.pk, running.fence, seq=seq, response={"content": []})
    assert AuditEntry.objects.count() == before


def test_a_question_its_answer_and_its_call_are_recorded_with_the_approver(
    running: Run, bob: User
) -> None:
    approval = ask(running)
    assert data("approval_requested")["digest"] == "d" * 64
    edited = {"command": "curl y"}
    approvals.decide(
        approval, by=bob, role=Role.MEMBER, approve=True, edited_input=edited, comment="Go."
    )
    answered = last("approval_answered")
    assert (answered.actor, answered.user_id, answered.rule) == ("Bob", bob.pk, "A1")
    assert data()["answer"] == "approved"
    assert data()["edited_input"] == edited
    run = Run.objects.get(pk=running.pk)
    Run.objects.filter(pk=run.pk).update(
        status="running", worker=running.worker, lease_until=running.lease_until, waiting_for=""
    )
    journal.resume_step(run.pk, run.fence, seq=approval.step.seq)
    called = data("tool_called")
    assert (called["approved_by"], called["scope"]) == ("Bob", ApprovalScope.ONCE)
    assert called["input"] == edited


def test_sign_ins_are_recorded_and_what_a_stranger_types_is_not(alice: User) -> None:
    signins.check_password(email=alice.email, password=PASSWORD, place="10.0.0.1")
    assert (last().kind, last().user_id, data()) == ("signed_in", alice.pk, {"place": "10.0.0.1"})
    with pytest.raises(ValidationError):
        signins.check_password(email=alice.email, password="wrong", place="10.0.0.1")
    assert last().kind == "sign_in_failed"
    count = AuditEntry.objects.count()
    with pytest.raises(ValidationError):
        signins.check_password(email="my password", password="x", place="10.0.0.1")
    assert AuditEntry.objects.count() == count


def test_what_people_decide_is_recorded(project: Project, alice: User, bob: User) -> None:
    membership = Membership.objects.get(user=bob, project=project)
    projects.set_role(membership, by=alice, role=Role.MAINTAINER)
    assert data("role_changed") == {
        "member": "Bob", "member_id": bob.pk, "before": "member", "after": "maintainer",
    }  # fmt: skip
    projects.update_project(project, by=alice, setup_command="make", max_parallel=2)
    assert data("project_settings") == {"setup_command": "make", "max_parallel": 2}
    credentials.set_credential(by=alice, api_key="sk-ant-secret-12345")
    assert "secret-12345" not in last("credential_entered").data
    credentials.remove_credential(by=alice)
    token = accounts.create_token(alice, name="CI")
    assert data("token_made")["name"] == "CI"
    accounts.revoke_token(alice, alice.api_tokens.get().pk)
    accounts.change_password(alice, current=PASSWORD, new="another long password")
    projects.invite(project, by=alice, email="x@example.org", role=Role.VIEWER)
    invitations.withdraw_invitation(Invitation.objects.get(), by=alice)
    projects.remove_member(membership, by=alice)
    projects.fetch_again(project, by=alice, repository="/elsewhere")
    projects.archive_project(project, by=alice)
    kinds = list(AuditEntry.objects.order_by("-number").values_list("kind", flat=True)[:9])
    assert kinds == [
        "project_archived", "repository_changed", "member_removed", "invitation_withdrawn",
        "invitation_made", "password_changed", "token_revoked", "token_made", "credential_removed",
    ]  # fmt: skip
    assert not AuditEntry.objects.filter(data__contains=token).exists()
    assert audits.verify().problem == ""


def test_a_merge_is_recorded(running: Run, alice: User) -> None:
    runs.finish_run(
        running.pk, running.fence, head_sha="a" * 40, summary="", evidence=[], changes={},
        active_seconds=1,
    )  # fmt: skip
    card = running.card
    card.refresh_from_db()
    merges.request_merge(card, by=alice)
    entry = last("merge_requested")
    assert (entry.actor, entry.card, data()["sha"]) == ("Alice", card.ref, "a" * 40)


def test_only_an_owner_sets_local_files_of_a_folder(
    project: Project, alice: User, bob: User
) -> None:
    local_files.set_local_files(project, by=alice, names=[".env", " conf/.env ", ""])
    assert project.secret_files == [".env", "conf/.env"]
    assert data("local_files_set")["after"] == [".env", "conf/.env"]
    with pytest.raises(NotAllowedError):
        local_files.set_local_files(project, by=bob, names=[])
    for name in ("/etc/passwd", "../x", "a/../b", ".git/config", "./.env", "~/x", "a//b"):
        with pytest.raises(ValidationError):
            local_files.set_local_files(project, by=alice, names=[name])
    project.repository = "https://example.org/x.git"
    with pytest.raises(BoardError):
        local_files.set_local_files(project, by=alice, names=[".env"])


# Whether it is sound.


@pytest.fixture
def chain() -> list[AuditEntry]:
    for number in range(5):
        record(Act("thing", Actor("Ann"), data={"number": number}))
    return list(AuditEntry.objects.order_by("number"))


def test_a_sound_chain_is_said_to_be_sound(chain: list[AuditEntry], capsys: Any) -> None:
    call_command("verify_audit")
    head = f"5:{chain[-1].hash}"
    assert capsys.readouterr().out == f"The audit is sound: 5 entries.\nHead {head}\n"
    record(Act("more", Actor("Ann")))
    assert audits.verify(head).problem == ""


@pytest.mark.parametrize(
    ("statement", "values", "problem"),
    [
        ("UPDATE board_auditentry SET actor = 'Eve' WHERE number = 3", [], "entry 3 was changed"),
        (
            "UPDATE board_auditentry SET at = '2020-01-01 00:00:00+00:00' WHERE number = 2",
            [],
            "entry 2",
        ),
        ("UPDATE board_auditentry SET data = '{}' WHERE number = 5", [], "entry 5 was changed"),
        ("DELETE FROM board_auditentry WHERE number = 2", [], "entry 2 removed: 3 follows 1"),
        ("DELETE FROM board_auditentry WHERE number = 1", [], "entry 1 removed"),
        ("DELETE FROM board_auditentry WHERE number > 3", [], "entries 4 to 5 are missing"),
        ("UPDATE board_auditentry SET hash = %s WHERE number = 4", ["f" * 64], "entry 4"),
        ("UPDATE board_audithead SET hash = %s", ["f" * 64], "not the one that the head names"),
    ],
)
def test_a_rewritten_chain_is_said_to_be_broken_where_it_is(
    chain: list[AuditEntry], capsys: Any, statement: str, values: list[Any], problem: str
) -> None:
    rewrite(statement, values)
    with pytest.raises(SystemExit, match="1"):
        call_command("verify_audit")
    assert problem in capsys.readouterr().err


def test_an_end_that_was_cut_off_together_with_the_head_is_seen_by_a_head_that_was_kept(
    chain: list[AuditEntry],
) -> None:
    kept = f"5:{chain[-1].hash}"
    rewrite("DELETE FROM board_auditentry WHERE number > 3", [])
    rewrite("UPDATE board_audithead SET number = 3, hash = %s", [chain[2].hash])
    assert audits.verify().problem == ""
    assert "it does not hold the head" in audits.verify(kept).problem
    for _ in range(3):
        record(Act("thing", Actor("Ann")))
    assert "it does not hold the head" in audits.verify(kept).problem


def test_a_missing_guard_is_said(chain: list[AuditEntry]) -> None:

    migration.unguard(connection)
    assert "no longer refuses" in audits.verify().problem
    migration.guard(connection)


# How it is read.


def get(user: User, path: str) -> Any:
    client = Client()
    client.force_login(user)
    return client.get(path)


def test_the_page_shows_entries_and_filters_them(chain: list[AuditEntry], alice: User) -> None:
    record(Act("tool_called", Actor("agent-1"), card="BIL-1", verdict="ask", rule="A1",
               data={"tool": "bash", "input": {"command": "rm -rf <b>"}}))  # fmt: skip
    page = get(alice, "/settings/audit/").content.decode()
    assert "rm -rf &lt;b&gt;" in page
    assert "ask A1" in page
    only = get(alice, "/settings/audit/?kind=thing&actor=ann").content.decode()
    assert "rm -rf" not in only
    assert only.count('class="audit__entry"') == 5
    assert "Nothing fits" in get(alice, "/settings/audit/?from=2090-01-01").content.decode()
    assert (
        get(alice, "/settings/audit/?from=nonsense&to=2020-13-45&run=x&before=y").status_code == 200
    )


def test_the_page_is_cut_into_pages(alice: User) -> None:
    record(*(Act("thing", Actor("Ann")) for _ in range(audits.PAGE + 1)))
    first = get(alice, "/settings/audit/").content.decode()
    assert "before=2" in first
    assert get(alice, "/settings/audit/?before=2").content.decode().count("audit__entry") == 1


def test_an_export_holds_what_the_filters_show_with_all_that_the_hashes_cover(
    chain: list[AuditEntry], alice: User
) -> None:
    record(Act("other", Actor("=cmd()")))
    lines = b"".join(get(alice, "/settings/audit/export/?kind=thing")).decode().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["number"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[0]["hash"] == chain[0].hash
    table = b"".join(get(alice, "/settings/audit/export/?format=csv")).decode()
    cells = list(csv.DictReader(io.StringIO(table)))
    assert len(cells) == 6
    assert cells[5]["actor"] == "'=cmd()"


@pytest.mark.django_db(transaction=True)
async def test_an_export_is_streamed_to_a_browser() -> None:
    await sync_to_async(lambda: record(*(Act("thing", Actor("Ann")) for _ in range(5))))()
    client = AsyncClient()
    owner = await User.objects.acreate(email="o@example.org", name="O", is_owner=True)
    await client.aforce_login(owner)
    answer: Any = await client.get("/settings/audit/export/")
    assert answer.is_async
    parts = [part async for part in answer.streaming_content]
    assert len(b"".join(parts).splitlines()) == 5


@pytest.mark.parametrize("path", ["/settings/audit/", "/settings/audit/export/"])
def test_nobody_but_an_owner_reads_it(path: str, bob: User) -> None:
    assert get(bob, path).status_code == 403
