"""A stream of Messages API events, put together to one whole reply.

Written here because the SDK's own accumulation hides what matters: it repairs a cut-off tool
input to a plausible one, takes a stream without an end for a whole one, and parses the input anew
for each delta.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agents.harness.errors import TransientError
from agents.harness.models import failures
from agents.harness.ports import Json, Reply, Usage

# Where the deltas of a block are put. `signature_delta` comes whole, and once.
TEXT_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
SHOWN = frozenset({"text", "thinking"})
USAGE_FIELDS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


@dataclass
class _Block:
    start: Json
    parts: dict[str, list[str]] = field(default_factory=dict)
    extra: list[Json] = field(default_factory=list)  # citations
    is_whole: bool = False

    def add(self, delta: Json) -> tuple[str, str] | None:
        """Take a delta; return (kind, text) if people may see it."""
        kind = delta.get("type")
        if kind == "input_json_delta":
            self.parts.setdefault("input", []).append(delta["partial_json"])
        elif kind == "citations_delta":
            self.extra.append(delta["citation"])
        elif kind in TEXT_FIELDS:
            name = TEXT_FIELDS[kind]
            self.parts.setdefault(name, []).append(delta[name])
            if name in SHOWN:
                return name, delta[name]
        return None

    def finished(self) -> Json:
        """The block as the model meant it. Raises ValueError if its input is not whole JSON."""
        block = {key: value for key, value in self.start.items() if value is not None}
        for name, parts in self.parts.items():
            if name != "input":
                block[name] = block.get(name, "") + "".join(parts)
        if self.extra:
            block["citations"] = self.extra
        if "input" in self.start:
            raw = "".join(self.parts.get("input", []))
            block["input"] = json.loads(raw) if raw.strip() else self.start["input"]
            if not self.is_whole or not isinstance(block["input"], dict):
                raise ValueError("the input is not a whole JSON object")
        return block


class Assembly:
    """Takes the events of one stream, in order."""

    def __init__(self, on_text: Callable[[str, str], None]) -> None:
        self._on_text = on_text
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}
        self._model = ""
        self._stop_reason: str | None = None
        self._stop_details = ""
        self._has_ended = False

    def feed(self, event: Any) -> None:
        """Take one event. Raises what an `error` event means; ignores events it does not know."""
        match event:
            case {"index": int(index)}:
                self._feed_block(index, event)
            case {"type": "message_start", "message": message}:
                self._model = message.get("model", "")
                self._count(message.get("usage"))
            case {"type": "message_delta", "delta": delta}:
                self._stop_reason = delta.get("stop_reason")
                self._stop_details = _details(delta.get("stop_details"))
                self._count(event.get("usage"))
            case {"type": "message_stop"}:
                self._has_ended = True
            case {"type": "error", "error": error}:
                code = (error.get("details") or {}).get("error_code") or ""
                raise failures.from_event(
                    error.get("type", ""), error.get("message", ""), code=code
                )
            case _:
                pass

    def _feed_block(self, index: int, event: Json) -> None:
        match event:
            case {"type": "content_block_delta", "delta": delta}:
                shown = self._blocks[index].add(delta)
                if shown:
                    self._on_text(*shown)
            case {"type": "content_block_start", "content_block": block}:
                self._blocks[index] = _Block(block)
            case {"type": "content_block_stop"}:
                self._blocks[index].is_whole = True
            case _:
                pass

    def reply(self) -> Reply:
        """The whole reply. Raises TransientError if the stream was not one."""
        if not self._has_ended or self._stop_reason is None:
            raise TransientError("The model's answer ended before it was complete.")
        content = []
        for _, block in sorted(self._blocks.items()):
            try:
                content.append(block.finished())
            except ValueError as error:
                if self._stop_reason != "max_tokens":
                    raise TransientError("The model called a tool with broken JSON.") from error
                content.append({**block.start, "input": {}})  # it is never run, see history.py
        return Reply(
            content, self._stop_reason, Usage(**self._usage), self._model, self._stop_details
        )

    def _count(self, usage: Json | None) -> None:
        for name, ours in USAGE_FIELDS.items():
            value = (usage or {}).get(name)
            if value is not None:  # message_delta repeats what message_start said, or adds to it
                self._usage[ours] = value


def _details(details: object) -> str:
    if not isinstance(details, dict):
        return str(details or "")
    return ": ".join(
        str(details[key]) for key in ("category", "explanation", "reason") if details.get(key)
    )
