"""What stops a run that gets nowhere: a watch for repeated calls. It reads, it never acts."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.harness.history import is_settled
from agents.harness.ports import Entry, EntryKind

NUDGE_AT = 3  # identical calls with identical results
STOP_AT = 10  # of the same call
STOP_AT_CYCLE = 30  # calls in a row that all repeat earlier ones, whichever they are
# Notes of the harness itself; any other note is news from outside, and the count starts anew.
AUTOMATIC = frozenset({"reminder", "todo", "loop"})
# What differs between two runs of the same command although nothing has changed.
VOLATILE = re.compile(
    r"\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds)\b"
    r"|\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b|\b0x[0-9a-f]+\b"
)


@dataclass
class RepetitionWatch:
    """Counts calls that gave exactly what the same call gave before.

    A call with a new input or a new result is progress and ends the streak. Reading twelve
    different files is work; running the same failing command ten times is not.
    """

    _seen: set[str] = field(default_factory=set)
    _streak: Counter[str] = field(default_factory=Counter)
    _latest: str = ""
    _position: int = 0

    def catch_up(self, entries: Sequence[Entry]) -> None:
        """Take note of the entries that were added since the last time; all of them are settled."""
        for entry in entries[self._position :]:
            if entry.kind is EntryKind.TOOL and is_settled(entry):
                self._add(_signature(entry))
            elif entry.kind is EntryKind.NOTE and entry.request["source"] not in AUTOMATIC:
                self._seen.clear()
                self._streak.clear()
        self._position = len(entries)

    @property
    def repeats(self) -> int:
        """How often the latest call has given the same result within the streak."""
        return self._streak[self._latest]

    @property
    def is_stuck(self) -> bool:
        """True when going on is pointless."""
        return self.repeats >= STOP_AT or self._streak.total() > STOP_AT_CYCLE

    def _add(self, signature: str) -> None:
        if signature not in self._seen:
            self._seen.add(signature)
            self._streak.clear()
        self._streak[signature] += 1
        self._latest = signature


def _signature(entry: Entry) -> str:
    text = (entry.response or {}).get("text", "")
    call = json.dumps([entry.request["tool"], entry.request["input"]], sort_keys=True)
    return hashlib.sha256(f"{call}\n{VOLATILE.sub('#', text)}".encode()).hexdigest()
