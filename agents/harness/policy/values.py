"""What is known of a text before the shell has made it: the values of words and variables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from agents.harness.policy.simple import NotUnderstoodError
from agents.harness.policy.syntax import Node


class Kind(IntEnum):
    """How much is known, from everything to nothing."""

    KNOWN = 0
    NUMBER = 1  # digits
    NAMED = 2  # like the stand-in, but for digits (also hexadecimal ones) in it
    LISTED = 3  # paths of files in the workspace that are no secrets
    FOUND = 4  # paths in the workspace; some may be secrets
    TEXT = 5


@dataclass(frozen=True)
class Value:
    """A text; if it is not known, `text` is a stand-in."""

    text: str = ""
    kind: Kind = Kind.TEXT
    path: str = ""  # of the file that it is read from
    items: tuple["Field", ...] | None = None  # of a list


UNKNOWN = Value()
NUMBER = Value("1", Kind.NUMBER)
LISTED = Value("./listed", Kind.LISTED)


@dataclass(frozen=True)
class Field:
    """A word after expansion. One that is not known may stand for several if it is not quoted."""

    text: str
    kind: Kind = Kind.KNOWN
    glob: bool = False
    quoted: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether the text is what the program gets."""
        return self.kind is Kind.KNOWN and not self.glob


@dataclass(frozen=True)
class State:
    """What holds at one place of a text. `folders` are those that it may be in."""

    folders: frozenset[str]
    variables: Mapping[str, Value] = field(default_factory=dict)
    functions: Mapping[str, Node] = field(default_factory=dict)
    arguments: tuple[Field, ...] | None = None
    stdin: Value | None = None
    pushed: tuple[frozenset[str], ...] = ()
    is_unlikely: bool = False  # only if something fails that has been seen to work


def join(*states: State | None) -> State | None:
    """What is known if one of the states holds."""
    found = [state for state in states if state is not None]
    if not found:
        return None
    found = [state for state in found if not state.is_unlikely] or found
    first = found[0]
    if all(state is first for state in found):
        return first
    names = {name for state in found for name in state.variables}
    variables = {}
    for name in names:
        values = {state.variables.get(name) for state in found}
        one = next(iter(values))
        variables[name] = one if len(values) == 1 and one is not None else UNKNOWN
    functions = dict(first.functions)
    for state in found[1:]:
        for name, body in state.functions.items():
            if functions.setdefault(name, body) is not body:
                raise NotUnderstoodError("it defines a function in two ways")
    arguments = first.arguments if all(s.arguments == first.arguments for s in found) else None
    folders = frozenset(folder for state in found for folder in state.folders)
    pushed = first.pushed if all(s.pushed == first.pushed for s in found) else ()
    return State(folders, variables, functions, arguments, first.stdin, pushed, first.is_unlikely)
