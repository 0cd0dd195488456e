"""Runs, their log, their diff, questions and events by the API."""

import subprocess

import pytest

from agents.hunks import describe
from agents.workspaces.diffs import diff
from board.actions.approvals import Question, request_approval
from board.actions.journal import begin_step, finish_step
from board.actions.logs import append_log
from board.api.contents import MAX_TEXT, shortened
from board.models import Event, Run
from board.states import StepKind
from tests.agents.workspaces.repos import commit_files, make_repository, run_git

pytestmark = pytest.mark.django_db


def ask(running, *, fence=None, call="c"):
    question = Question(
        call, "bash", {"command": "rm -rf build"}, "D1", ["It deletes."], "0" * 64, {}, [], "none"
    )
    return request_approval(
        running.pk, fence or running.fence, question, seq=None, active_seconds=1
    )


def test_a_run_shows_its_steps_tokens_and_cost(api, running, django_assert_max_num_queries):
    model = begin_step(running.pk, 1, kind=StepKind.MODEL, request={"messages": ["private"]})
    usage = {"model": "m", "input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 2,
             "cache_write_tokens": 1, "cost_microusd": 1_234_567}  # fmt: skip
    finish_step(running.pk, 1, seq=model, response={"text": "x" * 9_000}, usage=usage)
    for number in range(3):
        begin_step(
            running.pk, 1, kind=StepKind.TOOL,
            request={"id": "c", "tool": "bash", "input": {"command": f"echo {number}"}},
        )  # fmt: skip
    with django_assert_max_num_queries(5):
        shown = api.get(f"/runs/{running.pk}")
    assert (shown["card"], shown["attempt"], shown["status"]) == ("BIL-1", 1, "running")
    assert (shown["cost_microusd"], shown["cost"]) == (1_234_567, "1.234567")
    assert shown["usage"] == {
        "input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 2, "cache_write_tokens": 1,
    }  # fmt: skip
    first, second = shown["steps"][:2]
    assert (first["kind"], first["status"], first["tool"]) == ("model", "done", None)
    assert first["response"]["text"].endswith("(5,000 more characters)")
    assert "private" not in str(shown)
    assert (second["tool"], second["input"], second["response"]) == (
        "bash", {"command": "echo 0"}, None,
    )  # fmt: skip


def test_what_a_step_holds_is_cut_to_a_size(api):
    deep: object = "x"
    for _ in range(20):
        deep = {"a": deep}
    assert len(str(shortened(deep))) < 100
    assert len(shortened(["x"] * 1_000)) == 200
    assert len(shortened("x" * 100_000)) < MAX_TEXT + 50
    assert shortened({"n": 1, "t": None, "b": True}) == {"n": 1, "t": None, "b": True}


def test_a_log_is_read_on_from_where_one_was(api, running):
    append_log(running.pk, [("text", {"text": str(number)}) for number in range(5)])
    items = api.get(f"/runs/{running.pk}/log")
    assert [(item["seq"], item["kind"], item["data"]) for item in items[:2]] == [
        (1, "text", {"text": "0"}), (2, "text", {"text": "1"}),
    ]  # fmt: skip
    later = api.get(f"/runs/{running.pk}/log?after=2&limit=2")
    assert [item["seq"] for item in later] == [3, 4]
    assert api.get(f"/runs/{running.pk}/log?after=5") == []


def test_a_diff_is_given_by_file_and_as_a_patch_that_git_applies(api, running, tmp_path):
    before = {"a.txt": "old\n", "gone.txt": "bye\n", "e.sh": "echo\n" * 9, "end.txt": "no newline"}
    repository = make_repository(tmp_path / "work", before)
    base = run_git(repository, "rev-parse", "HEAD").strip()
    (repository / "gone.txt").unlink()
    (repository / "e.sh").rename(repository / "f.sh")
    (repository / "f.sh").chmod(0o755)
    head = commit_files(
        repository, {"a.txt": "new\nlines\n", "d/b.txt": "hello\n", "end.txt": "still none"}
    )
    changes = describe(diff(repository / ".git", base, head))
    Run.objects.update(changes=changes)
    shown = api.get(f"/runs/{running.pk}/diff")
    assert (shown["files"], shown["additions"], shown["deletions"]) == (5, 4, 3)
    assert shown["diff"] == changes["diff"]
    run_git(repository, "checkout", "-q", base)
    subprocess.run(
        ["git", "apply", "--index", "-"],
        cwd=repository,
        input=shown["patch"],
        text=True,
        check=True,
    )
    assert run_git(repository, "write-tree") == run_git(repository, "rev-parse", f"{head}^{{tree}}")


def test_a_binary_file_is_named_in_the_patch(api, running):
    image = {"path": "a.png", "old_path": "", "status": "M", "old_mode": "100644",
             "new_mode": "100644", "binary": True, "hunks": []}  # fmt: skip
    Run.objects.update(changes={"files": 1, "diff": [image]})
    patch = api.get(f"/runs/{running.pk}/diff")["patch"]
    assert patch == "diff --git a/a.png b/a.png\nBinary files a/a.png and b/a.png differ\n"


def test_a_run_without_changes_has_an_empty_diff(api, running):
    shown = api.get(f"/runs/{running.pk}/diff")
    assert shown == {
        "files": 0, "additions": 0, "deletions": 0, "diff": [], "patch": "", "findings": [],
    }  # fmt: skip


def test_a_question_is_listed_and_answered(api, running):
    approval = ask(running)
    assert api.get("/cards/BIL-1")["runs"][0]["waiting_for"] == "approval"
    (listed,) = api.get("/approvals?status=pending&project=bil")
    assert listed == api.get(f"/approvals/{approval.pk}")
    assert (listed["card"], listed["run"], listed["tool"]) == ("BIL-1", running.pk, "bash")
    assert (listed["rule"], listed["reasons"], listed["sandbox"]) == ("D1", ["It deletes."], "none")
    assert (listed["status"], listed["decided_by"], listed["decided_at"]) == ("pending", None, None)
    body = {
        "verdict": "approve",
        "scope": "run",
        "input": {"command": "ls"},
        "comment": "Only look.",
    }
    answered = api.post(f"/approvals/{approval.pk}/decide", body)
    assert (answered["status"], answered["scope"], answered["decided_by"]) == (
        "approved",
        "run",
        "Alice",
    )
    assert (answered["edited_input"], answered["comment"]) == ({"command": "ls"}, "Only look.")
    assert answered["input"] == {"command": "rm -rf build"}
    assert answered == api.get(f"/approvals/{approval.pk}")
    assert api.get("/approvals?status=pending") == []
    assert len(api.get("/approvals?status=approved")) == len(api.get("/approvals")) == 1
    (attempt,) = api.get("/cards/BIL-1")["runs"]
    assert (attempt["status"], attempt["waiting_for"]) == ("ready", "")
    assert api.get(f"/runs/{running.pk}")["waiting_for"] == ""


def test_a_late_answer_is_told_who_was_first(api, bob, caller, running):
    approval = ask(running)
    caller(bob).post(f"/approvals/{approval.pk}/decide", {"verdict": "deny", "comment": "No."})
    status, answer = api("POST", f"/approvals/{approval.pk}/decide", {"verdict": "approve"})
    assert (status, answer["code"]) == (409, "already_decided")
    assert answer["fields"] == {"status": "denied", "decided_by": "Bob"}
    assert "Bob" in answer["message"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "verdict"),
        ({"verdict": "maybe"}, 422, "verdict"),
        ({"verdict": "approve", "scope": "forever"}, 422, "scope"),
        ({"verdict": "approve", "input": "ls"}, 422, "input"),
        ({"verdict": "approve", "input": {"command": 5}}, 422, "input"),
        ({"verdict": "approve", "input": {"command": "ls", "cwd": "/"}}, 422, "input"),
        ({"verdict": "approve", "decided_by": "Bob"}, 422, "decided_by"),
        ({"verdict": "approve", "scope": "always"}, 403, None),
    ],
)
def test_an_answer_is_refused(running, bob, caller, *, body, status, field):
    approval = ask(running)
    got, answer = caller(bob)("POST", f"/approvals/{approval.pk}/decide", body)
    assert got == status
    assert set(answer.get("fields", {})) == ({field} if field else set())
    approval.refresh_from_db()
    assert approval.status == "pending"


def test_events_come_in_order_and_without_gaps(api, running, django_assert_max_num_queries):
    with django_assert_max_num_queries(5):
        found = api.get("/events?project=bil")
    assert [event["seq"] for event in found] == list(range(1, Event.objects.count() + 1))
    last = found[-1]
    assert (last["kind"], last["card"], last["run"]) == ("CardClaimed", "BIL-1", running.pk)
    assert (last["actor"], last["payload"]) == ("agent-1", {"attempt": 1})
    assert found[0]["card"] is None
    after = api.get(f"/events?project=BIL&after={last['seq'] - 1}")
    assert after == [last]
    assert [event["seq"] for event in api.get("/events?project=BIL&after=1&limit=2")] == [2, 3]
