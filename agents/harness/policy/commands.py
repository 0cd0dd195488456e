"""Commands as the loose reading finds them in a text: the data, without the reading."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Word:
    """A word of a command line, as far as it is known without running anything.

    `known` is false if a part of it comes from somewhere else. `names` are the variables that it
    uses, `tainted` says that a secret goes into it.
    """

    text: str
    known: bool = True
    quoted: bool = False
    names: frozenset[str] = frozenset()
    tainted: bool = False
    glob: bool = False
    output: str | None = None  # what the commands of a `<(...)` print, if that is known


@dataclass
class Redirection:
    """`operator` without the number of the descriptor; `body` is the text of a here-document."""

    operator: str
    target: Word
    body: str | None = None
    number: str = ""


@dataclass
class Command:
    """One simple command. `upstream` is what pipes into it, `cwd` where it runs if that is known."""

    words: list[Word]
    assignments: list[tuple[str, Word]] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    upstream: "Command | None" = None
    cwd: str | None = None
    background: bool = False
    through: tuple[str, ...] = ()  # the wrappers that start it
    secret: bool | None = None  # whether it reads one, once that has been looked at
    multiplies: bool = False  # a function that starts itself more than once

    @property
    def name(self) -> str:
        """The program without its folder; empty if there is none or it is not known.

        A program that is not in a folder for programs keeps it: `./reboot` is not `reboot`.
        """
        if not self.words or not self.words[0].known:
            return ""
        folder, _, name = self.words[0].text.rpartition("/")
        return name if folder.endswith("bin") or not folder else self.words[0].text

    @property
    def arguments(self) -> list[str]:
        """The words after the name; of unknown ones what is known."""
        return [word.text for word in self.words[1:]]

    @property
    def argv(self) -> tuple[str, ...]:
        """All words."""
        return tuple(word.text for word in self.words)
