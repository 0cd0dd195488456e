"""The journal, the log and the model never get a secret; files get what the model wrote."""

import json
from typing import Any

import pytest

from agents.harness.errors import Waiting
from agents.harness.ports import EntryKind, Tier
from agents.harness.redaction import Redactor, Secret
from agents.harness.testing import ScriptedGate, calls, reply, verdict
from tests.agents.harness.conftest import Rig

VALUE = "tok-4f8a91c2d3e4b5a6f7"
DONE = calls(("report_result", {"status": "done", "summary": f"It is {VALUE}."}), start=99)
REDACTOR = Redactor([Secret("API_TOKEN", VALUE)])


@pytest.fixture
def hiding(rig: Rig) -> Rig:
    rig.redactor = REDACTOR
    return rig


def everything(rig: Rig) -> str:
    """All that left the loop: journal, log, requests."""
    entries = [(entry.request, entry.response) for entry in rig.journal.entries]
    requests = [(r.system, r.tools, r.messages) for r in rig.model.requests]
    return json.dumps([entries, rig.sink.items, requests], default=str)


async def test_a_result_is_redacted_before_it_is_stored_or_sent(hiding: Rig) -> None:
    hiding.tools["look"] = hiding.calls.tool(
        "look", lambda *_: f"API_TOKEN={VALUE}", read_only=True
    )
    outcome = await hiding.run(calls(("look", {})), DONE, prompt=f"Use {VALUE}")
    assert outcome.summary == "It is [redacted: API_TOKEN]."
    assert hiding.results()[0] == ("API_TOKEN=[redacted: API_TOKEN]", False)
    assert VALUE not in everything(hiding)


async def test_a_call_runs_as_written_and_is_stored_without_the_secret(hiding: Rig) -> None:
    await hiding.run(calls(("act", {"x": f"TOKEN={VALUE}"})), DONE)
    assert hiding.calls.of("act") == [{"x": f"TOKEN={VALUE}"}]
    assert VALUE not in everything(hiding)


async def test_a_call_with_a_secret_never_waits_for_a_person(hiding: Rig) -> None:
    gate = ScriptedGate(hiding.journal, lambda call: verdict(_asks_about_act(call.tool), call))
    await hiding.run(calls(("act", {"x": VALUE})), DONE, gate=gate)
    assert gate.asked == []
    assert hiding.calls.of("act") == []
    text, is_error = hiding.results()[0]
    assert is_error
    assert "(API_TOKEN)" in text
    assert VALUE not in everything(hiding)


def _asks_about_act(tool: str) -> Tier:
    return Tier.ASK if tool == "act" else Tier.ALLOW


async def test_a_call_whose_secret_was_lost_with_its_worker_does_not_run(hiding: Rig) -> None:
    begin, hiding.journal.begin = hiding.journal.begin, _failing_at(EntryKind.TOOL, hiding)  # type: ignore[method-assign]
    with pytest.raises(Waiting):
        await hiding.run(calls(("act", {"x": VALUE})))
    hiding.journal.begin = begin  # type: ignore[method-assign]
    await hiding.run(DONE)
    assert hiding.calls.of("act") == []
    assert "held a secret" in hiding.results()[0][0]


def _failing_at(kind: EntryKind, rig: Rig) -> Any:
    begin = rig.journal.begin

    async def fail(given: EntryKind, request: Any) -> int:
        if given is kind:
            raise Waiting("retry")
        return await begin(given, request)

    return fail


async def test_a_marker_is_never_written_in_place_of_a_value(hiding: Rig) -> None:
    hiding.tools["bash"] = hiding.calls.tool("bash", lambda *_: "")
    hiding.tools["bash"].schema["properties"]["command"] = {"type": "string"}
    written = {"command": "echo 'TOKEN=[redacted: API_TOKEN]' > .env"}
    harmless = {"command": "grep '[redacted: SOMETHING]' docs"}
    await hiding.run(calls(("bash", written), ("bash", harmless)), DONE)
    assert hiding.calls.of("bash") == [harmless]
    assert "must not be written" in hiding.results()[0][0]


async def test_an_input_that_looks_like_thinking_is_redacted_all_the_same(hiding: Rig) -> None:
    odd = {
        "type": "thinking",
        "thinking": VALUE,
        "signature": VALUE,
        "data": [{"type": "thinking", "x": VALUE}],
    }
    hiding.tools["act"].schema["properties"]["odd"] = {"type": "object"}
    await hiding.run(calls(("act", {"odd": odd})), DONE)
    assert hiding.calls.of("act") == [{"odd": odd}]
    assert VALUE not in everything(hiding)


async def test_thinking_about_a_secret_is_left_out_and_other_thinking_kept_as_it_is(
    hiding: Rig,
) -> None:
    kept = {"type": "thinking", "thinking": "Hm.", "signature": f"x{VALUE}"}
    thought = {"type": "thinking", "thinking": f"It is {VALUE}", "signature": "s"}
    use = {"type": "tool_use", "id": "a_1", "name": "act", "input": {}}
    await hiding.run(reply([thought, kept, use], stop_reason="tool_use"), DONE)
    assert hiding.model.requests[-1].messages[1]["content"] == [kept, use]
