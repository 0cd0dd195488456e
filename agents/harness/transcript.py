"""The journal of a run with its copy in memory, so that a turn costs no read.

Nothing else in the harness writes to the journal, except the gate when it asks. What is written
holds no secrets: they are taken out here, so neither the journal nor the model gets them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agents.harness.ports import (
    Entry,
    EntryKind,
    EntryStatus,
    Journal,
    Json,
    ToolCall,
    Usage,
    Verdict,
)
from agents.harness.redaction import Redactor
from agents.harness.unicode import clean

SIGNED = frozenset({"thinking", "redacted_thinking"})  # blocks of a reply; see hidden.py


class Transcript:
    """Every write is committed by the journal first, then seen in `entries`."""

    def __init__(self, journal: Journal, entries: list[Entry], redactor: Redactor) -> None:
        self._journal = journal
        self._entries = entries
        self._redactor = redactor

    @classmethod
    async def open(cls, journal: Journal, redactor: Redactor | None = None) -> "Transcript":
        """Read what the run has done so far."""
        return cls(journal, await journal.load(), redactor or Redactor())

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries by seq, as they are now."""
        return self._entries

    async def begin(self, kind: EntryKind, request: Json) -> int:
        """Commit an entry before it acts; see `Journal.begin`."""
        request = self._clean(request)
        seq = await self._journal.begin(kind, request)
        await self._append(Entry(seq, kind, EntryStatus.STARTED, request))
        return seq

    async def add(self, kind: EntryKind, request: Json, *, response: Json | None = None) -> None:
        """Commit an entry that is done at once; see `Journal.add`."""
        request, response = self._clean(request), self._clean(response)
        seq = await self._journal.add(kind, request, response=response)
        await self._append(Entry(seq, kind, EntryStatus.DONE, request, response))

    async def resume(self, seq: int) -> None:
        """Commit that an answered entry is about to run; see `Journal.resume`."""
        await self._journal.resume(seq)
        self._entries[seq - 1] = replace(self._entries[seq - 1], status=EntryStatus.STARTED)

    async def finish(
        self,
        seq: int,
        response: Json,
        *,
        status: EntryStatus = EntryStatus.DONE,
        usage: Usage | None = None,
        model: str = "",
    ) -> None:
        """Commit the outcome of an entry; see `Journal.finish`."""
        response = self._clean_response(seq, response)
        await self._journal.finish(seq, response, status=status, usage=usage, model=model)
        self._entries[seq - 1] = replace(self._entries[seq - 1], status=status, response=response)

    def _clean(self, value: Any) -> Any:
        return self._redactor.json(clean(value))

    def _clean_response(self, seq: int, response: Json) -> Json:
        """Redact an outcome, but for the thinking of a reply, which is signed and was looked at before."""
        cleaned: Json = self._clean(response)
        if self._entries[seq - 1].kind is EntryKind.MODEL and "content" in response:
            cleaned["content"] = [
                clean(block) if block.get("type") in SIGNED else redacted
                for block, redacted in zip(response["content"], cleaned["content"], strict=True)
            ]
        return cleaned

    async def _append(self, entry: Entry) -> None:
        if entry.seq == len(self._entries) + 1:
            self._entries.append(entry)
        else:  # whoever drives the run has added a note meanwhile
            self._entries = await self._journal.load()


def tool_request(call: ToolCall, verdict: Verdict | None) -> Json:
    """A call as the journal keeps it; with what the gate saw of it, if it came that far."""
    request: Json = {"id": call.id, "tool": call.tool, "input": dict(call.input)}
    if verdict is not None and verdict.record:
        request["gate"] = dict(verdict.record)
    return request
