"""The values in files that hold secrets: `.env`, JSON, YAML and INI files, keys, plain words.

What is a secret there is judged by its name and its value: `DEBUG=1` and `HOST=localhost` are none,
and hiding them everywhere would mangle ordinary code.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from agents.harness.policy.secrets import is_secret_name
from agents.harness.redaction import Secret
from agents.harness.secret_shapes import is_random

MOST_BYTES = 1_000_000  # of a file that is read for its values
MOST_VALUES = 300  # of one file; each is looked for in some thirty spellings
_SHORTEST_TOKEN = 16  # characters of a token in place of a user name
MOST_FILES = 200  # that are looked at below one folder
_LINE = re.compile(
    r"^[ \t]*(?:export[ \t]+|-[ \t]+)?[\"']?(?P<name>[A-Za-z_][\w.\-]*)[\"']?[ \t]*[=:][ \t]*(?P<value>.*?)[ \t,;]*$",
    re.MULTILINE,
)
_SECRET_NAME = re.compile(
    r"pass|pwd|secret|token|key|credential|auth|private|salt|signature|dsn|cert|webhook|pin\b",
    re.IGNORECASE,
)
_PLAIN_NAME = re.compile(
    r"(?:^|[_.\-])(?:name|host|hostname|port|url|uri|path|dir|env|mode|level|region|version|email|user"
    r"|username|debug|locale|timezone|tz|public|publishable|format|type|driver|engine|prefix)$",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"[./~]?/[\w./\-]*|[\w.\-]+\.(?:com|org|net|io|dev|local|test)(?::\d+)?|[\d.:\- TZ]+"
)
_SHORTEST = 12  # characters of a value whose name says nothing


def values_in_file(label: str, content: bytes) -> list[Secret]:
    """Return the secrets in a file's content; `label` is the file's name, for files without names in them."""
    text = content[:MOST_BYTES].decode("utf-8", "replace").removeprefix("\ufeff")
    if "PRIVATE KEY-----" in text:
        lines = [line.strip() for line in text.splitlines() if "-----" not in line]
        return [Secret(f"key in {label}", line) for line in lines if len(line) >= _SHORTEST]
    try:
        found = list(_in_json(label, json.loads(text)))
    except ValueError:
        found = list(_in_lines(text))
    if not found and len(text.split()) == 1:  # the secret is all there is
        found = [Secret(label, text.strip())]
    # A state file has thousands of values; those with telling names come first.
    found.sort(key=lambda secret: not _SECRET_NAME.search(secret.name))
    return list(dict.fromkeys(found))[:MOST_VALUES]


def _in_json(name: str, value: Any) -> Iterator[Secret]:
    match value:
        case str():
            yield from _of_value(name, value)
        case dict():
            for inner, item in value.items():
                yield from _in_json(str(inner), item)
        case list():
            for item in value:
                yield from _in_json(name, item)
        case _:
            pass


def _in_lines(text: str) -> Iterator[Secret]:
    for match in _LINE.finditer(text):
        value = match["value"]
        if value[:1] in {'"', "'", "`"}:
            end = value.find(value[0], 1)
            value = value[1:end] if end > 0 else value[1:]
        else:
            value = re.split(r"\s#", value)[0].strip()
        yield from _of_value(match["name"], value)
        if "\\" in value:
            yield from _of_value(match["name"], value.replace("\\n", "\n").replace('\\"', '"'))


def _of_value(name: str, value: str) -> Iterator[Secret]:
    """Yield the value if it is a secret, or the sign-in that it holds if it is an address."""
    if "://" in value:
        yield from address_secrets(name, value)
    elif _is_secret(name, value):
        yield Secret(name, value)


def _is_secret(name: str, value: str) -> bool:
    if is_random(value.encode(), 20):
        return True
    if _PLAIN_NAME.search(name) or _HARMLESS.fullmatch(value):
        return False
    if _SECRET_NAME.search(name):
        return True
    return len(value) >= _SHORTEST and not re.fullmatch(r"[a-z]+(?:[ ._\-][a-z]+)*", value)


def address_secrets(name: str, address: str) -> Iterator[Secret]:
    """Yield the password in an address, or a token in place of the user's name.

    Also the whole sign-in with its host, which tells it from a word.
    """
    try:
        parts = urlsplit(address)
        password = parts.password
    except ValueError:
        return
    if not password:
        token = unquote(parts.username or "")
        if is_random(token.encode(), _SHORTEST_TOKEN):  # and not the name of somebody
            yield Secret(name, token)
        return
    yield Secret(name, password)
    yield Secret(name, unquote(password))
    yield Secret(name, f"{parts.username or ''}:{password}@{parts.hostname or ''}")


def secret_files_below(folder: Path) -> list[str]:
    """Return the files of secret names at the top of a folder and one level below, as relative names."""
    found: list[str] = []
    for relative in ("", *_folders(folder)):
        try:
            with os.scandir(folder / relative) as entries:
                names = sorted(entry.name for entry in entries if is_secret_name(entry.name))
        except OSError:
            continue
        found += [f"{relative}/{name}" if relative else name for name in names]
    return found[:MOST_FILES]


def _folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(name for name in names if name not in {".git", "node_modules", ".venv"})[
        :MOST_FILES
    ]


def read_secrets(folder: Path, names: Sequence[str]) -> list[Secret]:
    """Return the secrets in these files below `folder`. What is no plain file, or gone, has none."""
    found: list[Secret] = []
    for name in names:
        content = read_plain(folder / name)
        if content is not None:
            found += values_in_file(Path(name).name, content)
    return found


def read_plain(path: Path) -> bytes | None:
    """Return the content of a plain file of at most MOST_BYTES; None for links, devices and the like."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        content = file.read(MOST_BYTES + 1)
    return content if len(content) <= MOST_BYTES else None
