"""Reads compound commands strictly: conditions, choices, loops, groups and tests."""

import re
from abc import abstractmethod
from collections.abc import Callable

from agents.harness.policy.parse_simple import SimpleReader
from agents.harness.policy.simple import NotUnderstoodError
from agents.harness.policy.syntax import Case, Group, If, Loop, Number, Script, Word

# `for ((i=0; i<10; i++))` with plain numbers, or names of numbers.
_COUNTED = re.compile(
    r"\(\(\s*([A-Za-z_]\w*)\s*=\s*(\w+)\s*;\s*\1\s*(?:[<>]=?|!=)\s*\$?(\w+)\s*;\s*\1(?:\+\+|--|[-+]=\d+)\s*\)\)"
)


class CompoundReader(SimpleReader):
    """The part of the reader that is about compound commands."""

    @abstractmethod
    def script(self, ends: frozenset[str]) -> Script:
        """Commands up to one of the reserved words `ends`."""

    def group(self) -> Group:
        """`{ ...; }`."""
        return Group(self._block("{", "}"))

    def while_(self) -> Loop:
        """`while` and `until` up to `done`."""
        self._take(self._reserved())
        return Loop(self.script(frozenset({"do"})), self._block("do", "done"))

    def _block(self, begin: str, end: str) -> Script:
        self._take(begin)
        script = self.script(frozenset({end}))
        self._take(end)
        return script

    def if_(self) -> If:
        """`if` up to `fi`."""
        branches: list[tuple[Script | None, Script]] = []
        word = "if"
        while word in ("if", "elif"):
            self._take(word)
            condition = self.script(frozenset({"then"}))
            self._take("then")
            branches.append((condition, self.script(frozenset({"elif", "else", "fi"}))))
            word = self._reserved()
        if word == "else":
            branches.append((None, self._block("else", "fi")))
        else:
            self._take("fi")
        return If(branches)

    def for_(self) -> Loop:
        """`for name in words` up to `done`."""
        self._take("for")
        counted = _COUNTED.match(self.text, self.at)
        if counted is not None:
            self.at = counted.end()
            self.at += self._operator() == ";"
            names = tuple(filter(str.isidentifier, (counted[2], counted[3])))
            return Loop(None, self._block("do", "done"), counted[1], [(Number(names),)])
        name = self._bare_name()
        words: list[Word] | None = None
        self._blanks(lines=True)
        if self._reserved() == "in":
            self._take("in")
            words = []
            while self._operator() not in (";", "\n"):
                words.append(self._argument())
            self.at += 1
        elif self._operator() == ";":
            self.at += 1
        return Loop(None, self._block("do", "done"), name, words)

    def case_(self) -> Case:
        """`case word in` up to `esac`."""
        self._take("case")
        words, bodies = [self._argument()], []
        self._blanks(lines=True)
        self._take("in")
        self._blanks(lines=True)
        while self._reserved() != "esac":
            if self._operator() == "(":
                self.at += 1
            words.append(self._argument())
            while self._operator() == "|":
                self.at += 1
                self._blanks()
                words.append(self._argument())
            if self._operator() != ")":
                raise NotUnderstoodError("it does not parse (case)")
            self.at += 1
            bodies.append(self.script(frozenset({"esac"})))
            self._blanks(lines=True)
            if self.text.startswith(";;", self.at):
                self.at += 2
                self._blanks(lines=True)
        self._take("esac")
        return Case(words, bodies)

    def test(self) -> Group:
        """`[[ ... ]]`, whose words only matter for what is substituted in them."""
        self.at += 2
        words: list[Word] = []
        while True:
            self._blanks()
            if self._reserved() == "]]":
                break
            operator = self._operator()
            if operator in ("&&", "||", "(", ")"):
                self.at += len(operator)
            elif operator or self.at >= len(self.text):
                raise NotUnderstoodError("it does not parse ([[)")
            elif self.text[self.at] in "<>":
                self.at += 1
            else:
                words.append(self._argument())
        self.at += 2
        if not words:
            raise NotUnderstoodError("it does not parse ([[)")
        return Group(Script(), words=tuple(words))


COMPOUNDS: dict[str, Callable[[CompoundReader], Group | If | Loop | Case]] = {
    "if": CompoundReader.if_,
    "for": CompoundReader.for_,
    "case": CompoundReader.case_,
    "[[": CompoundReader.test,
    "{": CompoundReader.group,
    "while": CompoundReader.while_,
    "until": CompoundReader.while_,
}
