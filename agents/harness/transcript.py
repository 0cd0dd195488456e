"""The journal of a run with its copy in memory, so that a turn costs no read.

Nothing else in the harness writes to the journal, except the gate when it asks.
"""

from collections.abc import Sequence
from dataclasses import replace

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
from agents.harness.unicode import clean


class Transcript:
    """Every write is committed by the journal first, then seen in `entries`."""

    def __init__(self, journal: Journal, entries: list[Entry]) -> None:
        self._journal = journal
        self._entries = entries

    @classmethod
    async def open(cls, journal: Journal) -> "Transcript":
        """Read what the run has done so far."""
        return cls(journal, await journal.load())

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries by seq, as they are now."""
        return self._entries

    async def begin(self, kind: EntryKind, request: Json) -> int:
        """Commit an entry before it acts; see `Journal.begin`."""
        request = clean(request)
        seq = await self._journal.begin(kind, request)
        await self._append(Entry(seq, kind, EntryStatus.STARTED, request))
        return seq

    async def add(self, kind: EntryKind, request: Json, *, response: Json | None = None) -> None:
        """Commit an entry that is done at once; see `Journal.add`."""
        request, response = clean(request), clean(response)
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
        response = clean(response)
        await self._journal.finish(seq, response, status=status, usage=usage, model=model)
        self._entries[seq - 1] = replace(self._entries[seq - 1], status=status, response=response)

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
