"""The conversation of a run, made from its journal. Every rule of the Messages API is kept here.

The history is append-only: for a growing journal the blocks of each request are the blocks of the
request before it, byte for byte, and then more. The models that bind their thinking to what came
before it refuse anything else, and the prompt cache pays for it. So nothing here depends on the
time, the version or the settings: every text is in the journal as it is sent.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from agents.harness.ports import Entry, EntryKind, EntryStatus, Json, ToolCall

NO_OUTPUT = "(no output)"  # a tool_result without text reads like a lost one
NO_RESULT = "interrupted: this call has no result"
# After these the last tool_use of a turn may be cut off, whatever its input looks like.
CUT_SHORT = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
TOOL_USE_ID = re.compile(r"[a-zA-Z0-9_-]{1,128}")
THINKING = frozenset({"thinking", "redacted_thinking"})


class HistoryError(Exception):
    """A message list that the Messages API would refuse: a bug of ours, never the model's."""


@dataclass(frozen=True)
class Note:
    """A text that was said to the model between two of its turns; `source` says by whom."""

    source: str
    text: str


@dataclass(frozen=True)
class Turn:
    """One assistant turn with what followed it. `content` is what is sent back to the model."""

    seq: int
    stop_reason: str
    content: Sequence[Json]
    entries: Mapping[str, Entry]  # the tool entries of this turn, by tool_use id
    notes: Sequence[Note]
    lost_calls: bool = False  # a call was cut off and is not part of `content`
    hidden: frozenset[str] = frozenset()  # calls whose input held a secret, see `hidden.py`

    @cached_property
    def calls(self) -> list[ToolCall]:
        """The tool calls, in the order in which their results must be given."""
        return [
            ToolCall(block["id"], block["name"], block["input"])
            for block in self.content
            if block["type"] == "tool_use"
        ]

    @property
    def open_calls(self) -> list[ToolCall]:
        """The calls that have no result yet."""
        return [call for call in self.calls if not is_settled(self.entries.get(call.id))]

    def answer_blocks(self) -> list[Json]:
        """What the next user message holds: one result for each call, in order, then the notes."""
        results = [_result(call, self.entries.get(call.id)) for call in self.calls]
        return results + _texts(note.text for note in self.notes)


@dataclass(frozen=True)
class Conversation:
    """A journal, read: what was frozen at the start, and the turns."""

    system: Sequence[Json]
    tools: Sequence[Json]
    prompt: str
    opening: Sequence[Note]  # what was said before the first turn
    turns: Sequence[Turn]

    @property
    def last(self) -> Turn | None:
        """The turn that the next request answers, None before the first one."""
        return self.turns[-1] if self.turns else None

    @cached_property
    def messages(self) -> list[Json]:
        """The messages of the next request. Raises HistoryError if the API would refuse them."""
        opening = [self.prompt, *(note.text for note in self.opening)]
        pieces: list[tuple[str, list[Json]]] = [("user", _texts(opening))]
        for turn in self.turns:
            pieces += [("assistant", list(turn.content)), ("user", turn.answer_blocks())]
        messages = [
            {"role": role, "content": [block for _, blocks in group for block in blocks]}
            for role, group in groupby(
                (piece for piece in pieces if piece[1]), key=lambda piece: piece[0]
            )
        ]
        paused = self.last is not None and self.last.stop_reason == "pause_turn"
        validate(messages, paused=paused)
        return messages


def read(entries: Sequence[Entry], *, earlier: Conversation | None = None) -> Conversation:
    """Read a journal whose first entry is START.

    `earlier` is what was read of it before: only its last turn can have changed since.
    """
    start = entries[0].request
    opening: list[Note] = []
    turns: list[Turn] = []
    position = 1
    if earlier is not None and earlier.turns:
        opening, turns = list(earlier.opening), list(earlier.turns[:-1])
        position = earlier.turns[-1].seq - 1
    notes, calls = opening, dict[str, Entry]()
    for entry in entries[position:]:
        if entry.kind is EntryKind.MODEL and is_kept(entry):
            notes, calls = [], {}
            turns.append(_turn(entry, calls, notes))
        elif entry.kind is EntryKind.NOTE:
            notes.append(Note(entry.request["source"], entry.request["text"]))
        elif entry.kind is EntryKind.TOOL:
            calls[entry.request["id"]] = entry
    return Conversation(start["system"], start["tools"], start["prompt"], opening, turns)


def is_kept(entry: Entry) -> bool:
    """Is this model entry a turn of the conversation? A failed or dropped reply is not."""
    response = entry.response or {}
    return entry.status is EntryStatus.DONE and not response.get("dropped")


def is_settled(entry: Entry | None) -> bool:
    """Has this tool call an outcome that the model can be told?"""
    if entry is None:
        return False
    return entry.status in {EntryStatus.DONE, EntryStatus.UNKNOWN} and entry.response is not None


def has_call(content: Sequence[Json]) -> bool:
    """Does this content hold a tool_use, whole or not?"""
    return any(block["type"] == "tool_use" for block in content)


def is_worth_keeping(content: Sequence[Json]) -> bool:
    """Is a reply of use although it was cut off? It is not without text, or with half a call."""
    return not has_call(content) and bool(_sendable(content, "max_tokens"))


def normalize(content: Sequence[Json], *, used_ids: frozenset[str]) -> list[Json]:
    """Give each tool_use an id that the API takes and no earlier one has.

    The real API always does; small local servers repeat or leave out ids. This happens once,
    before the reply is stored.
    """
    seen = set(used_ids)
    blocks = []
    for block in content:
        if block.get("type") == "tool_use":
            wanted = str(block.get("id") or "call")
            name = wanted if TOOL_USE_ID.fullmatch(wanted) else "call"
            unique, number = name, 1
            while unique in seen:
                number += 1
                unique = f"{name[:100]}_{number}"
            seen.add(unique)
            blocks.append({**block, "id": unique})
        else:
            blocks.append(dict(block))
    return blocks


def validate(messages: Sequence[Json], *, paused: bool = False) -> None:
    """Raise HistoryError if the Messages API would refuse these messages.

    `paused`: the last turn stopped with `pause_turn`, so the assistant may have the last word.
    """
    expected: list[str] = []  # the tool_use ids that the next user message must answer
    used: set[str] = set()
    for index, message in enumerate(messages):
        role, blocks = message["role"], message["content"]
        if role != ("user", "assistant")[index % 2]:
            raise HistoryError(f"message {index} has the role {role}")
        if not blocks:
            raise HistoryError(f"message {index} is empty")
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            raise HistoryError(f"message {index} has an empty text block")
        if role == "user":
            _check_results(index, blocks, expected)
            expected = []
        else:
            expected = _check_uses(index, blocks, used)
    if not messages or (messages[-1]["role"] == "assistant" and not (paused and not expected)):
        raise HistoryError("the last message is not the user's")


def _check_results(index: int, blocks: Sequence[Json], expected: Sequence[str]) -> None:
    is_result = [block["type"] == "tool_result" for block in blocks]
    if is_result != sorted(is_result, reverse=True):
        raise HistoryError(f"message {index} has a tool_result behind another block")
    given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if given != list(expected):
        raise HistoryError(f"message {index} answers {given}, not {list(expected)}")


def _check_uses(index: int, blocks: Sequence[Json], used: set[str]) -> list[str]:
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    if any(block["type"] == "tool_result" for block in blocks):
        raise HistoryError(f"message {index} is the assistant's and has a tool_result")
    if len(set(ids)) != len(ids) or used & set(ids):
        raise HistoryError(f"message {index} repeats a tool_use id")
    if blocks[-1]["type"] in THINKING:
        raise HistoryError(f"message {index} ends with thinking")
    used.update(ids)
    return ids


def _turn(entry: Entry, calls: dict[str, Entry], notes: list[Note]) -> Turn:
    response = entry.response or {}
    reason = str(response["stop_reason"])
    is_cut = reason in CUT_SHORT and has_call(response["content"])
    content = _sendable(response["content"], reason)
    hidden = frozenset(response.get("hidden", ()))
    return Turn(entry.seq, reason, content, calls, notes, is_cut, hidden)


def _sendable(content: Sequence[Json], stop_reason: str) -> list[Json]:
    """Drop what the API refuses to read back: blank texts, cut-off calls, thinking at the end."""
    blocks = [
        block
        for block in content
        if not (block["type"] == "text" and not block["text"].strip())
        and not (block["type"] == "tool_use" and stop_reason in CUT_SHORT)
    ]
    while blocks and blocks[-1]["type"] in THINKING:
        blocks.pop()
    return blocks


def _result(call: ToolCall, entry: Entry | None) -> Json:
    response: Json = {"text": NO_RESULT, "is_error": True}
    if entry is not None and is_settled(entry) and entry.response is not None:
        response = entry.response
    block: Json = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": response["text"] if response["text"].strip() else NO_OUTPUT,
    }
    return {**block, "is_error": True} if response.get("is_error") else block


def _texts(texts: Iterable[str]) -> list[Json]:
    return [{"type": "text", "text": text} for text in texts if text.strip()]
