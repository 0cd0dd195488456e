"""Reads a shell text strictly into a tree, and refuses what it does not know for certain."""

import re

from agents.harness.policy.parse_compounds import COMPOUNDS, CompoundReader
from agents.harness.policy.parse_words import plain
from agents.harness.policy.simple import NotUnderstoodError, check_characters
from agents.harness.policy.syntax import (
    AndOr,
    Compound,
    Function,
    Group,
    Node,
    Number,
    Part,
    Pipeline,
    Script,
    Simple,
    Word,
)

MOST_COMMANDS = 50
_WORD_IN_MIDDLE = re.compile(r"\S\\\n\S")
_COMMENT_GOES_ON = re.compile(r"(?:^|[ \t;&|()])#[^\n]*\\(?:\n|$)", re.MULTILINE)
_CLOSING = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_MOST_NESTED = 40
_CALCULATION = re.compile(r"\(\(([\w \t+*/%<>=!&|?:$-]*)\)\)")
_CHANGE = re.compile(r"\s*([A-Za-z_]\w*)\s*(\+\+|--|[-+*]?=(?!=))(.*)")


def parse(text: str) -> tuple[Script, frozenset[int]]:
    """The tree, and the places in the text where the names of commands begin.

    Raises NotUnderstoodError.
    """
    check_characters(text)
    if _WORD_IN_MIDDLE.search(text) or _COMMENT_GOES_ON.search(text):
        raise NotUnderstoodError("it has a backslash in an unusual place")
    parser = _Parser(text, 0, [], 0)
    script = parser.script(frozenset())
    if parser.at < len(text) or parser.is_waiting:
        raise NotUnderstoodError("it does not parse")
    if not script.items:
        raise NotUnderstoodError("there is no command")
    return script, frozenset(parser.heads) - {-1}


class _Parser(CompoundReader):
    """`base` is where `text` begins in the whole text, `heads` are collected for the whole."""

    def __init__(self, text: str, base: int, heads: list[int], depth: int) -> None:
        super().__init__(text, self._nested, depth=depth)
        self._base = base
        self._depth = depth
        self._level = 0
        self.heads = heads

    def _nested(self, start: int, end: str) -> tuple[Script, int]:
        if end == "`":
            stop = self.text.index("`", start)
            inner = _Parser(self.text[start:stop], self._base + start, self.heads, self._depth + 1)
            script = inner.script(frozenset())
            if inner.at < stop - start:
                raise NotUnderstoodError("it does not parse")
            return script, stop + 1
        waiting, self._waiting = self._waiting, []
        self.at = start
        self._deeper()
        script = self.script(frozenset())
        self._level -= 1
        if self._waiting or self.text[self.at : self.at + 1] != ")":
            raise NotUnderstoodError("a parenthesis is not closed")
        self._waiting = waiting
        return script, self.at + 1

    def expanded(self, body: str, start: int) -> list[Part]:
        """See SimpleReader."""
        return _Parser(body, self._base + start, self.heads, self._depth + 1).double("")

    @property
    def is_waiting(self) -> bool:
        """Whether the text ends before a here-document that it announces."""
        return bool(self._waiting)

    def _deeper(self) -> None:
        self._level += 1
        if self._level > _MOST_NESTED:
            raise NotUnderstoodError("it is nested too deeply")

    # Lists

    def script(self, ends: frozenset[str]) -> Script:
        """Commands up to `)`, `;;`, one of the reserved words `ends`, or the end."""
        script = Script()
        while True:
            self._blanks(lines=True)
            if self.at >= len(self.text) or self.text[self.at] == ")":
                break
            if self.text.startswith(";;", self.at) or self._reserved() in ends:
                break
            item = self._and_or()
            script.items.append(item)
            operator = self._operator()
            item.background = operator == "&"
            if operator in (";", "&", "\n"):
                self.at += 1
                if operator == "\n":
                    self._here_documents()
            elif operator not in ("", ")", ";;"):
                raise NotUnderstoodError(f"it does not parse ({operator})")
            else:
                break
        if ends and not script.items and "esac" not in ends:
            raise NotUnderstoodError("it does not parse")
        return script

    def _and_or(self) -> AndOr:
        found = [("", self._pipeline())]
        while (operator := self._operator()) in ("&&", "||"):
            self.at += 2
            self._blanks(lines=True)
            found.append((operator, self._pipeline()))
        return AndOr(found)

    def _pipeline(self) -> Pipeline:
        while self._reserved() in ("!", "time"):
            self._take(self._reserved())
            if self.text.startswith(("-p ", "-p\t"), self.at):
                self.at += len("-p")
                self._blanks()
        nodes = [self._node()]
        while (operator := self._operator()) in ("|", "|&"):
            self.at += len(operator)
            self._blanks(lines=True)
            nodes.append(self._node())
        return Pipeline(nodes)

    # Commands

    def _node(self) -> Node:
        self._blanks()
        word = self._reserved()
        self._deeper()
        try:
            return self._compound(word) or self._simple()
        finally:
            self._level -= 1

    def _compound(self, word: str) -> Node | None:
        if word == "((":
            return self._calculation()
        if word in ("select", "coproc", "time", *_CLOSING):
            raise NotUnderstoodError(f"it has something that is not known here ({word})")
        if word == "function":
            self._take("function")
            return self._function(self._bare_name())
        if self.text.startswith("(", self.at):
            return Compound(self._subshell(), self._redirects())
        if word in COMPOUNDS:
            return Compound(COMPOUNDS[word](self), self._redirects())
        return None

    def _calculation(self) -> Node:
        """`((...))`: a comparison, or one change of a variable, as in `x=$((...))`."""
        match = _CALCULATION.match(self.text, self.at)
        if match is None:
            raise NotUnderstoodError("it has a calculation that is not plain")
        self.at = match.end()
        change = _CHANGE.fullmatch(match[1])
        rest = match[1] if change is None else (change[3] or "")
        if re.search(r"(?<![<>=!])=(?!=)|\+\+|--", rest):
            raise NotUnderstoodError("it has arithmetic that changes a variable")
        names = re.findall(
            r"[A-Za-z_]\w*", match[1] if change is None or change[2] != "=" else rest
        )
        number: Word = (Number(tuple(names)),)
        if change is not None:
            return Simple([(change[1], number)])
        return Compound(Group(Script(), words=(number,)), self._redirects())

    def _subshell(self) -> Group:
        script, self.at = self._nested(self.at + 1, ")")
        if not script.items:
            raise NotUnderstoodError("it does not parse")
        return Group(script, is_subshell=True)

    def _function(self, name: str) -> Function:
        """The rest of a definition, behind its name."""
        if self._operator() == "(":
            self.at += 1
            if self._operator() != ")":
                raise NotUnderstoodError("it does not parse (function)")
            self.at += 1
        self._blanks(lines=True)
        if self._reserved() != "{":
            raise NotUnderstoodError("it has a function whose body is no block")
        return Function(name, self._node())

    def _simple(self) -> Node:
        command = self.simple()
        if not command.words and not command.assignments and not command.redirects:
            raise NotUnderstoodError("it does not parse")
        is_one = len(command.words) == 1 and not command.assignments and not command.redirects
        if self._operator() == "(":
            name = plain(command.words[0]) if is_one else None
            if name is None or not re.fullmatch(r"[\w.:-]+", name):
                raise NotUnderstoodError("it does not parse (a parenthesis)")
            return self._function(name)
        self.heads.append(self._base + command.at if command.at >= 0 else -1)
        if len(self.heads) > MOST_COMMANDS:
            raise NotUnderstoodError(f"it has more than {MOST_COMMANDS} commands")
        return command
