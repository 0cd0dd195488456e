"""A call runs if it is valid and allowed, once, and the model is told what came of it."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from agents.harness.calls import TITLE_LENGTH, title
from agents.harness.errors import Waiting
from agents.harness.journals import MemoryJournal
from agents.harness.ports import (
    Decision,
    EntryKind,
    EntryStatus,
    Tier,
    ToolCall,
    Verdict,
)
from agents.harness.testing import ScriptedGate, calls, verdict
from agents.harness.tools.registry import ToolContext
from tests.agents.harness.conftest import Rig

DONE = calls(("report_result", {"status": "done", "summary": "Fixed."}), start=99)


def judge(rig: Rig, rules: Mapping[str, Tier], **facts: Any) -> None:
    """Let the gate judge by the tool, or by the tool and x: `act` or `act b`."""

    def decide(call: ToolCall) -> Verdict:
        tier = rules.get(f"{call.tool} {call.input.get('x')}", rules.get(call.tool, Tier.ALLOW))
        return verdict(tier, call, **facts)

    rig.gate = _with_judge(rig, decide)


def _with_judge(rig: Rig, decide: Callable[[ToolCall], Verdict]) -> ScriptedGate:
    gate = ScriptedGate(rig.journal, decide)
    gate.asked = rig.gate.asked
    return gate


async def suspended(rig: Rig, *uses: tuple[str, dict[str, Any]]) -> None:
    """Run until a person is asked."""
    with pytest.raises(Waiting) as waiting:
        await rig.run(calls(*uses))
    assert waiting.value.reason == "approval"


async def test_an_unknown_tool_is_told_to_the_model(rig: Rig) -> None:
    await rig.run(calls(("fly", {})), DONE)
    told, is_error = rig.results()[0]
    assert told == (
        "There is no tool 'fly'. The tools are: act, bash, fail, look, put, report_result, todo_write."
    )
    assert is_error
    assert rig.gate.checked[0].tool == "report_result"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"y": 1}, "Additional properties are not allowed ('y' was unexpected)"),
        ({"x": 1}, "input['x']: 1 is not of type 'string'"),
    ],
)
async def test_a_bad_input_is_told_to_the_model(
    rig: Rig, arguments: dict[str, Any], complaint: str
) -> None:
    await rig.run(calls(("act", arguments)), DONE)
    assert complaint in rig.results()[0][0]
    assert rig.results()[0][0].endswith("Its fields: x (optional).")
    assert rig.calls.of("act") == []


async def test_a_tool_error_is_told_to_the_model(rig: Rig) -> None:
    await rig.run(calls(("fail", {})), DONE)
    assert rig.results()[0] == ("There is no such thing.", True)


async def test_a_bug_in_a_tool_is_logged_and_does_not_cost_the_run(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = await rig.run(calls(("fail", {"x": "bug"})), DONE)
    assert outcome.status == "done"
    assert rig.results()[0][1]
    assert "RuntimeError: a bug" in caplog.text


async def test_a_denied_call_never_runs_and_the_model_reads_why(rig: Rig) -> None:
    judge(rig, {"act": Tier.DENY})
    await rig.run(calls(("act", {"x": "a"})), DONE)
    assert rig.calls.of("act") == []
    assert rig.results()[0] == ("Denied by the policy (rule T1), not run: a test rule", True)


async def test_a_question_stops_the_turn_there(rig: Rig) -> None:
    judge(rig, {"act b": Tier.ASK})
    uses = [(tool, {"x": x}) for tool, x in (("act", "a"), ("act", "b"), ("act", "c"))]
    await suspended(rig, *uses)
    assert rig.calls.of("act") == [{"x": "a"}]
    assert rig.turns == []


async def test_reads_before_a_question_have_run_when_it_is_asked(rig: Rig) -> None:
    judge(rig, {"look b": Tier.ASK})
    await suspended(rig, ("look", {"x": "a"}), ("look", {"x": "b"}), ("look", {"x": "c"}))
    assert rig.calls.of("look") == [{"x": "a"}]


async def test_taking_up_a_run_that_nobody_has_answered_waits_again(rig: Rig) -> None:
    judge(rig, {"act": Tier.ASK})
    await suspended(rig, ("act", {}))
    with pytest.raises(Waiting):
        await rig.run()
    assert len(rig.gate.asked) == 1


async def test_an_approved_call_runs_once_and_then_the_rest_of_the_turn(rig: Rig) -> None:
    judge(rig, {"act a": Tier.ASK})
    await suspended(rig, ("act", {"x": "a"}), ("act", {"x": "b"}))
    rig.gate.answer(Decision.APPROVED, comment="Fine with me.")
    await rig.run(DONE)
    assert rig.calls.of("act") == [{"x": "a"}, {"x": "b"}]
    assert rig.results()[0] == ("[Approved by Bob. Bob says: Fine with me.]\ndid a", False)


async def test_an_edited_call_runs_as_edited_and_the_model_is_told(rig: Rig) -> None:
    judge(rig, {"act": Tier.ASK}, cwd="/w", sandbox="bubblewrap", policy="1", scripts={})
    await suspended(rig, ("act", {"x": "a"}))
    rig.gate.answer(Decision.APPROVED, edited={"x": "b"})
    await rig.run(DONE)
    assert rig.calls.of("act") == [{"x": "b"}]
    told = rig.results()[0][0]
    assert told == '[Bob changed this call before approving it. What ran: {"x": "b"}.]\ndid b'
    assert rig.model.requests[0].messages[1]["content"][0]["input"] == {"x": "a"}


async def test_an_edit_that_the_tool_does_not_take_is_not_run(rig: Rig) -> None:
    judge(rig, {"act": Tier.ASK})
    await suspended(rig, ("act", {"x": "a"}))
    rig.gate.answer(Decision.APPROVED, edited={"x": 1})
    await rig.run(DONE)
    assert rig.calls.of("act") == []
    assert rig.results()[0][0].startswith("Bob changed this call, but it could not be run so.")


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (Decision.DENIED, "Bob denied this, it was not run: Too risky."),
        (
            Decision.EXPIRED,
            "Not run: this needed an approval, and nobody answered before it expired."
            " Do not make the same call again; go on without it, or report what you need.",
        ),
        (Decision.CANCELLED, "Not run: the question for approval was withdrawn."),
        (
            Decision.RETURNED,
            "Not run yet: Bob wants to know something before deciding.\n\nToo risky.\n\n"
            "Answer in words, in your next message. If you still need this call, make it again in"
            " that same message: it will be asked about again, with your answer beside it.",
        ),
    ],
)
async def test_the_model_is_told_what_was_decided(rig: Rig, decision: Decision, told: str) -> None:
    judge(rig, {"act": Tier.ASK})
    await suspended(rig, ("act", {"x": "a"}))
    rig.gate.answer(decision, comment="Too risky.")
    await rig.run(DONE)
    assert rig.calls.of("act") == []
    assert rig.results()[0] == (told, True)


async def test_a_call_that_changed_since_it_was_approved_is_asked_again(rig: Rig) -> None:
    judge(rig, {"act": Tier.ASK}, scripts={"a.sh": "1"})
    await suspended(rig, ("act", {"x": "a"}))
    rig.gate.answer(Decision.APPROVED)
    judge(rig, {"act": Tier.ASK}, scripts={"a.sh": "2"})
    with pytest.raises(Waiting):
        await rig.run()
    assert rig.calls.of("act") == []
    (first, *_), (second, *_) = rig.gate.asked
    assert first == second
    rig.gate.answer(Decision.APPROVED)
    await rig.run(DONE)
    assert rig.calls.of("act") == [{"x": "a"}]


@pytest.mark.parametrize(
    ("changed", "holds"),
    [
        ({}, True),
        ({"scripts": {}}, True),
        ({"scripts": {"a.sh": "2"}}, False),
        ({"scripts": {"a.sh": "1", "b.sh": "1"}}, False),
        ({"cwd": "/elsewhere"}, False),
        ({"sandbox": "none"}, False),
        ({"policy": "2"}, False),
        ({"paths": {"a": "/w/a", "b": "/w/b"}}, True),
        ({"paths": {"a": "/elsewhere"}}, False),
    ],
)
async def test_an_edited_call_may_only_use_what_the_person_was_shown(
    rig: Rig, *, changed: dict[str, Any], holds: bool
) -> None:
    shown = {
        "cwd": "/w",
        "sandbox": "bubblewrap",
        "policy": "1",
        "scripts": {"a.sh": "1"},
        "paths": {"a": "/w/a"},
    }
    judge(rig, {"act": Tier.ASK}, **shown)
    await suspended(rig, ("act", {"x": "a"}))
    rig.gate.answer(Decision.APPROVED, edited={"x": "b"})
    judge(rig, {"act": Tier.ASK}, **{**shown, **changed})
    if holds:
        await rig.run(DONE)
    else:
        with pytest.raises(Waiting):
            await rig.run()
    assert rig.calls.of("act") == ([{"x": "b"}] if holds else [])


@pytest.mark.parametrize("was_critical", [True, False])
async def test_an_edit_that_makes_a_call_critical_is_asked_about_as_such(
    rig: Rig, *, was_critical: bool
) -> None:
    facts: dict[str, Any] = {"cwd": "/w", "sandbox": "none", "policy": "1", "scripts": {}}

    def decide(call: ToolCall) -> Verdict:
        found = verdict(Tier.ASK if call.tool == "act" else Tier.ALLOW, call, **facts)
        return replace(found, critical=was_critical or call.input.get("x") == "b")

    rig.gate = _with_judge(rig, decide)
    await suspended(rig, ("act", {"x": "a"}))
    rig.gate.answer(Decision.APPROVED, edited={"x": "b"})
    if was_critical:
        await rig.run(DONE)
        assert rig.calls.of("act") == [{"x": "b"}]
        return
    with pytest.raises(Waiting):
        await rig.run()
    assert rig.calls.of("act") == []
    assert rig.gate.asked[-1][2].critical


async def test_an_approval_does_not_overrule_a_denial_by_the_policy(rig: Rig) -> None:
    judge(rig, {"act": Tier.ASK})
    await suspended(rig, ("act", {"x": "a"}))
    rig.gate.answer(Decision.APPROVED, edited={"x": "b"})
    judge(rig, {"act": Tier.DENY})
    await rig.run(DONE)
    assert rig.calls.of("act") == []
    assert "Denied by the policy" in rig.results()[0][0]


async def test_an_approval_that_became_a_rule_holds_although_the_policy_has_changed(
    rig: Rig,
) -> None:
    judge(rig, {"act": Tier.ASK}, policy="1")
    await suspended(rig, ("act", {"x": "a"}))
    rig.gate.answer(Decision.APPROVED)
    judge(rig, {"act": Tier.ALLOW}, policy="2")
    await rig.run(DONE)
    assert rig.calls.of("act") == [{"x": "a"}]


async def interrupted(rig: Rig, tool: str) -> None:
    """Leave a journal as a worker does that dies while `tool` runs."""
    await rig.journal.add(EntryKind.START, {"system": [], "tools": [], "prompt": "x"})
    seq = await rig.journal.begin(EntryKind.MODEL, {"messages": 1})
    content = list(calls((tool, {"x": "a"})).content)
    await rig.journal.finish(seq, {"content": content, "stop_reason": "tool_use"})
    request = {"id": f"{tool}_1", "tool": tool, "input": {"x": "a"}}
    await rig.journal.begin(EntryKind.TOOL, request)


@pytest.mark.parametrize("tool", ["look", "act"])
async def test_what_is_not_repeatable_is_not_repeated(rig: Rig, tool: str) -> None:
    await interrupted(rig, tool)
    await rig.run(DONE)
    assert rig.calls.of(tool) == []
    assert "interrupted, outcome unknown" in rig.results()[0][0]
    assert rig.journal.entries[2].status is EntryStatus.UNKNOWN


async def test_what_is_repeatable_runs_again_in_its_own_step(rig: Rig) -> None:
    await interrupted(rig, "put")
    await rig.run(DONE)
    assert rig.calls.of("put") == [{"x": "a"}]
    assert (rig.journal.entries[2].status, rig.results()[0][0]) == (EntryStatus.DONE, "put a")


@pytest.mark.parametrize("tier", [Tier.ASK, Tier.DENY])
async def test_what_is_no_longer_allowed_is_not_repeated(rig: Rig, tier: Tier) -> None:
    await interrupted(rig, "put")
    judge(rig, {"put": tier})
    await rig.run(DONE)
    assert rig.calls.of("put") == []


async def test_reads_of_one_turn_run_at_once_and_answer_in_order(rig: Rig) -> None:
    meeting = threading.Barrier(3, timeout=30)

    def meet(_context: ToolContext, its: Mapping[str, Any]) -> str:
        meeting.wait()
        return str(its["x"])

    rig.tools["meet"] = rig.calls.tool("meet", meet, read_only=True)
    await rig.run(calls(*[("meet", {"x": x}) for x in "abc"]), DONE)
    assert [told for told, _ in rig.results()][:3] == ["a", "b", "c"]


async def test_a_write_waits_for_the_reads_before_it(rig: Rig) -> None:
    seen = []

    def write(_context: ToolContext, _its: Mapping[str, Any]) -> str:
        seen.append([told for told, _ in rig.results()])
        return ""

    rig.tools["write"] = rig.calls.tool("write", write)
    await rig.run(calls(("look", {"x": "a"}), ("look", {}), ("write", {}), ("look", {})), DONE)
    assert seen == [["saw a", "saw "]]


async def test_more_reads_than_may_run_at_once_run_all_the_same(rig: Rig) -> None:
    uses = [("look", {"x": str(number)}) for number in range(20)]
    await rig.run(calls(*uses), DONE)
    assert [told for told, _ in rig.results()][:20] == [f"saw {number}" for number in range(20)]


async def test_a_cancelled_run_waits_until_its_tool_has_stopped(rig: Rig) -> None:
    running, stopped = threading.Event(), threading.Event()

    def work(context: ToolContext, _its: Mapping[str, Any]) -> str:
        running.set()
        context.cancel.wait(10)
        stopped.set()
        return "cancelled"

    rig.tools["work"] = rig.calls.tool("work", work)
    task = asyncio.create_task(rig.run(calls(("work", {}))))
    await asyncio.to_thread(running.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()
    assert rig.journal.entries[-1].status is EntryStatus.STARTED


class LeaseLostError(Exception):
    """Another worker has the run."""


class LostJournal(MemoryJournal):
    """The lease is lost while the tools of the first turn run."""

    async def finish(self, seq: int, *args: Any, **options: Any) -> None:
        if self.entries[seq - 1].kind is EntryKind.TOOL:
            raise LeaseLostError
        await super().finish(seq, *args, **options)


async def test_a_run_that_lost_its_lease_stops_the_calls_that_still_run(rig: Rig) -> None:
    begun, ended = threading.Event(), []

    def work(context: ToolContext, its: Mapping[str, Any]) -> str:
        if its["x"] == "slow":
            begun.set()
            ended.append(context.cancel.wait(10))
        return str(begun.wait(30))

    rig.journal = LostJournal()
    rig.tools["work"] = rig.calls.tool("work", work, read_only=True)
    with pytest.raises(LeaseLostError):
        await rig.run(calls(("work", {"x": "quick"}), ("work", {"x": "slow"})))
    assert ended == [True]


async def test_the_log_shows_each_call_once_with_its_output_and_its_end(rig: Rig) -> None:
    def talk(context: ToolContext, _its: Mapping[str, Any]) -> str:
        context.on_output("half")
        return "whole"

    rig.tools["talk"] = rig.calls.tool("talk", talk)
    judge(rig, {"talk": Tier.ASK})
    await suspended(rig, ("talk", {"x": "a"}))
    rig.gate.answer(Decision.APPROVED)
    await rig.run(DONE)
    assert rig.sink.of("call")[0] == {
        "call": "talk_1",
        "tool": "talk",
        "title": "",
        "input": {"x": "a"},
    }
    assert [item["call"] for item in rig.sink.of("call")] == ["talk_1", "report_result_99"]
    assert rig.sink.of("output") == [{"call": "talk_1", "text": "half"}]
    result = rig.sink.of("result")[0]
    assert (result["text"], result["is_error"]) == ("whole", False)


def test_a_title_is_one_short_line() -> None:
    call = ToolCall("1", "bash", {"command": "a\n" * 200})
    assert title(call).startswith("a a a")
    assert len(title(call)) == TITLE_LENGTH
