"""Acceptance checks on a machine without a sandbox: they run what an agent wrote, so a person is asked.

The question goes the way of every other one: a pending step, an approval, the run put aside. Its
step belongs to no turn of the model, so the conversation never shows it.
"""

import hashlib
import json
from collections.abc import Sequence

from agents.harness.errors import FailureKind, FatalError
from agents.harness.ports import (
    Answer,
    Decision,
    Entry,
    EntryKind,
    EntryStatus,
    Gate,
    Journal,
    Json,
    Tier,
    ToolCall,
    Verdict,
)

TOOL = "acceptance_checks"
REASON = "There is no sandbox on this machine, and the checks run code that the agent has changed"


class CheckPermission:
    """A person's permission to run the checks on exactly the files of one commit."""

    def __init__(self, journal: Journal, gate: Gate) -> None:
        self._journal = journal
        self._gate = gate
        self._seq: int | None = None

    async def obtain(self, checks: Sequence[str], *, head: str, cwd: str) -> None:
        """Return when the checks may run now.

        Raises Waiting when a person has been asked, and FatalError when one has said no.
        """
        entries = await self._journal.load()
        call = ToolCall(f"checks-{_round(entries)}", TOOL, {"commands": list(checks)})
        entry = next((entry for entry in entries if entry.request.get("id") == call.id), None)
        verdict = _verdict(call, head=head, cwd=cwd)
        if entry is None:
            await self._gate.ask(call, verdict, seq=None)
        elif entry.status is EntryStatus.PENDING:
            await self._take_up(call, entry, verdict)
        self._seq = None if entry.status is EntryStatus.DONE else entry.seq

    async def _take_up(self, call: ToolCall, entry: Entry, verdict: Verdict) -> None:
        answer = entry.answer
        if answer is not None and answer.decision is not Decision.APPROVED:
            await self._journal.finish(
                entry.seq, {"text": "Not run.", "is_error": True, "details": {}}
            )
            raise FatalError(_refusal(answer), kind=FailureKind.POLICY)
        if answer is None or answer.digest != verdict.digest:
            await self._gate.ask(call, verdict, seq=entry.seq)
        await self._journal.resume(entry.seq)

    async def close(self, results: Sequence[Json]) -> None:
        """Record that the checks have run."""
        if self._seq is not None:
            text = ", ".join(f"{result['command']}: {result['exit_code']}" for result in results)
            await self._journal.finish(self._seq, {"text": text, "is_error": False, "details": {}})


def _round(entries: Sequence[Entry]) -> int:
    """Return which run of the checks this is: each time that the agent is told, another begins."""
    told = [
        entry
        for entry in entries
        if entry.kind is EntryKind.NOTE and entry.request.get("source") == "verification"
    ]
    return len(told) + 1


def _verdict(call: ToolCall, *, head: str, cwd: str) -> Verdict:
    facts = {
        "cwd": cwd,
        "paths": {},
        "scripts": {"the agent's work": head},
        "sandbox": "none",
        "policy": "",
    }
    text = json.dumps([call.tool, dict(call.input), facts], sort_keys=True)
    effects = [{"argv": ["bash", "-c", command]} for command in call.input["commands"]]
    return Verdict(
        Tier.ASK, "sandbox", [REASON], hashlib.sha256(text.encode()).hexdigest(), facts, effects
    )


def _refusal(answer: Answer) -> str:
    why = f": {answer.comment}" if answer.comment else "."
    return f"{answer.by} did not let the acceptance checks run without a sandbox{why}"
