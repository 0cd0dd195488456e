"""Takes secrets out of texts before they are stored, shown, logged or sent to a model.

A known value is found in every spelling (see `secret_forms`), also where line breaks or colours
stand in it, and also a part of it; keys of well-known forms are found by their shape (see
`secret_shapes`). In their place stands `[redacted: NAME]`. The same text always gives the same
result, and a result is not changed by redacting it again.
"""

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.harness import secret_shapes
from agents.harness.secret_forms import LONGEST, is_worth_hiding
from agents.harness.secret_index import Index, Span

MARKER = re.compile(r"\[redacted: ([^\]\n]{1,80})\]")
MAX_HELD = 16_384  # bytes that a stream keeps back: the longest spelling of the longest value fits
_MAX_DROPPED = 65_536  # bytes that are dropped behind the beginning of a private key
_REMEMBERED = 200  # characters; what is longer is hardly ever seen twice
_WORTH_A_LOOK = 64  # of what is held back, the part that must be new


@dataclass(frozen=True)
class Secret:
    """A value that must not be shown, and the name that stands in its place."""

    name: str
    value: str = field(repr=False)


class Redactor:
    """Knows secrets and finds them. Any thread may call it; `learn` takes effect at once."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}  # value -> name
        self._index = Index({})
        self.learn(secrets)

    def learn(self, secrets: Iterable[Secret]) -> None:
        """Hide these values too, from now on. Values that cannot be told from words are left out."""
        with self._lock:
            new = {
                secret.value.strip()[:LONGEST]: " ".join(secret.name.split()).replace("]", "")[:80]
                for secret in secrets
                if is_worth_hiding(secret.value)
            }
            if new.keys() - self._known.keys():
                self._known = {**new, **self._known}
                self._index = Index(self._known)

    def copy(self) -> "Redactor":
        """Return another one that knows the same; what either learns is not the other's. Costs nothing."""
        other = Redactor()
        with self._lock:
            other._known, other._index = self._known, self._index
        return other

    @property
    def secrets(self) -> list[Secret]:
        """What it knows."""
        return [Secret(name, value) for value, name in self._known.items()]

    @property
    def names(self) -> frozenset[str]:
        """What may stand in a marker."""
        return secret_shapes.NAMES.union(self._known.values())

    def text(self, text: str) -> str:
        """Return `text` without secrets; the same object if there are none."""
        index = self._index
        if len(text) <= _REMEMBERED and text in index.clean:
            return text
        data = text.encode("utf-8", "surrogatepass")
        spans = _spans(index, data)
        if spans:
            return _replaced(data, spans).decode("utf-8", "replace")
        if len(text) <= _REMEMBERED:
            index.remember(text)
        return text

    def data(self, data: bytes) -> bytes:
        """Return `data` without secrets; the same object if there are none."""
        spans = _spans(self._index, data)
        return _replaced(data, spans) if spans else data

    def json(self, value: Any) -> Any:
        """Return a JSON value with every string in it, also the names of fields, redacted."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.json(name): self.json(item) for name, item in value.items()}
            case list() | tuple():
                return [self.json(item) for item in value]
            case _:
                return value

    def found_in(self, data: bytes) -> str:
        """Return the name of a known value or of a key that `data` holds, or ""."""
        spans = [*self._index.known_in(data), *secret_shapes.keys_in(data)]
        return min(spans)[2] if spans else ""

    def known_in(self, data: bytes) -> str:
        """Return the name of a known value that `data` holds, or ""."""
        return next((name for _, _, name in self._index.known_in(data)), "")

    def stream(self) -> "Stream":
        """Return a filter for one stream of chunks."""
        return Stream(self)

    def behind(self, before: bytes, data: bytes) -> bytes:
        """Return `data` without secrets, as it is found behind `before`, which has left already."""
        spans = _spans_behind(self._index, before, data)
        return _replaced(data, spans) if spans else data

    def split(self, data: bytes, before: bytes = b"") -> tuple[bytes, bytes]:
        """Return what of `data` may leave now, redacted, and what must wait for the next chunk.

        `before` is what stood in front of `data` and has left: a key does not begin within a word.
        """
        index = self._index
        spans = _spans_behind(index, before, data)
        cut = min(index.open_from(data), secret_shapes.open_from(data))
        for start, end, _ in spans:
            if end == len(data) or start < cut < end:
                cut = min(cut, start)
        kept = [span for span in spans if span[1] <= cut]
        return (_replaced(data[:cut], kept) if kept else data[:cut]), data[cut:]


class Stream:
    """One stream: what `feed` and `close` return, joined, is the redacted whole. Memory is bounded."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""
        self._before = b""  # the last bytes that have left, as they came
        self._fresh = 0  # bytes of it that have not been looked at
        self._dropped = 0
        self._until: re.Pattern[bytes] | None = None  # everything before this is dropped

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk and return what of the stream may leave now."""
        self._held += chunk
        self._fresh += len(chunk)
        if self._fresh < len(self._held) // _WORTH_A_LOOK:
            return b""  # what is held back is not looked through again for every byte
        data, self._held, self._fresh = self._held, b"", 0
        if self._until is not None:
            match = self._until.search(data)
            if match is None:
                self._held = data[-_LONGEST_END:]
                self._dropped += len(data) - len(self._held)
                if self._dropped > _MAX_DROPPED:
                    self._until = None
                return b""
            self._before = data[: match.end()][-_CONTEXT:]
            data, self._until = data[match.end() :], None
        out, self._held = self._redactor.split(data, self._before)
        self._before = (self._before + data[: len(data) - len(self._held)])[-_CONTEXT:]
        if len(self._held) > MAX_HELD:
            out += self._give_up()
        return out

    def close(self) -> bytes:
        """Return the rest."""
        held, self._held = self._held, b""
        return b"" if self._until is not None else self._redactor.behind(self._before, held)

    def _give_up(self) -> bytes:
        """Let go of a tail that has become too long; the rest of a key that began in it is dropped."""
        held, self._held = self._held, b""
        before, self._before = self._before, held[-_CONTEXT:]
        self._dropped = 0
        if secret_shapes.BEGIN in held and secret_shapes.END not in held:
            self._until = _END_OF_KEY
            start = held.index(secret_shapes.BEGIN)
            return self._redactor.behind(before, held[:start]) + b"[redacted: private key]"
        clean = self._redactor.behind(before, held)
        if clean.endswith(b"]") and not held.endswith(b"]"):
            self._until = _END_OF_TOKEN
        return clean


_CONTEXT = 16  # bytes in front of a key that say whether it is one; more than any shape looks back
_LONGEST_END = 44  # bytes of the line that ends a private key
_END_OF_KEY = re.compile(rb"-----END [A-Z0-9 ]{0,30}-----")
_END_OF_TOKEN = re.compile(rb"(?=[^" + re.escape(secret_shapes.TOKEN) + rb"])")


class TextStream:
    """The same for text."""

    def __init__(self, redactor: Redactor) -> None:
        self._stream = redactor.stream()

    def feed(self, text: str) -> str:
        """Take a piece and return what of the stream may leave now."""
        return self._stream.feed(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")

    def close(self) -> str:
        """Return the rest."""
        return self._stream.close().decode("utf-8", "replace")


def _spans(index: Index, data: bytes) -> list[Span]:
    """Return what is to be replaced, in order, without overlaps."""
    found = [*index.known_in(data), *secret_shapes.keys_in(data), *secret_shapes.values_in(data)]
    return _without_overlaps(found) if found else found


def _spans_behind(index: Index, before: bytes, data: bytes) -> list[Span]:
    """Return what is to be replaced in `data`, as it is found behind `before`."""
    skip = len(before)
    found = _spans(index, before + data)
    return [(start - skip, end - skip, name) for start, end, name in found if start >= skip]


def _without_overlaps(spans: list[Span]) -> list[Span]:
    kept: list[Span] = []
    for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        if kept and start < kept[-1][1]:
            if end > kept[-1][1]:
                kept[-1] = (kept[-1][0], end, kept[-1][2])
        else:
            kept.append((start, end, name))
    return kept


def _replaced(data: bytes, spans: Sequence[Span]) -> bytes:
    """Put markers in place of the spans. Lines stay as many as they were."""
    parts = []
    last = 0
    for start, end, name in spans:
        lines = b"\n" * data.count(b"\n", start, end)
        parts += [data[last:start], f"[redacted: {name}]".encode(), lines]
        last = end
    return b"".join([*parts, data[last:]])


# What all of this process's own output goes through: logs, error messages.
shared = Redactor()
