"""Texts that look like secrets though nobody told us of them: keys of well-known forms, assignments.

A form of a key counts wherever it stands. An assignment or an address with a password is judged by
its value, so that ordinary code is not mangled: names, calls, placeholders and short words stay.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from agents.harness.secret_index import Span

_PEM = (
    rb"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\:,.\-]{64,16384}?"
    rb"(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|\Z|(?=[^A-Za-z0-9+/=\s\\:,.\-]))"
)
# Name, texts of which one occurs wherever the form does, the form.
_KEYS: tuple[tuple[str, tuple[bytes, ...], bytes], ...] = (
    ("private key", (b"PRIVATE KEY",), _PEM),
    ("Anthropic key", (b"sk-ant-",), rb"sk-ant-[A-Za-z0-9_\-]{20,}"),
    (
        "OpenAI key",
        (b"sk-",),
        rb"\bsk-(?!ant-)(?=[\w\-]{0,80}?[0-9])(?=[\w\-]{0,80}?[A-Z])[A-Za-z0-9_\-]{32,}",
    ),
    (
        "GitHub token",
        (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
        rb"\bgh[pousr]_[A-Za-z0-9]{36,}",
    ),
    ("GitHub token", (b"github_pat_",), rb"\bgithub_pat_[A-Za-z0-9_]{36,}"),
    ("GitLab token", (b"glpat-",), rb"\bglpat-[A-Za-z0-9_\-]{20,}"),
    ("AWS key", (b"AKIA", b"ASIA"), rb"\b(?:AKIA|ASIA)(?![A-Z0-9]{9}EXAMPLE)[A-Z0-9]{16}\b"),
    ("Slack token", (b"xox",), rb"\bxox[abeoprs]-[A-Za-z0-9\-]{10,}"),
    (
        "Slack webhook",
        (b"hooks.slack.com",),
        rb"hooks\.slack\.com/services/[A-Z0-9]{6,}/[A-Z0-9]{6,}/[A-Za-z0-9]{16,}",
    ),
    ("JWT", (b"eyJ",), rb"\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"),
    ("Pullcord token", (b"pc_",), rb"\bpc_[A-Za-z0-9_\-]{43}"),
    ("Google key", (b"AIza",), rb"\bAIza[0-9A-Za-z_\-]{35}"),
    ("Stripe key", (b"k_live_",), rb"\b[sr]k_live_[0-9A-Za-z]{16,}"),
    ("npm token", (b"npm_",), rb"\bnpm_[A-Za-z0-9]{36}"),
    ("PyPI token", (b"pypi-",), rb"\bpypi-[A-Za-z0-9_\-]{50,}"),
    ("Hugging Face token", (b"hf_",), rb"\bhf_[A-Za-z0-9]{30,}"),
    ("SendGrid key", (b"SG.",), rb"\bSG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"),
)
_BY_SIGN = tuple((sign, name, re.compile(form)) for name, signs, form in _KEYS for sign in signs)
NAMES = frozenset(name for _, name, _ in _BY_SIGN)
SIGNS = tuple(sorted({sign for sign, _, _ in _BY_SIGN} - {b"PRIVATE KEY"}))
BEGIN = b"-----BEGIN "
END = b"-----END "
TOKEN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+/=:"

# One search for all of them is quicker than one for each.
_ANY_SIGN = re.compile(
    rb"sk-|gh[pousr]_|github_pat_|glpat-|A(?:KIA|SIA|Iza)|xox|eyJ|pc_|k_live_|npm_|pypi-|hf_|SG\."
    rb"|hooks\.slack\.com|PRIVATE KEY"
)
# How the names of secrets begin; of keys only those that are behind one of the other words.
_WORDS = (b"passw", b"pwd", b"secret", b"token", b"credential", b"authoriz")
_KINDS_OF_KEYS = tuple(
    kind + joint for kind in (b"api", b"access", b"private") for joint in (b"", b"_", b"-")
)
_ASSIGNED = re.compile(
    rb"[\w\-]{3,40}[\"']?[ \t]{0,3}(?:=>|[:=])[ \t]{0,3}([\"'`]?)([A-Za-z0-9_\-+/=.~!@#$%^&*]{12,200})"
)
_ADDRESS = re.compile(rb"://[^\s/:@\"'<>]{0,64}:([^\s/@\"'<>]{6,200})@")
_HEADER = re.compile(
    rb"(?i)authorization[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?:bearer|basic|token)\s+([A-Za-z0-9._~+/=\-]{16,})"
)
_OPEN_ASSIGNMENT = re.compile(
    rb"[\w\-]{3,40}[\"']?[ \t]{0,3}(?:(?:=>?|:)[ \t]{0,3}[\"'`]?[A-Za-z0-9_\-+/=.~!@#$%^&*]{0,200})?\Z"
)
_TAIL = 300  # bytes in which an assignment or an address that is not all there begins
_PLACEHOLDER = re.compile(
    rb"(?i)example|change.?me|placeholder|your|dummy|fake|sample|xxx|\.\.\.|\*\*\*|redacted"
    rb"|insecure|test|\$\{|\{\{|%\(|^\$"
)
_NAMES = re.compile(rb"[A-Za-z_$][\w$]*(?:[.\-][A-Za-z_$][\w$]*)*")
_RANDOM_BITS = 3.2  # of entropy for each character; words have about 2.5 to 3
_DIGITS = 2  # that a random value of this length has at least


def keys_in(data: bytes) -> Iterator[Span]:
    """Find keys of well-known forms."""
    if not _ANY_SIGN.search(data):
        return
    for sign, name, form in _BY_SIGN:
        if sign in data:
            for match in form.finditer(data):
                yield match.start(), match.end(), name


def values_in(data: bytes) -> Iterator[Span]:
    """Find what is assigned to a name of a secret, sent in a header, or part of an address."""
    if b"://" in data:
        for match in _ADDRESS.finditer(data):
            if is_random(match[1], 8):
                yield match.start(1), match.end(1), "password in an address"
    for place, name in _names_in(data.lower()):
        sent = _HEADER.match(data, place) if name == "authorization" else None
        if sent and is_random(sent[1], 16):
            yield sent.start(1), sent.end(1), name
        given = _ASSIGNED.match(data, place)
        if given and is_random(given[2], 12, quoted=bool(given[1])):
            yield given.start(2), given.end(2), name


def _names_in(lower: bytes) -> Iterator[tuple[int, str]]:
    """Find names of secrets: where each begins, and what it is called in a marker."""
    for word in _WORDS:
        for place in _places(lower, word):
            yield place, _CALLED.get(word, word.decode())
    for place in _places(lower, b"key"):
        if lower[max(0, place - 8) : place].endswith(_KINDS_OF_KEYS):
            yield place, "key"


_CALLED = {b"passw": "password", b"pwd": "password", b"authoriz": "authorization"}


def _places(data: bytes, word: bytes) -> Iterator[int]:
    place = data.find(word)
    while place >= 0:
        yield place
        place = data.find(word, place + 1)


def is_random(value: bytes, shortest: int, *, quoted: bool = True) -> bool:
    """Whether a value looks drawn at random, and not like a word, a name or a placeholder."""
    if len(value) < shortest or _PLACEHOLDER.search(value):
        return False
    digits = sum(48 <= byte < 58 for byte in value)  # noqa: PLR2004  ASCII
    if digits < _DIGITS or digits == len(value):
        return False
    if _NAMES.fullmatch(value) and digits < (_DIGITS if quoted else 2 * _DIGITS):
        return False
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return bits >= min(_RANDOM_BITS, math.log2(len(value)) - 0.5)


def open_from(data: bytes) -> int:
    """Return where a form begins that may go on behind the end of `data`; its length if none does."""
    begins = [len(data)]
    start = data.rfind(BEGIN)
    if start >= 0 and END not in data[start:] and b"CERTIFICATE" not in data[start : start + 40]:
        begins.append(start)
    token = data[len(data.rstrip(TOKEN)) :]
    if token:
        begins += _open_in_token(token, len(data) - len(token))
    tail = data[-_TAIL:]
    if not tail.endswith(b"\n"):
        begins += [
            len(data) - len(tail) + place
            for place, _ in _names_in(tail.lower())
            if _OPEN_ASSIGNMENT.match(tail, place)
        ]
    return min(begins)


def _open_in_token(token: bytes, offset: int) -> Iterator[int]:
    """Find beginnings in the run of characters of keys with which the data ends."""
    for sign in SIGNS:
        if sign in token:
            yield offset + token.find(sign)
    for size in range(1, min(_LONGEST_BEGINNING, len(token)) + 1):
        if token[-size:] in _BEGINNINGS or token[-size:].lower() in _BEGINNINGS_OF_WORDS:
            yield offset + len(token) - size
    if b"://" in token:
        yield offset + token.find(b"://")


def _beginnings(words: Iterable[bytes]) -> frozenset[bytes]:
    return frozenset(word[:size] for word in words for size in range(1, len(word)))


_BEGINNINGS = _beginnings((*SIGNS, BEGIN, b"://"))
_BEGINNINGS_OF_WORDS = _beginnings((*_WORDS, *(kind + b"key" for kind in _KINDS_OF_KEYS)))
_LONGEST_BEGINNING = max(map(len, _BEGINNINGS | _BEGINNINGS_OF_WORDS))
