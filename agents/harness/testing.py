"""The ports of the harness for tests: real objects that do what they are told, and remember it."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from agents.harness.errors import Waiting
from agents.harness.journals import MemoryJournal
from agents.harness.ports import (
    Answer,
    CommandResult,
    Decision,
    Json,
    ModelRequest,
    Reply,
    Tier,
    ToolCall,
    Usage,
    Verdict,
)

ScriptItem = Reply | Exception | Callable[[ModelRequest], Reply]


def text(words: str, *, stop_reason: str | None = "end_turn") -> Reply:
    """A reply of the model that only says something."""
    return reply([{"type": "text", "text": words}], stop_reason=stop_reason)


def calls(*uses: tuple[str, Json], stop_reason: str = "tool_use", start: int = 1) -> Reply:
    """A reply that calls tools; their ids are `<tool>_<start>` and on."""
    return reply(
        [
            {"type": "tool_use", "id": f"{tool}_{number}", "name": tool, "input": arguments}
            for number, (tool, arguments) in enumerate(uses, start)
        ],
        stop_reason=stop_reason,
    )


def reply(content: Sequence[Json], *, stop_reason: str | None) -> Reply:
    """A reply of exactly these blocks."""
    return Reply(content, stop_reason, Usage(input_tokens=10, output_tokens=5), "scripted")


class ScriptedModel:
    """A model that answers from a list: a reply, an exception to raise, or a function."""

    def __init__(self, script: Iterable[ScriptItem]) -> None:
        self._script: Iterator[ScriptItem] = iter(script)
        self.requests: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, *, on_text: Callable[[str, str], None]) -> Reply:
        self.requests.append(request)
        item = next(self._script)
        if isinstance(item, Exception):
            raise item
        answer = item if isinstance(item, Reply) else item(request)
        for block in answer.content:
            if block["type"] == "text":
                on_text("text", block["text"])
        return answer


class ScriptedGate:
    """A gate that judges with a function, and asks into a `MemoryJournal`."""

    def __init__(
        self, journal: MemoryJournal, judge: Callable[[ToolCall], Verdict] | None = None
    ) -> None:
        self._journal = journal
        self._judge = judge or (lambda call: verdict(Tier.ALLOW, call))
        self.checked: list[ToolCall] = []
        self.asked: list[tuple[int, ToolCall, Verdict]] = []

    async def check(self, call: ToolCall) -> Verdict:
        self.checked.append(call)
        return self._judge(call)

    async def ask(self, call: ToolCall, verdict: Verdict, *, seq: int | None) -> NoReturn:
        request = {"id": call.id, "tool": call.tool, "input": dict(call.input)}
        self.asked.append((self._journal.ask(request, seq=seq), call, verdict))
        raise Waiting("approval")

    def answer(
        self,
        decision: Decision,
        *,
        by: str = "Bob",
        comment: str = "",
        edited: Mapping[str, Any] | None = None,
    ) -> None:
        """Answer the latest question."""
        seq, _, shown = self.asked[-1]
        self._journal.answer(
            seq,
            Answer(decision, by, comment, edited, shown.digest, dict(shown.facts), shown.critical),
        )


def verdict(tier: Tier, call: ToolCall, *, reason: str = "a test rule", **facts: Any) -> Verdict:
    """A verdict whose digest covers the input of the call and `facts`."""
    digest = f"{call.tool} {sorted(call.input.items())} {sorted(facts.items())}"
    return Verdict(tier, "T1", [reason], digest, facts)


class ListSink:
    """A log that is a list of (kind, data)."""

    def __init__(self) -> None:
        self.items: list[tuple[str, dict[str, Any]]] = []
        self._lock = threading.Lock()

    def emit(self, kind: str, **data: Any) -> None:
        with self._lock:
            self.items.append((kind, data))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The data of the items of one kind."""
        return [data for name, data in self.items if name == kind]


class ListSteering:
    """Messages that wait in a list."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def take(self) -> list[str]:
        taken, self.messages = self.messages, []
        return taken


class NoShell:
    """A shell that must not be used; for tools that start no process."""

    sandbox_level = "none"

    def __init__(self) -> None:
        self.times_ready = 0

    def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        on_output: Callable[[bytes], None],
        cancel: threading.Event,
    ) -> CommandResult:
        raise AssertionError(f"no command was expected: {command}")

    def get_ready(self) -> None:
        """Nothing is there to be prepared; it counts."""
        self.times_ready += 1

    def close(self) -> None:
        """Nothing was."""


def all_texts(messages: Sequence[Json]) -> list[str]:
    """Every text in a message list, the results' too, in order."""
    return [
        block["text"] if block["type"] == "text" else block["content"]
        for message in messages
        for block in message["content"]
        if block["type"] in {"text", "tool_result"}
    ]
