"""Rules that people write, as data: what they cover, whose they are, where they stand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property

ANY = "*"


@dataclass(frozen=True)
class Source:
    """Where a rule comes from; `line` counts from 1, 0 means that it has none."""

    origin: str = "this installation"
    line: int = 0
    because: str = ""  # the reason that its author gave

    def sentence(self, verb: str, what: object) -> str:
        """What the rule does, in words for a person."""
        because = f": {self.because}" if self.because else ""
        return f"The policy of {self.origin} {verb} `{what}`{because}"


@dataclass(frozen=True)
class CommandPattern:
    """These words of a command, and then nothing or, if `open_end`, anything.

    A word `*` stands for any words, a `*` within a word for any letters; `load` lets only rules
    that ask or deny have them.
    """

    words: tuple[str, ...]
    open_end: bool
    source: Source = field(default=Source(), compare=False)

    def matches(self, argv: tuple[str, ...]) -> bool:
        """Whether the words of a command are covered."""
        if self._regex is not None:
            return self._regex.fullmatch("".join(f"\0{word}" for word in argv)) is not None
        head = argv[: len(self.words)]
        return head == self.words and (self.open_end or len(argv) == len(self.words))

    @cached_property
    def _regex(self) -> re.Pattern[str] | None:
        if not any(ANY in word for word in self.words):
            return None
        words = [*self.words, *([ANY] if self.open_end else [])]
        return re.compile("".join(_word(word) for word in words), re.DOTALL)

    def __str__(self) -> str:
        return " ".join([*self.words, *([ANY] if self.open_end else [])])


def _word(word: str) -> str:
    if word == ANY:
        return "(?:\0[^\0]*)*"
    return "\0" + "[^\0]*".join(re.escape(part) for part in word.split(ANY))


@dataclass(frozen=True)
class TextPattern:
    """A path of the workspace, the name of a tool, or the name of a built-in rule.

    In a path `*` stands for any letters, slashes too. Comparison with paths ignores case.
    """

    text: str
    source: Source = field(default=Source(), compare=False)

    def matches(self, name: str) -> bool:
        """Whether a path or a name is covered."""
        return self._regex.fullmatch(name) is not None

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(translate(self.text), re.IGNORECASE)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TierRules:
    """One tier: commands, paths that are written or read, tools, and built-in rules by name."""

    commands: tuple[CommandPattern, ...] = ()
    writes: tuple[TextPattern, ...] = ()
    reads: tuple[TextPattern, ...] = ()
    tools: tuple[TextPattern, ...] = ()
    rules: tuple[TextPattern, ...] = ()

    def __add__(self, other: "TierRules") -> "TierRules":
        return TierRules(
            self.commands + other.commands,
            self.writes + other.writes,
            self.reads + other.reads,
            self.tools + other.tools,
            self.rules + other.rules,
        )

    def all(self) -> Iterator[tuple[str, CommandPattern | TextPattern]]:
        """Every rule with the name of its list, in the order of the lists."""
        for name in KINDS:
            for rule in getattr(self, name):
                yield name, rule


KINDS = ("commands", "writes", "reads", "tools", "rules")


@dataclass(frozen=True)
class Policy:
    """What people have added to the built-in rules; they may tighten everything, but never allow
    what is denied."""

    allow: TierRules = TierRules()
    ask: TierRules = TierRules()
    deny: TierRules = TierRules()

    def __add__(self, other: "Policy") -> "Policy":
        return Policy(self.allow + other.allow, self.ask + other.ask, self.deny + other.deny)

    def all(self) -> Iterator[tuple[str, str, CommandPattern | TextPattern]]:
        """Every rule as (tier, list, rule), the strictest tier first."""
        for tier in ("deny", "ask", "allow"):
            for kind, rule in getattr(self, tier).all():
                yield tier, kind, rule
