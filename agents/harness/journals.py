"""Journals without a database: in memory, and in a file of JSON lines."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agents.harness.ports import (
    Answer,
    Decision,
    Entry,
    EntryKind,
    EntryStatus,
    Json,
    Usage,
)


class MemoryJournal:
    """The steps of a run in a list, with everything that was booked on them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.usages: dict[int, Usage] = {}
        self.models: dict[int, str] = {}

    async def load(self) -> list[Entry]:
        return list(self.entries)

    async def begin(self, kind: EntryKind, request: Json) -> int:
        return self._append(Entry(self._next_seq, kind, EntryStatus.STARTED, request))

    async def add(self, kind: EntryKind, request: Json, *, response: Json | None = None) -> int:
        return self._append(Entry(self._next_seq, kind, EntryStatus.DONE, request, response))

    async def resume(self, seq: int) -> None:
        entry = self.entries[seq - 1]
        if entry.status is not EntryStatus.PENDING or entry.answer is None:
            raise ValueError(f"step {seq} is {entry.status} and cannot be resumed")
        self._replace(replace(entry, status=EntryStatus.STARTED))

    async def finish(
        self,
        seq: int,
        response: Json,
        *,
        status: EntryStatus = EntryStatus.DONE,
        usage: Usage | None = None,
        model: str = "",
    ) -> None:
        entry = self.entries[seq - 1]
        if entry.status not in {EntryStatus.STARTED, EntryStatus.PENDING}:
            raise ValueError(f"step {seq} is {entry.status} and cannot be finished")
        if usage is not None:
            self.usages[seq] = usage
            self.models[seq] = model
        self._replace(replace(entry, status=status, response=response))

    def ask(self, request: Json, *, seq: int | None = None) -> int:
        """Add a tool entry that waits for a person, or let entry `seq` wait again."""
        if seq is None:
            return self._append(Entry(self._next_seq, EntryKind.TOOL, EntryStatus.PENDING, request))
        self._replace(replace(self.entries[seq - 1], status=EntryStatus.PENDING, answer=None))
        return seq

    def answer(self, seq: int, answer: Answer) -> None:
        """Put a person's answer on a waiting entry."""
        self._replace(replace(self.entries[seq - 1], answer=answer))

    @property
    def _next_seq(self) -> int:
        return len(self.entries) + 1

    def _append(self, entry: Entry) -> int:
        self.entries.append(entry)
        return entry.seq

    def _replace(self, entry: Entry) -> None:
        self.entries[entry.seq - 1] = entry


class FileJournal(MemoryJournal):
    """A journal that survives its process: each state of each entry is one JSON line.

    The last line of an entry counts. A last line that a crash cut off is dropped.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
            path.write_bytes(b"".join(lines))
        for line in lines:
            entry = _from_json(json.loads(line))
            self.entries[entry.seq - 1 : entry.seq] = [entry]
        self._file = path.open("ab")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, entry: Entry) -> int:
        self._write(entry)
        return super()._append(entry)

    def _replace(self, entry: Entry) -> None:
        self._write(entry)
        super()._replace(entry)

    def _write(self, entry: Entry) -> None:
        self._file.write(json.dumps(asdict(entry)).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _from_json(fields: dict[str, Any]) -> Entry:
    answer = fields["answer"]
    if answer is not None:
        answer = Answer(**{**answer, "decision": Decision(answer["decision"])})
    return Entry(
        fields["seq"],
        EntryKind(fields["kind"]),
        EntryStatus(fields["status"]),
        fields["request"],
        fields["response"],
        answer,
    )
