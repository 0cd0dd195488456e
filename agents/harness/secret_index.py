"""Finds known values in text at the speed of a hash table: every eighth block of it is looked up.

A text of 15 bytes holds a whole block of 8 that begins at a multiple of 8. So a table of the blocks
with which a spelling begins (and of all blocks of a plain value, whose parts count too) finds each
occurrence by looking at n / 8 blocks, which `isdisjoint` does in C. Spellings shorter than that are
found by blocks of 4. White space and colours are taken out of both sides before.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.harness.secret_forms import spellings

Span = tuple[int, int, str]  # start, end, name

PART = 16  # characters of a plain value that are hidden although the rest is cut off
_BLOCK, _SMALL = 8, 4  # bytes; machine words of these sizes are compared
_BLANKS = b" \t\r\n"
_COLOR = rb"\x1b\[[0-9;?]*[ -/]*[@-~]"
_NOISE = re.compile(rb"[ \t\r\n]+|" + _COLOR)
_COLORS = re.compile(_COLOR)
_MOST_CLEAN = 1_000  # texts of at most a few hundred characters
_UNSEEN = 3  # characters at the end of a line that may well begin a value, and hardly ever do


@dataclass(frozen=True, slots=True)
class _Place:
    """A block's place in a spelling; `least` bytes of the spelling must stand around the block."""

    form: bytes
    offset: int
    least: int
    name: str


class Index:
    """The spellings of some secrets. Never changed once it is made."""

    def __init__(self, known: Mapping[str, str]) -> None:
        """`known`: the name of each value."""
        self._blocks: dict[int, list[_Place]] = {}
        self._small: dict[int, list[_Place]] = {}
        self._beginnings: set[bytes] = set()
        self._longest = 0
        # Texts that hold no secret; names of fields come again and again. Gone with this index.
        self.clean: set[str] = set()
        for value, name in sorted(known.items(), key=lambda item: -len(item[0])):
            raw = squeezed(value.encode("utf-8", "surrogatepass"))
            self._add(raw, name, least=min(len(raw), PART))
            for form in sorted({squeezed(form) for form in spellings(value)} - {raw}):
                self._add(form, name, least=len(form))

    def remember(self, text: str) -> None:
        """Note that `text` was looked through and is free of secrets."""
        if len(self.clean) >= _MOST_CLEAN:
            self.clean = set()
        self.clean.add(text)

    def _add(self, form: bytes, name: str, *, least: int) -> None:
        self._longest = max(self._longest, len(form))
        self._beginnings.update(form[:size] for size in range(1, min(len(form), 2 * _BLOCK - 1)))
        size, table = (_BLOCK, self._blocks) if least >= 2 * _BLOCK - 1 else (_SMALL, self._small)
        last = len(form) - size if least < len(form) else size - 1
        for offset in range(last + 1):
            block = int.from_bytes(form[offset : offset + size], sys.byteorder)
            table.setdefault(block, []).append(_Place(form, offset, least, name))

    def known_in(self, data: bytes) -> Iterator[Span]:
        """Find known values: in order, perhaps with overlaps."""
        tight = squeezed(data)
        found = [*_hits(tight, self._blocks, _BLOCK), *_hits(tight, self._small, _SMALL)]
        if not found:
            return
        positions = None if tight is data else _positions(data)
        for at, place in found:
            span = _around(tight, at, place)
            if span is None:
                continue
            start, end = span
            if positions is not None:
                start, end = positions[start], positions[end - 1] + 1
            yield start, end, place.name

    def open_from(self, data: bytes) -> int:
        """Return where a value begins that may go on behind the end of `data`, or its length."""
        if not self._longest or not data:
            return len(data)
        begin = max(0, len(data) - 2 * self._longest - 64)
        tail = data[begin:]
        tight = squeezed(tail)
        size = self._open_size(tight, is_whole=tail[-1] not in _BLANKS)
        if not size:
            return len(data)
        start = len(tight) - size
        return begin + (start if tight is tail else _positions(tail)[start])

    def _open_size(self, tight: bytes, *, is_whole: bool) -> int:
        """Return how many bytes at the end begin a value that is not all there."""
        sizes = [0]
        for at, place in _hits(tight, self._blocks, _BLOCK):
            start = at - place.offset
            rest = tight[max(start, 0) :]
            if start >= 0 and len(rest) < len(place.form) and place.form.startswith(rest):
                sizes.append(len(rest))
        shortest = 1 if is_whole else _UNSEEN + 1
        for size in range(min(2 * _BLOCK - 2, len(tight)), shortest - 1, -1):
            if tight[-size:] in self._beginnings:
                return max(*sizes, size)
        return max(sizes)


def _hits(
    data: bytes, table: Mapping[int, list[_Place]], size: int
) -> Iterator[tuple[int, _Place]]:
    """Find blocks of `data` that are in the table: where each begins, and what it is part of."""
    if not table or len(data) < size:
        return
    whole = len(data) - len(data) % size
    blocks = memoryview(data)[:whole].cast("Q" if size == _BLOCK else "I").tolist()
    if table.keys().isdisjoint(blocks):
        return
    for number, block in enumerate(blocks):
        if block in table:
            for place in table[block]:
                yield number * size, place


def _around(data: bytes, at: int, place: _Place) -> tuple[int, int] | None:
    """Return how far the spelling stands around its block at `at`, if far enough."""
    form, offset = place.form, place.offset
    behind = _common(data[at : at + len(form) - offset], form[offset:])
    before = _common(data[max(0, at - offset) : at][::-1], form[:offset][::-1])
    return (at - before, at + behind) if before + behind >= place.least else None


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes both begin with."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return next(place for place in range(size) if one[place] != other[place])


def squeezed(data: bytes) -> bytes:
    """Return `data` without white space and colours."""
    if b"\x1b" in data:
        data = _COLORS.sub(b"", data)
    return data.translate(None, _BLANKS)


def _positions(data: bytes) -> Sequence[int]:
    """Return where each byte of the squeezed `data` was before."""
    positions: list[int] = []
    last = 0
    for match in _NOISE.finditer(data):
        positions.extend(range(last, match.start()))
        last = match.end()
    positions.extend(range(last, len(data)))
    return positions
