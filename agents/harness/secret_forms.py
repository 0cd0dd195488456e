"""The spellings in which a known value leaves a program: as it is, quoted, escaped, encoded."""

import base64
import html
import json
import shlex
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

SHORTEST = 8  # characters of a value that can be looked for; shorter ones are in every text
LONGEST = 2_000  # characters of a value that are looked for; the rest is not told apart
_SHORTEST_WORD = 12  # letters of a value that is one word; shorter ones are names of things
_UNPADDED = {0: 0, 1: 2, 2: 3}  # base64 digits at the front that the bytes before have a part in
_SHELL_SPECIAL = set("\"'\\ \t$`!&|;<>()[]{}*?#~=%^,")


def is_worth_hiding(value: str) -> bool:
    """Whether a value can be told from ordinary words: `localhost` and `12345` cannot."""
    value = value.strip()
    if len(value) < SHORTEST or len(set(value)) < SHORTEST // 2:
        return False
    if value.isalpha() and value.isascii():
        return len(value) >= _SHORTEST_WORD and value.casefold() not in _WORDS
    return not (value.isdigit() and len(value) < _SHORTEST_WORD)


_WORDS = frozenset({"authentication", "authorization", "configuration", "unauthorized"})


def spellings(value: str) -> set[bytes]:
    """Return every spelling of `value` but the plain one, as bytes, none shorter than SHORTEST."""
    raw = value.encode("utf-8", "surrogatepass")
    found = {*_escaped(value), *_hexadecimal(raw), *_base64(raw)}
    return {form for form in found if len(form) >= SHORTEST} - {raw}


def _escaped(value: str) -> Iterable[bytes]:
    in_json = json.dumps(value)[1:-1]
    texts = {
        quote(value, safe="", errors="replace"),
        quote(value, safe="/", errors="replace"),
        quote_plus(value, errors="replace"),
        in_json,
        json.dumps(value, ensure_ascii=False)[1:-1],
        in_json.replace("/", "\\/"),
        json.dumps(in_json)[1:-1],  # JSON in JSON, as in a log of requests
        repr(value)[1:-1],
        value.replace("'", "\\'"),
        value.replace('"', '\\"'),
        shlex.quote(value).strip("'"),
        value.replace("'", "'\\''"),
        "".join(f"\\{c}" if c in _SHELL_SPECIAL else c for c in value),  # printf %q
        html.escape(value),
        html.escape(value, quote=False),
        value.replace("\n", "\\n"),
    }
    lower = {_lower_escapes(text) for text in texts if "%" in text}
    return (text.encode("utf-8", "surrogatepass") for text in texts | lower)


def _lower_escapes(text: str) -> str:
    """Write %2F as %2f."""
    parts = text.split("%")
    return parts[0] + "".join(f"%{part[:2].lower()}{part[2:]}" for part in parts[1:])


def _hexadecimal(raw: bytes) -> Iterable[bytes]:
    pairs = [f"{byte:02x}" for byte in raw]
    for joint in ("", ":", "\\x", "%", ",0x"):  # blanks are left out on both sides
        text = joint.join(pairs)
        yield text.encode()
        yield joint.join(pair.upper() for pair in pairs).encode()


def _base64(raw: bytes) -> Iterable[bytes]:
    """Return the digits that do not depend on what stands before and behind, in each alignment."""
    for shift, first in _UNPADDED.items():
        bits = (shift + len(raw)) * 8
        last = bits // 6  # whole digits
        standard = base64.b64encode(b"\0" * shift + raw)[first:last]
        yield standard
        yield standard.replace(b"+", b"-").replace(b"/", b"_")
        yield standard.replace(b"+", b"%2B").replace(b"/", b"%2F")
