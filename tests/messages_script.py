"""What the stand-in of the Messages API answers: turns, faults, and whose turn it is.

api.script("fix the bug", [
    rate_limited(retry_after=0),
    say("I look").call("read_file", path="a.py"),
    call("bash", command="pytest"),
    lambda request: say("Denied, I see") if "denied" in request.last_text else say("Fine"),
    report("done", "Fixed"),
])
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tests.messages_rules import Json, Prefix, blocks, prefixes


@dataclass(frozen=True)
class Request:
    """One request as it came. `body` is parsed, `raw` is what was on the wire."""

    path: str
    headers: Mapping[str, str]
    body: Json
    raw: bytes = b""

    @cached_property
    def prefixes(self) -> list[Prefix]:
        """The request up to each of its blocks."""
        return prefixes(self.body)

    @property
    def first_text(self) -> str:
        """The first text of the first user message: what a script is matched on."""
        content = self.body["messages"][0]["content"]
        if isinstance(content, str):
            return content
        return next((block["text"] for block in content if block["type"] == "text"), "")

    @property
    def last_text(self) -> str:
        """Everything in the last message as text: results, then notes."""
        return "\n".join(texts(self.body["messages"][-1]["content"]))

    @property
    def results(self) -> list[Json]:
        """The tool_result blocks of the last message."""
        content = self.body["messages"][-1]["content"]
        return [block for block in content if block["type"] == "tool_result"]


@dataclass(frozen=True)
class Turn:
    """One answer. Built by `say`, `call`, ... and refined by the methods, each giving a new one."""

    blocks: Sequence[Json] = ()
    stop_reason: str | None = None  # None: tool_use or end_turn, by what is in it
    status: int = 200
    error: Json | None = None  # the body for another status, or the error event in a stream
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: str = "whole"  # whole, cut, no_stop, silence, error, broken: how the stream ends
    raw_inputs: Mapping[int, str] = field(default_factory=dict)  # by block, instead of its input
    seconds: float = 0.0  # before the first byte
    delta_seconds: float = 0.0  # between two deltas
    delta_characters: int = 2000
    usage: Mapping[str, int] = field(default_factory=dict)
    stop_details: Json | None = None

    def say(self, text: str) -> "Turn":
        """And say this."""
        return self._with({"type": "text", "text": text})

    def think(self, thinking: str) -> "Turn":
        """And think this; the server signs it for the conversation as it stands."""
        return self._with({"type": "thinking", "thinking": thinking, "signature": ""})

    def call(self, tool: str, /, **arguments: Any) -> "Turn":
        """And call this tool."""
        return self._with({"type": "tool_use", "name": tool, "input": arguments})

    def stops(self, reason: str, **details: Any) -> "Turn":
        """Stop for this reason instead of the natural one."""
        return replace(self, stop_reason=reason, stop_details=details or None)

    def after(self, seconds: float) -> "Turn":
        """Answer after this time."""
        return replace(self, seconds=seconds)

    def slowly(self, seconds: float, *, characters: int = 20) -> "Turn":
        """Send small deltas, `seconds` apart."""
        return replace(self, delta_seconds=seconds, delta_characters=characters)

    def costs(self, **usage: int) -> "Turn":
        """Report this usage (`input_tokens=...`) instead of what was counted."""
        return replace(self, usage=usage)

    @property
    def reason(self) -> str:
        """The stop reason that is sent."""
        calls = any(block["type"] == "tool_use" for block in self.blocks)
        return self.stop_reason or ("tool_use" if calls else "end_turn")

    @property
    def is_kept(self) -> bool:
        """Will the client's next request contain this turn? A fault or a cut-off call is lost."""
        if self.status != 200 or self.ending != "whole" or not self.blocks or self.raw_inputs:
            return False
        return self.reason != "max_tokens" or self.blocks[-1]["type"] == "text"

    def _with(self, block: Json) -> "Turn":
        return replace(self, blocks=[*self.blocks, block])


Answer = Turn | Callable[[Request], Turn]


def say(text: str) -> Turn:
    """A turn that says something."""
    return Turn().say(text)


def think(thinking: str) -> Turn:
    """A turn that begins with thinking."""
    return Turn().think(thinking)


def call(tool: str, /, **arguments: Any) -> Turn:
    """A turn that calls a tool."""
    return Turn().call(tool, **arguments)


def report(status: str = "done", summary: str = "Done.", remaining: str | None = None) -> Turn:
    """A turn that ends the task."""
    more = {} if remaining is None else {"remaining": remaining}
    return Turn().call("report_result", status=status, summary=summary, **more)


def nothing() -> Turn:
    """An end_turn without any content."""
    return Turn()


def refused(status: int, kind: str, message: str, *, code: str = "", **headers: str) -> Turn:
    """An error response. `retry_after="3"` becomes the header `retry-after`."""
    error: Json = {"type": kind, "message": message}
    if code:
        error["details"] = {"error_code": code}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Turn(status=status, error=error, headers=named)


def rate_limited(retry_after: float | None = 1) -> Turn:
    """A 429."""
    headers = {} if retry_after is None else {"retry_after": str(retry_after)}
    message = "This request would exceed your organization's rate limit."
    return refused(429, "rate_limit_error", message, **headers)


def overloaded() -> Turn:
    """A 529."""
    return refused(529, "overloaded_error", "Overloaded")


def failing(status: int = 500) -> Turn:
    """A server error."""
    return refused(status, "api_error", "Internal server error")


def cut(turn: Turn) -> Turn:
    """The connection breaks in the middle of this turn."""
    return replace(turn, ending="cut")


def unfinished(turn: Turn) -> Turn:
    """The stream ends cleanly in the middle of this turn, without message_stop."""
    return replace(turn, ending="no_stop")


def silent(turn: Turn | None = None) -> Turn:
    """Nothing more comes, in the middle of this turn or from the start, and nobody hangs up."""
    return replace(turn or Turn(), ending="silence")


def broken(turn: Turn) -> Turn:
    """An event in the middle of this turn is not JSON."""
    return replace(turn, ending="broken")


def error_event(kind: str, message: str = "It happened.", turn: Turn | None = None) -> Turn:
    """An `error` event in the middle of a stream that began with 200."""
    return replace(turn or say("x"), ending="error", error={"type": kind, "message": message})


def cut_off_call(tool: str, raw_input: str) -> Turn:
    """A tool call whose input ends at the output limit."""
    turn = call(tool)
    return replace(turn, raw_inputs={0: raw_input}, stop_reason="max_tokens")


def broken_call(tool: str, raw_input: str) -> Turn:
    """A tool call whose input is not JSON although the model stopped to use it."""
    return replace(call(tool), raw_inputs={0: raw_input})


class Script:
    """The turns for every conversation that begins with a matching text.

    Which turn is next follows from the request itself, so that any number of conversations may
    play the same script at once, and a request that is sent again gets the same answer again.
    """

    def __init__(
        self,
        match: str | Callable[[str], bool],
        turns: Sequence[Answer],
        *,
        then: Answer | None = None,
    ) -> None:
        self._match = match
        self._turns = list(turns)
        self._then = then
        self._served: dict[str, int] = {}  # position of the kept turn that answered this prefix
        self._lost: dict[str, int] = {}  # turns that answered behind this prefix and were lost

    def matches(self, first_text: str) -> bool:
        """Is this script for a conversation that begins so?"""
        if isinstance(self._match, str):
            return self._match in first_text
        return self._match(first_text)

    def next_turn(self, request: Request) -> Turn | None:
        """The answer to `request`, None when the script has come to its end."""
        digest = request.prefixes[-1].digest
        if digest in self._served:
            return self._turn(self._served[digest], request)
        parent = self._parent(request)
        behind = parent or request.first_text
        position = self._served.get(parent, -1) + 1 + self._lost.get(behind, 0)
        turn = self._turn(position, request)
        if turn is not None and turn.is_kept:
            self._served[digest] = position
        else:
            self._lost[behind] = self._lost.get(behind, 0) + 1
        return turn

    def _parent(self, request: Request) -> str:
        """The latest earlier request whose answer is in this one."""
        next_places = [where for where, _ in blocks(request.body)][1:]
        for prefix, next_place in reversed(list(zip(request.prefixes, next_places, strict=False))):
            if next_place == "assistant" and prefix.digest in self._served:
                return prefix.digest
        return ""

    def _turn(self, position: int, request: Request) -> Turn | None:
        answer = self._turns[position] if position < len(self._turns) else self._then
        return answer(request) if callable(answer) else answer


def texts(content: Any) -> list[str]:
    """Every text in the content of a message."""
    if isinstance(content, str):
        return [content]
    found = []
    for block in content:
        if block["type"] == "tool_result":
            found += texts(block.get("content", ""))
        elif "text" in block:
            found.append(block["text"])
    return found


def from_file(entries: Sequence[Json]) -> list[Script]:
    """Scripts from parsed YAML or JSON.

    - match: fix the bug
      turns:
        - say: I look
          calls: [{read_file: {path: a.py}}]
        - fault: {status: 429, type: rate_limit_error, message: slow down, retry_after: "2"}
        - report: {status: done, summary: Fixed}
          after: 0.5
      then: {say: Nothing more to do.}
    """
    return [
        Script(
            entry["match"],
            [_turn_from(turn) for turn in entry["turns"]],
            then=_turn_from(entry["then"]) if "then" in entry else None,
        )
        for entry in entries
    ]


def _turn_from(fields: Json) -> Turn:
    if "fault" in fields:
        fault = dict(fields["fault"])
        turn = refused(fault.pop("status"), fault.pop("type"), fault.pop("message", ""), **fault)
        return turn.after(fields.get("after", 0))
    turn = think(fields["think"]) if "think" in fields else Turn()
    if "say" in fields:
        turn = turn.say(fields["say"])
    for use in fields.get("calls", []):
        for tool, arguments in use.items():
            turn = turn.call(tool, **arguments)
    if "report" in fields:
        turn = turn.call("report_result", **fields["report"])
    if "stops" in fields:
        turn = turn.stops(fields["stops"])
    return turn.after(fields.get("after", 0)).slowly(
        fields.get("slowly", 0), characters=20 if fields.get("slowly") else 2000
    )
