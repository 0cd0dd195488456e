"""From the text of a policy to its rules, with the line of each rule and of each problem."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from agents.harness.policy.rules import (
    ANY,
    KINDS,
    CommandPattern,
    Policy,
    Source,
    TextPattern,
    TierRules,
)

FORMAT = 1
MOST_CHARACTERS = 100_000
MOST_RULES = 2_000

TIERS = ("allow", "ask", "deny")
# How others call the three tiers, in small letters with _ between the words.
SPELLINGS = {
    **dict.fromkeys(("allow", "always_allow", "auto_allow", "allowed", "silent"), "allow"),
    **dict.fromkeys(("ask", "ask_user", "ask_first", "confirm", "needs_approval"), "ask"),
    **dict.fromkeys(("deny", "always_deny", "denied", "never", "block"), "deny"),
}
FIELDS = {"allow": ("commands",), "ask": KINDS, "deny": KINDS}
_ENTRY = ("rule", "because", "match", "not_match")
_BUILT_IN = frozenset(
    [f"L{n}" for n in range(1, 9)] + [f"A{n}" for n in range(1, 15)] + ["C1", "C2"]
)


@dataclass(frozen=True)
class Problem:
    """What is wrong in a line; 0 if it is about the whole text."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


@dataclass(frozen=True)
class Example:
    """A text that a rule must cover, or must not."""

    tier: str
    kind: str
    rule: CommandPattern | TextPattern
    text: str
    must_match: bool
    line: int


class _Refused(Exception):  # noqa: N818  it ends in a Problem
    def __init__(self, node: yaml.Node | None, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(_line(node), message)


def read(text: str, *, origin: str = "this installation") -> tuple[Policy, list[Problem]]:
    """The rules that are valid, and everything that is not. Examples are not tried."""
    reader = _Reader(origin)
    return reader.policy(text), reader.problems


def examples(text: str, *, origin: str = "this installation") -> list[Example]:
    """The examples that the rules of a valid text carry."""
    reader = _Reader(origin)
    reader.policy(text)
    return reader.examples


def _line(node: yaml.Node | None) -> int:
    return 0 if node is None else int(node.start_mark.line) + 1


class _Reader:
    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.problems: list[Problem] = []
        self.examples: list[Example] = []

    def policy(self, text: str) -> Policy:
        try:
            rules = sum((self._policy(part) for part in _composed(text)), Policy())
        except _Refused as refused:
            self.problems.append(refused.problem)
            return Policy()
        if sum(1 for _ in rules.all()) > MOST_RULES:
            self._refuse(None, f"has more than {MOST_RULES} rules")
        return rules

    def _policy(self, top: yaml.MappingNode) -> Policy:
        tiers: dict[str, TierRules] = {}
        version: Any = None
        for key, node in _pairs(top):
            name = str(key.value)
            tier = SPELLINGS.get(name.casefold().replace("-", "_").replace(" ", "_"))
            if name == "version":
                version = node.value
            elif tier is None:
                self._refuse(key, f"{name!r} is not known; known are version, allow, ask, deny")
            elif tier in tiers:
                self._refuse(key, f"{tier} stands here twice")
            else:
                tiers[tier] = self._tier(tier, node)
        if version != str(FORMAT):
            self._refuse(top, f"version must be {FORMAT}")
        return Policy(**tiers)

    def _tier(self, tier: str, node: yaml.Node) -> TierRules:
        if _is_empty(node):
            return TierRules()
        if isinstance(node, yaml.SequenceNode):  # a plain list is one of commands
            return TierRules(commands=tuple(self._entries(tier, "commands", node)))  # type: ignore[arg-type]
        if not isinstance(node, yaml.MappingNode):
            fields = " and ".join(FIELDS[tier])
            self._refuse(node, f"{tier}: must be a mapping with {fields}")
            return TierRules()
        found: dict[str, tuple[Any, ...]] = {}
        for key, value in _pairs(node):
            if key.value not in FIELDS[tier]:
                known = ", ".join(FIELDS[tier])
                self._refuse(key, f"{tier}: {key.value!r} is not known; known are {known}")
            else:
                found[key.value] = tuple(self._entries(tier, key.value, value))
        return TierRules(**found)

    def _entries(
        self, tier: str, kind: str, node: yaml.Node
    ) -> Iterator[CommandPattern | TextPattern]:
        where = f"{tier}: {kind}"
        if _is_empty(node):
            return
        if not isinstance(node, yaml.SequenceNode):
            self._refuse(node, f"{where} must be a list of texts (put them in quotes)")
            return
        for item in node.value:
            try:
                yield self._entry(tier, kind, item)
            except _Refused as refused:
                self.problems.append(
                    Problem(refused.problem.line, f"{where}: {refused.problem.message}")
                )

    def _entry(self, tier: str, kind: str, node: yaml.Node) -> CommandPattern | TextPattern:
        fields: dict[str, yaml.Node] = {"rule": node}
        if isinstance(node, yaml.MappingNode):
            fields = {key.value: value for key, value in _pairs(node)}
            for key, _ in _pairs(node):
                if key.value not in _ENTRY:
                    known = ", ".join(_ENTRY)
                    raise _Refused(key, f"{key.value!r} is not known; known are {known}")
            if "rule" not in fields:
                raise _Refused(node, "an entry with examples needs a rule")
        because = _text(fields["because"]) if "because" in fields else ""
        text = _text(fields["rule"], kind)
        source = Source(self._origin, _line(node), because)
        rule = _rule(fields["rule"], tier, kind, text, source)
        for name in ("match", "not_match"):
            for example in _list(fields.get(name)):
                self.examples.append(
                    Example(tier, kind, rule, _text(example), name == "match", _line(example))
                )
        return rule

    def _refuse(self, node: yaml.Node | None, message: str) -> None:
        self.problems.append(Problem(_line(node), message))


def _composed(text: str) -> list[yaml.MappingNode]:
    """The documents of a text, which a line `---` separates. Raises _Refused."""
    if len(text) > MOST_CHARACTERS:
        raise _Refused(None, f"is longer than {MOST_CHARACTERS:,} characters")
    try:
        list(yaml.safe_load_all(text))  # refuses what only a Python object could be made of
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        refused = _Refused(None, f"is not valid YAML: {error.problem or error.context}")
        refused.problem = Problem(line, str(refused))
        raise refused from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _Refused(None, f"is not valid YAML: {str(error) or 'nested too deeply'}") from error
    found = [node for node in nodes if isinstance(node, yaml.MappingNode)]
    if not found or len(found) != len(nodes):
        other = next((node for node in nodes if not isinstance(node, yaml.MappingNode)), None)
        raise _Refused(other, "must be a mapping with version, allow, ask and deny")
    return found


def _pairs(node: yaml.MappingNode) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    seen: set[str] = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _Refused(key, "a name must be a word")
        if key.value in seen:
            raise _Refused(key, f"{key.value!r} stands here twice")
        seen.add(key.value)
        yield key, value


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _list(node: yaml.Node | None) -> list[yaml.Node]:
    if node is None or _is_empty(node):
        return []
    if not isinstance(node, yaml.SequenceNode):
        raise _Refused(node, "examples must be a list of texts (put them in quotes)")
    return list(node.value)


def _text(node: yaml.Node, kind: str = "examples") -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
        raise _Refused(node, f"{kind} must be a list of texts (put them in quotes)")
    if not node.value.strip():
        raise _Refused(node, "has an empty text")
    return str(node.value)


def _rule(
    node: yaml.Node, tier: str, kind: str, text: str, source: Source
) -> CommandPattern | TextPattern:
    if kind == "commands":
        return _command(node, tier, text, source)
    if kind == "rules":
        name = text.strip().upper()
        if name not in _BUILT_IN:
            raise _Refused(node, f"there is no built-in rule {text!r} that could be stricter")
        return TextPattern(name, source)
    text = text.removeprefix("./")
    if not text.strip("*/"):
        raise _Refused(node, f"{text!r} would match everything")
    return TextPattern(text, source)


def _command(node: yaml.Node, tier: str, text: str, source: Source) -> CommandPattern:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise _Refused(node, f"{text!r} has a quote that is not closed") from error
    open_end = words[-1:] == [ANY]
    words = words[:-1] if open_end else words
    if not [word for word in words if word.strip(ANY)]:
        raise _Refused(node, f"{text!r} would match every command")
    if tier == "allow" and any(ANY in word for word in words):
        raise _Refused(node, f"{text!r} has a * that is not its last word, so it cannot allow")
    return CommandPattern(tuple(words), open_end, source)
