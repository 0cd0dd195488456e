"""What people type, made ready to be stored; each bad field is named with what to do about it."""

import re
import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from board.errors import NotAllowedError, ValidationError
from board.models import User
from board.states import ToolProfile
from board.webhooks import wrapped

TEXT_FIELDS = ("title", "goal", "constraints")
MAX_TEXT = 50_000  # characters of one text field: about ten pages, far below a model's window
MAX_TITLE = 300  # characters
MAX_LIST = 100  # entries of `files` and `checks`
# Characters of a command, of which Linux takes 128 KiB, and of a path, of which it takes 4 KiB.
MAX_LINES = {"checks": 10_000, "files": 1_000}
PROFILES = {"", *ToolProfile}
PRIORITIES = range(10)  # 0 low, 1 normal, 2 high, 3 urgent; more for those who sort finely

KEY = re.compile(r"[A-Z][A-Z0-9]{1,9}")
# A whole path, a URL, or git's short form host:path.
REPOSITORY = re.compile(r"/|[a-z][a-z0-9+.-]*://.|[^/:\s.~][^/:\s]*:.", re.IGNORECASE)
MAX_NAME = 120  # characters of a project's name
MAX_COLUMN_NAME = 60  # characters
MAX_LIMIT = 999  # cards in a column
MAX_PARALLEL = range(1, 51)  # runs of a project at once
MAX_LENGTHS = {  # characters
    "target_branch": 200,
    "model": 80,
    "setup_command": MAX_LINES["checks"],
    "repository": 1_000,
}

Problems = dict[str, str]


def clean_card(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card's values ready to be stored, or raise ValidationError."""
    cleaned = dict(values)
    problems = _clean_texts(cleaned) | _clean_lists(cleaned)
    if "title" in cleaned:
        cleaned["title"] = " ".join(cleaned["title"].split())
        problems |= _title_problems(cleaned["title"])
    if "priority" in cleaned and cleaned["priority"] not in PRIORITIES:
        problems["priority"] = "A number from 0 (low) to 9; 3 is urgent."
    if cleaned.get("tool_profile", "") not in PROFILES:
        problems["tool_profile"] = f"One of {', '.join(ToolProfile)}, or nothing."
    _refuse(problems)
    return cleaned


def _clean_texts(values: dict[str, Any]) -> Problems:
    problems: Problems = {}
    for name in set(TEXT_FIELDS) & set(values):
        values[name] = str(values[name]).replace("\x00", "").strip()
        if len(values[name]) > MAX_TEXT:
            problems[name] = f"At most {MAX_TEXT:,} characters; this is {len(values[name]):,}."
    return problems


def _clean_lists(values: dict[str, Any]) -> Problems:
    problems: Problems = {}
    for name in {"files", "checks"} & set(values):
        values[name] = clean_lines(values[name])
        if len(values[name]) > MAX_LIST:
            problems[name] = f"At most {MAX_LIST} lines."
        elif max(map(len, values[name]), default=0) > MAX_LINES[name]:
            problems[name] = f"At most {MAX_LINES[name]:,} characters in one line."
    return problems


def clean_lines(lines: Any) -> list[str]:
    """Return the lines that hold something, without NUL and outer blanks."""
    texts = [str(line).replace("\x00", "").strip() for line in lines]
    return [text for text in texts if text]


def _title_problems(title: str) -> Problems:
    if not title:
        return {"title": "Give the card a title."}
    if len(title) > MAX_TITLE:
        return {"title": f"At most {MAX_TITLE} characters. The rest belongs in the goal."}
    return {}


def clean_project(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a project's values ready to be stored, or raise ValidationError."""
    cleaned = {
        name: value.replace("\x00", "").strip() if isinstance(value, str) else value
        for name, value in values.items()
    }
    if "key" in cleaned:
        cleaned["key"] = cleaned["key"].upper()
    problems = {
        name: text
        for name, text in PROJECT_RULES.items()
        if name in cleaned and not _fits(name, cleaned[name])
    }
    problems |= {
        name: f"At most {most:,} characters."
        for name, most in MAX_LENGTHS.items()
        if len(cleaned.get(name, "")) > most
    }
    _refuse(problems)
    return cleaned


PROJECT_RULES = {
    "key": "Two to ten letters and digits, beginning with a letter, such as BIL.",
    "name": f"A name of at most {MAX_NAME} characters.",
    "repository": "The whole path of a git repository on the server, from / on, or its URL.",
    "max_parallel": f"A number from {MAX_PARALLEL.start} to {MAX_PARALLEL.stop - 1}.",
}


def _fits(name: str, value: Any) -> bool:
    match name:
        case "key":
            return KEY.fullmatch(value) is not None
        case "name":
            return 0 < len(value) <= MAX_NAME
        case "repository":
            return REPOSITORY.match(value) is not None
        case _:
            return value in MAX_PARALLEL


def check_folder_right(repository: str, *, by: User) -> None:
    """Raise NotAllowedError unless `by` may use this repository.

    A folder of the server can hold what is nobody's business, and so can what listens on its own
    addresses; only who owns the installation may point a project at one.
    """
    if by.is_owner:
        return
    if is_folder(repository):
        raise NotAllowedError(
            "Only an owner of this installation may use a folder of the server. "
            "Use the repository's URL, or ask an owner to make the project."
        )
    if is_own_host(host_of(repository)):
        raise NotAllowedError(
            "Only an owner of this installation may use an address of the server itself."
        )


def is_folder(repository: str) -> bool:
    """Whether a repository's address is a folder of the server, in whatever spelling it is read as one."""
    text = repository.replace("\x00", "").strip().casefold()
    return text.startswith(("/", "~", ".", "file:"))


def host_of(repository: str) -> str:
    """Return the host of a repository's URL or short form, or ""."""
    text = repository.replace("\x00", "").strip()
    if "://" not in text:
        return text.partition(":")[0].rpartition("@")[2]
    try:
        return urlsplit(text).hostname or ""
    except ValueError:
        return ""


def is_own_host(host: str) -> bool:
    """Whether a host is this machine, or one that hands out what belongs to this machine, by its spelling."""
    name = host.casefold().strip("[]").rstrip(".")
    if name == "localhost" or name.endswith((".localhost", ".localdomain")):
        return True
    try:
        address: IPv4Address | IPv6Address = ip_address(name.partition("%")[0])
    except ValueError:
        try:  # 127.1, 0x7f000001, 2130706433
            address = ip_address(socket.inet_aton(name))
        except OSError:
            return False
    inner = wrapped(address) or address
    return inner.is_loopback or inner.is_link_local or inner.is_unspecified


def clean_column(name: str, limit: int | None = None) -> str:
    """Return the column's name ready to be stored, or raise ValidationError."""
    title = " ".join(name.split())
    problems: Problems = {}
    if not 0 < len(title) <= MAX_COLUMN_NAME:
        problems["name"] = f"A name of at most {MAX_COLUMN_NAME} characters."
    if limit is not None and not 0 < limit <= MAX_LIMIT:
        problems["limit"] = f"A limit is a number from 1 to {MAX_LIMIT}."
    _refuse(problems)
    return title


def _refuse(problems: Problems) -> None:
    if problems:
        raise ValidationError(" ".join(problems.values()), fields=problems)
