"""What a part of a shell text may change, found without following its ways."""

import re
from collections.abc import Iterator, Mapping

from agents.harness.policy.syntax import (
    Case,
    Compound,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Node,
    Number,
    Script,
    Simple,
    Word,
)

FOLDER = " folder"  # markers among the names; no variable is called like this
LEAVES = " leaves"
ARGUMENTS = " arguments"
NUMBER = " number "  # before a name that only gets numbers
TEXT = " text"  # runs text that was not looked at here

_MARKERS = {
    "cd": FOLDER, "pushd": FOLDER, "popd": FOLDER, "break": LEAVES, "continue": LEAVES,
    "return": LEAVES, "shift": ARGUMENTS, "set": ARGUMENTS, "eval": TEXT, "source": TEXT, ".": TEXT,
}  # fmt: skip
_NAMING = frozenset({"read", "unset", "mapfile", "readarray", "getopts", "printf", "wait", "let"})
_DECLARING = frozenset({"export", "declare", "local", "readonly", "typeset"})


def changed(part: Script | Node, functions: Mapping[str, Node]) -> frozenset[str]:
    """The names of variables that may get another value, and markers."""
    names = set(_of(part))
    for body in functions.values():
        names |= set(_of(body))
    return frozenset(names)


def _of(part: Script | Node) -> Iterator[str]:
    if isinstance(part, Script):
        for item in part.items:
            for _, pipeline in item.pipelines:
                for node in pipeline.nodes:
                    yield from _of(node)
    elif isinstance(part, Simple):
        yield from _of_simple(part)
    elif isinstance(part, Function):
        yield from _of(part.body)
    elif isinstance(part, Compound):
        yield from _of_compound(part.node)


def _of_simple(command: Simple) -> Iterator[str]:
    for name, word in command.assignments:
        is_number = len(word) == 1 and isinstance(word[0], Number)
        yield f"{NUMBER}{name}" if is_number and not command.words else name
    head = _text(command.words[0]) if command.words else ""
    if head is None:
        yield TEXT
    if head in _MARKERS:
        yield _MARKERS[head]
    if head in _NAMING or head in _DECLARING:
        for word in command.words[1:]:
            first = word[0]
            if isinstance(first, Literal) and (match := re.match(r"[A-Za-z_]\w*", first.text)):
                yield match[0]


def _text(word: Word) -> str | None:
    """The name of a command if it is constant."""
    if all(isinstance(part, Literal) for part in word):
        return "".join(part.text for part in word if isinstance(part, Literal))
    return None


def _of_compound(node: Group | If | Loop | Case) -> Iterator[str]:
    if isinstance(node, Group):
        # A subshell changes nothing outside, but what it changes does not hold in the next round.
        names = list(_of(node.script))
        yield from (n for n in names if not (node.is_subshell and n in (FOLDER, LEAVES)))
    elif isinstance(node, If):
        for condition, body in node.branches:
            yield from _of(condition) if condition is not None else ()
            yield from _of(body)
    elif isinstance(node, Loop):
        yield from [node.name] if node.name else []
        yield from _of(node.condition) if node.condition is not None else ()
        yield from _of(node.body)
    else:
        for body in node.bodies:
            yield from _of(body)
