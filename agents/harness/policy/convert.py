"""Reads allow and deny lists in the form of Claude Code, and says what each entry would really match.

An entry is left out rather than made to allow more than it says. What its author denied and what
cannot be said here is reported as such, never passed over.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

from agents.harness.policy import convert_commands
from agents.harness.policy.policy_yaml import TIERS

MOST_ENTRIES = 1_000
_ENTRY = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)
_READING = {"Read": "read_file", "Grep": "grep", "Glob": "glob", "LS": "list_files"}
_WRITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_WEB = {"WebFetch": "web_fetch", "WebSearch": "web_search"}


class Fate(StrEnum):
    """What became of an entry."""

    CONVERTED = "converted"
    NOT_NEEDED = "not needed"  # the built-in rules say so already
    LEFT_OUT = "left out"  # it would allow more than it says
    UNKNOWN = "cannot be said"


@dataclass(frozen=True)
class Entry:
    """One entry of a list. `kind` and `rules` are what it becomes here."""

    tier: str
    text: str
    fate: Fate
    says: str
    kind: str = ""
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conversion:
    """All entries, and the policy that they become."""

    entries: tuple[Entry, ...]
    policy: str


class ConversionError(ValueError):
    """The text is not such a list; the message says why."""


def convert(text: str) -> Conversion:
    """Convert `{"permissions": {"allow": [...], "ask": [...], "deny": [...]}}`.

    Raises ConversionError if the text is something else.
    """
    lists = _lists(text)
    entries = [entry for tier in TIERS for one in lists[tier] for entry in _entry(tier, one)]
    return Conversion(tuple(entries), _policy(entries))


def _lists(text: str) -> dict[str, list[str]]:
    try:
        whole: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConversionError(f"This is not JSON: {error}") from error
    lists = whole.get("permissions", whole) if isinstance(whole, dict) else None
    if not isinstance(lists, dict) or not any(tier in lists for tier in TIERS):
        raise ConversionError('There is no "permissions" with "allow", "ask" or "deny" in it.')
    found = {tier: lists.get(tier) or [] for tier in TIERS}
    for tier, entries in found.items():
        if not isinstance(entries, list) or not all(isinstance(one, str) for one in entries):
            raise ConversionError(f'"{tier}" is not a list of texts.')
    if sum(map(len, found.values())) > MOST_ENTRIES:
        raise ConversionError(f"There are more than {MOST_ENTRIES} entries.")
    return found


def _entry(tier: str, text: str) -> Iterator[Entry]:
    match = _ENTRY.fullmatch(text.strip())
    if match is None:
        yield Entry(tier, text, Fate.UNKNOWN, "Its form is not known.")
        return
    tool, inside = match[1], (match[2] or "").strip()
    if tool == "Bash":
        yield _bash(tier, text, inside)
    elif tool in _READING or tool in _WRITING:
        yield _files(tier, text, tool, inside)
    elif tool in _WEB:
        yield _web(tier, text, _WEB[tool], inside)
    elif tool.startswith("mcp__"):
        yield _mcp(tier, text, tool)
    else:
        yield Entry(tier, text, Fate.UNKNOWN, f"There is no tool like {tool} here.")


def _bash(tier: str, text: str, inside: str) -> Entry:
    if inside in ("", "*", ":*"):
        if tier == "allow":
            says = "Would allow every command. The built-in rules judge each by itself."
            return Entry(tier, text, Fate.LEFT_OUT, says)
        return Entry(tier, text, Fate.CONVERTED, "Every command.", "tools", ("bash",))
    found = convert_commands.convert(tier, inside)
    fate = Fate(found.fate)
    rules = (found.rule,) if fate is Fate.CONVERTED else ()
    return Entry(tier, text, fate, found.says, "commands" if rules else "", rules)


def _files(tier: str, text: str, tool: str, inside: str) -> Entry:
    verb = "write" if tool in _WRITING else "read"
    if tier == "allow":
        if inside.startswith(("//", "~", "../")):
            says = f"Files outside the workspace always ask ({'A4' if verb == 'write' else 'A13'})."
            return Entry(tier, text, Fate.LEFT_OUT, says)
        says = f"Agents may {verb} files of the workspace; protected files and secrets ask."
        return Entry(tier, text, Fate.NOT_NEEDED, says)
    if not inside or inside in ("*", "**"):
        tools = ("write_file", "edit_file") if verb == "write" else (_READING[tool],)
        return Entry(tier, text, Fate.CONVERTED, "Every call of the tool.", "tools", tools)
    rules = _paths(inside)
    if not rules:
        return Entry(tier, text, Fate.UNKNOWN, "Patterns with ! or braces cannot be said here.")
    says = f"File tools and commands that {verb} these paths; here * also matches slashes."
    says += (
        " A search through a folder above them is not covered."
        if verb == "read"
        else " git commands that change many files at once are not covered."
    )
    return Entry(tier, text, Fate.CONVERTED, says, f"{verb}s", rules)


def _paths(pattern: str) -> tuple[str, ...]:
    """The same paths as rules here; none if that is not possible."""
    if pattern.startswith("!") or any(sign in pattern for sign in "{}\\"):
        return ()
    if pattern.startswith("//"):
        return (pattern[1:].replace("**", "*"),)
    if pattern.startswith("~/"):
        return (
            f"/home/*{pattern[1:]}".replace("**", "*"),
            f"/root{pattern[1:]}".replace("**", "*"),
        )
    anchored = pattern.startswith(("./", "/"))
    path = pattern.removeprefix(".").removeprefix("/") if anchored else pattern
    deep = path.startswith("**/")
    path = path.removeprefix("**/").replace("**", "*").rstrip("/")
    if not path.strip("*/"):
        return ()
    anywhere = deep or (not anchored and "/" not in path)
    names = [path, *([f"*/{path}"] if anywhere else [])]
    return (*names, *(f"{name}/*" for name in names if not name.endswith("*")))


def _web(tier: str, text: str, tool: str, inside: str) -> Entry:
    if tier == "allow":
        says = "Connections ask (A1). Hosts that may be read from are a setting of the project."
        return Entry(tier, text, Fate.LEFT_OUT, says)
    if inside:
        says = "Single hosts cannot be named here. Every connection asks already (A1)."
        return Entry(tier, text, Fate.UNKNOWN, says)
    return Entry(tier, text, Fate.CONVERTED, "Every call of the tool.", "tools", (tool,))


def _mcp(tier: str, text: str, tool: str) -> Entry:
    server, _, name = tool.removeprefix("mcp__").partition("__")
    if tier == "allow":
        says = "Tools of a server are allowed by trusting the server, and only those that read."
        return Entry(tier, text, Fate.LEFT_OUT, says)
    rule = f"mcp:{server}:{name or '*'}"
    return Entry(tier, text, Fate.CONVERTED, "Every call of it.", "tools", (rule,))


def _policy(entries: list[Entry]) -> str:
    """The converted entries as a policy, each with the entry it comes from."""
    tiers: dict[str, dict[str, list[dict[str, str]]]] = {}
    for entry in entries:
        for rule in entry.rules:
            item = {"rule": rule, "because": f"Imported: {entry.text}"}
            kinds = tiers.setdefault(entry.tier, {})
            if item not in kinds.setdefault(entry.kind, []):
                kinds[entry.kind].append(item)
    whole: Mapping[str, Any] = {"version": 1, **tiers}
    return str(yaml.safe_dump(dict(whole), sort_keys=False, allow_unicode=True, width=100))
