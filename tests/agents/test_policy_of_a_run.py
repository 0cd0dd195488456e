"""What binds a run, on real workers: the tools of its profile, and a policy that is saved while it works."""

import json
from pathlib import Path

import pytest

from tests.messages_api import MessagesApi
from tests.messages_script import Request, Turn, call, report
from tests.product import Product, make_repository

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

Parts = tuple[Product, MessagesApi]


def test_a_profile_takes_tools_from_the_model_and_denies_what_it_invents(
    shared: Parts, tmp_path: Path
) -> None:
    product, api = shared
    product.project("LOOK", make_repository(tmp_path / "origin.git", {"a.txt": "a\n"}))
    api.script(
        "Only look",
        [
            call("bash", command="cat a.txt && git log --oneline"),
            call("write_file", path="b.txt", content="b\n"),
            call("bash", command="echo b > b.txt"),
            call("bash", command="touch b.txt"),
            report("done", "I looked."),
        ],
    )
    card = product.card("LOOK", "Only look", checks=["test ! -e b.txt"], tool_profile="read-only")
    product.queue(card["ref"])
    reviewed = product.wait_for_card(card["ref"], "review", "failed")
    assert reviewed["status"] == "review", product.log_text()[-3000:]
    requests = api.conversation("Only look")
    tools = {tool["name"] for tool in requests[0].body["tools"]}
    assert {"read_file", "bash", "report_result"} <= tools
    assert not tools & {"write_file", "edit_file"}
    results = [request.results[0] for request in requests[1:]]
    assert not results[0].get("is_error")
    for result in results[1:]:
        assert "rule profile" in str(result["content"]), result


def test_a_policy_that_is_saved_binds_a_running_run_at_its_next_call(
    shared: Parts, tmp_path: Path
) -> None:
    product, api = shared
    product.project("HOT", make_repository(tmp_path / "origin.git", {"a.txt": "a\n"}))
    worker = product.pid("worker-0")

    def forbid(_request: Request) -> Turn:
        product.put("/projects/HOT/policy", text="version: 1\ndeny: {commands: [cat *]}\n", base=0)
        return call("bash", command="cat a.txt")

    def allow(request: Request) -> Turn:
        assert "project HOT denies `cat *`" in request.last_text, request.last_text
        product.put("/projects/HOT/policy", text="version: 1\n", base=1)
        return call("bash", command="cat a.txt")

    api.script("Read it", [call("bash", command="cat a.txt"), forbid, allow, report("done", "a")])
    card = product.card("HOT", "Read it", checks=["true"])
    product.queue(card["ref"])
    reviewed = product.wait_for_card(card["ref"], "review", "failed")
    assert reviewed["status"] == "review", product.log_text()[-3000:]
    results = [request.results[0] for request in api.conversation("Read it")[1:]]
    assert [bool(result.get("is_error")) for result in results] == [False, True, False]
    assert product.pid("worker-0") == worker


STRICTER = """version: 1
ask:
  commands: [cat *]
  writes: [c.txt]
  rules: [L5]
"""
COMMANDS = [
    "ls",
    "cat a.txt",
    "grep -c a a.txt",
    "ls && cat a.txt | head -1",
    "echo x > c.txt",
    "echo x > d.txt",
    "python3 -c 'print(1)'",
]
REPLAY = """
import json
from board.access import list_calls
from board.actions.policies import Scope
from board.fragments.replays import replay
from board.models import Project, User
project = Project.objects.get(key="SIM")
steps = list_calls(User.objects.get(), project=project, limit=500)
found = replay(steps, Scope(project), TEXT)
rows = [(row.what, row.before, row.after) for row in found.rows]
print(json.dumps({"judged": found.result.judged, "unknown": found.unknown, "rows": rows}))
"""


def test_the_replay_names_exactly_the_calls_that_then_ask(shared: Parts, tmp_path: Path) -> None:
    product, api = shared
    product.project("SIM", make_repository(tmp_path / "origin.git", {"a.txt": "a\n"}))
    steps = [call("bash", command=command) for command in COMMANDS]

    def run(title: str) -> str:
        api.script(title, [*steps, report("done", "Done.")])
        ref: str = product.card("SIM", title, checks=["true"])["ref"]
        product.queue(ref)
        return ref

    first = product.wait_for_card(run("Before the edit"), "review", "failed")
    assert first["runs"][0]["status"] == "succeeded", product.log_text()[-3000:]
    code = REPLAY.replace("TEXT", repr(STRICTER))
    found = json.loads(product.manage("shell", "--no-imports", "-c", code))
    assert (found["judged"], found["unknown"]) == (len(COMMANDS) + 1, 0)  # and the report
    assert {(before, after) for _, before, after in found["rows"]} == {("allow", "ask")}
    product.put("/projects/SIM/policy", text=STRICTER, base=0)
    ref = run("After the edit")
    asked: list[str] = []
    for _ in found["rows"]:
        (question,) = product.until(
            lambda: product.get("/approvals?project=SIM&status=pending"),
            what=lambda: f"a question besides {asked}: {product.get(f'/cards/{ref}')}",
        )
        asked.append(question["input"]["command"])
        product.decide(question["id"])
    assert product.wait_for_card(ref, "review", "failed")["status"] == "review"
    assert sorted(asked) == sorted(what for what, _, _ in found["rows"])
    assert len(product.get("/approvals?project=SIM")) == len(asked)
