"""A run's log without secrets: what is streamed is looked at across the borders of its pieces."""

import threading
from collections.abc import Callable
from typing import Any

from agents.harness.ports import Sink
from agents.harness.redaction import Redactor, TextStream

STREAMED = frozenset({"text", "thinking", "output"})


class RedactedSink:
    """Passes items on; see `ports.Sink`. A streamed text may leave one piece later."""

    def __init__(self, pass_on: Callable[..., None], redactor: Redactor) -> None:
        """`pass_on` takes what `emit` takes."""
        self._pass_on = pass_on
        self._redactor = redactor
        self._streams: dict[tuple[str, Any], TextStream] = {}  # by kind and call
        self._order = threading.Lock()  # keeps the pieces of a stream in order

    @classmethod
    def around(cls, sink: Sink, redactor: Redactor) -> "RedactedSink":
        """Return `sink` if it is one already, and one around it if not."""
        return sink if isinstance(sink, RedactedSink) else RedactedSink(sink.emit, redactor)

    def emit(self, kind: str, **data: Any) -> None:
        """See `ports.Sink.emit`."""
        with self._order:
            if kind in STREAMED:
                self._stream(kind, data)
                return
            self._end(data.get("call") if kind == "result" else None)
            self._pass_on(kind, **self._redactor.json(data))

    def _stream(self, kind: str, data: dict[str, Any]) -> None:
        key = (kind, data.get("call"))
        if key not in self._streams:
            if kind != "output":
                self._end(None)  # the other kind of what the model says
            self._streams[key] = TextStream(self._redactor)
        text = self._streams[key].feed(data["text"])
        if text:
            self._pass_on(kind, **{**data, "text": text})

    def _end(self, call: Any) -> None:
        """Let the rest of a call's output go, or of what the model said."""
        for key in [key for key in self._streams if key[1] == call]:
            rest = self._streams.pop(key).close()
            if rest:
                named = {} if call is None else {"call": call}
                self._pass_on(key[0], **named, text=rest)

    def let_go(self) -> None:
        """Pass on all that was kept back."""
        with self._order:
            for call in {call for _, call in self._streams}:
                self._end(call)
