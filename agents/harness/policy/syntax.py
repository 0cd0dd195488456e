"""The tree of a shell text: only what the strict reader understands, nothing else."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Literal:
    """Characters that are there as they are; unquoted ones may still be a pattern."""

    text: str
    quoted: bool = False


@dataclass(frozen=True)
class Parameter:
    """`$name`, or `${name...}` with what `change` does to its value.

    `change` is empty, `-` (a default, in `default`), `#` (its length), `[` (items of a list; which
    of them is in `default`, with `#` before it for their number) or `?` (anything else, as it stands
    in `default`).
    """

    name: str
    quoted: bool = False
    change: str = ""
    default: str = ""


@dataclass(frozen=True)
class Substitution:
    """`$(...)`, or `<(...)` and `>(...)` if `is_file`."""

    script: "Script"
    quoted: bool = False
    is_file: bool = False


@dataclass(frozen=True)
class Number:
    """`$((...))` over plain numbers: a number that is not worked out."""

    names: tuple[str, ...] = ()
    scripts: tuple["Script", ...] = ()  # of the substitutions in it


@dataclass(frozen=True)
class Items:
    """`(...)` behind `name=`: the words of a list. `adds` if they are put behind those there are."""

    words: tuple["Word", ...]
    adds: bool = False


Part = Literal | Parameter | Substitution | Number | Items
Word = tuple[Part, ...]


@dataclass
class Redirect:
    """A redirection; `body` is what a here-document holds."""

    number: str
    operator: str
    target: Word
    body: Word | None = None


@dataclass
class Simple:
    """Assignments, words and redirections. `at` is where the first word begins in the text."""

    assignments: list[tuple[str, Word]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    at: int = -1


@dataclass
class Group:
    """`( ... )`, `{ ...; }` or `[[ ... ]]`, of which only the words count."""

    script: "Script"
    is_subshell: bool = False
    words: tuple[Word, ...] = ()


@dataclass
class If:
    """Conditions with what they lead to; the last condition is None for `else`."""

    branches: list[tuple["Script | None", "Script"]]


@dataclass
class Loop:
    """`while`, `until`, or `for name in words` (`words` is None for `for name`)."""

    condition: "Script | None"
    body: "Script"
    name: str = ""
    words: list[Word] | None = None


@dataclass
class Case:
    """`case`: the word and the patterns only count for what is run in them."""

    words: list[Word]
    bodies: list["Script"]


@dataclass
class Function:
    """A definition."""

    name: str
    body: "Node"


@dataclass
class Compound:
    """A node with redirections behind it."""

    node: "Group | If | Loop | Case"
    redirects: list[Redirect]


Node = Simple | Compound | Function


@dataclass
class Pipeline:
    """Commands that pipe into each other."""

    nodes: list[Node]


@dataclass
class AndOr:
    """Pipelines with the operators in front of them; the first has none."""

    pipelines: list[tuple[str, Pipeline]]
    background: bool = False


@dataclass
class Script:
    """What is separated by lines and semicolons. `heads` are the places of command names."""

    items: list[AndOr] = field(default_factory=list)
