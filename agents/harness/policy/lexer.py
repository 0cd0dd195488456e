"""Cuts a shell text into words and operators, to find what must be denied. It never fails."""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from agents.harness.policy.commands import Redirection, Word
from agents.harness.policy.nesting import end_of_parentheses

_OPERATORS = (";;&", "&&", "||", ";;", ";&", "|&", ";", "|", "&", "(", ")")
_REDIRECTION = re.compile(r"(\d*|\{\w+\})(<<<|<<-|<<|<&|<>|>>|>\||>&|&>>|&>|<|>)")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_BRACED = re.compile(r"([!#]?)([A-Za-z_]\w*|[0-9@*#?$!-])(?:\[[^]]*\])?(.*)", re.DOTALL)
_WORD_END = frozenset(" \t\n;&|<>()")
_MOST_NESTED = 16  # `${a:-${b:-...}}`
_LONGEST_WORD = 20_000  # `a=$a$a` doubles each time


@dataclass
class Token:
    """An operator (also a line end), a word, or a redirection with its target."""

    operator: str = ""
    word: Word | None = None
    redirection: Redirection | None = None


@dataclass
class _Part:
    """A word while it is put together."""

    text: list[str] = field(default_factory=list)
    size: int = 0  # of the values of variables in it
    known: bool = True
    quoted: bool = False
    glob: bool = False
    tainted: bool = False
    names: set[str] = field(default_factory=set)
    output: str | None = None


class Lexer:
    """One pass over a text. `substitute` is told each command substitution and gives its value."""

    def __init__(
        self,
        text: str,
        *,
        variables: dict[str, Word],
        substitute: Callable[[str], Word],
        depth: int = 0,
    ) -> None:
        self._text = text
        self._at = 0
        self._variables = variables
        self._substitute = substitute
        self._depth = depth
        self._waiting: list[tuple[Redirection, str, bool, bool]] = []  # here-documents

    def next(self) -> Token | None:
        """The next token, or None at the end."""
        self._skip_blanks()
        text, at = self._text, self._at
        if at >= len(text):
            return None
        if text[at] == "\n":
            self._at += 1
            self._read_here_documents()
            return Token(operator="\n")
        if text.startswith(("<(", ">("), at):
            return Token(word=self._word())
        match = _REDIRECTION.match(text, at)
        if match is not None:
            return Token(redirection=self._redirection(match))
        for operator in _OPERATORS:
            if text.startswith(operator, at):
                self._at += len(operator)
                return Token(operator=operator)
        return Token(word=self._word())

    def _skip_blanks(self) -> None:
        text = self._text
        while self._at < len(text):
            if text[self._at] in " \t\r":
                self._at += 1
            elif text.startswith("\\\n", self._at):
                self._at += 2
            elif text[self._at] == "#":
                end = text.find("\n", self._at)
                self._at = len(text) if end < 0 else end
            else:
                return

    def _redirection(self, match: re.Match[str]) -> Redirection:
        number, operator = match.groups()
        self._at = match.end()
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        start = self._at
        target = self._word() if self._text[start : start + 1] not in ("", "\n") else Word("")
        redirection = Redirection(operator, target, number=number)
        if operator in ("<<", "<<-"):
            quoted = target.quoted
            self._waiting.append((redirection, target.text, quoted, operator == "<<-"))
        elif operator == "<<<":
            redirection.body = target.text + "\n" if target.known else None
        return redirection

    def _read_here_documents(self) -> None:
        for redirection, delimiter, quoted, strip_tabs in self._waiting:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                line = self._text[self._at :] if end < 0 else self._text[self._at : end]
                self._at = len(self._text) if end < 0 else end + 1
                if strip_tabs:
                    line = line.lstrip("\t")
                if line == delimiter:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            redirection.body = body
            if not quoted:
                self._expansions_in(body)
        self._waiting = []

    def _expansions_in(self, body: str) -> None:
        """Find the substitutions in an unquoted here-document; they are run."""
        inner = Lexer(
            '"' + body.replace('"', '\\"') + '"',
            variables=self._variables,
            substitute=self._substitute,
            depth=self._depth + 1,
        )
        inner.next()

    def _word(self) -> Word:
        part = _Part()
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in "<>" and self._text[self._at + 1 : self._at + 2] == "(":
                self._at += 1
                value = self._substitute(self._in_parentheses())
                part.output = value.text if value.known else None
                self._note(part, value, known=False)
            elif character in _WORD_END:
                break
            else:
                self._character(part, character)
        text = "".join(part.text)
        names = frozenset(part.names)
        return Word(text, part.known, part.quoted, names, part.tainted, part.glob, part.output)

    def _character(self, part: _Part, character: str) -> None:
        text = self._text
        if character == "'":
            end = text.find("'", self._at + 1)
            end = len(text) if end < 0 else end
            part.text.append(text[self._at + 1 : end])
            part.quoted = True
            self._at = end + 1
        elif character == '"':
            part.quoted = True
            self._at += 1
            self._double_quotes(part)
        elif character == "\\":
            if text.startswith("\n", self._at + 1):
                self._at += 2
                return
            part.text.append(text[self._at + 1 : self._at + 2])
            part.quoted = True
            self._at += 2
        elif character in "$`":
            self._expansion(part)
        else:
            part.glob = part.glob or character in "*?["
            part.text.append(character)
            self._at += 1

    def _double_quotes(self, part: _Part) -> None:
        text = self._text
        while self._at < len(text) and text[self._at] != '"':
            character = text[self._at]
            if character == "\\":
                following = text[self._at + 1 : self._at + 2]
                kept = following if following in '$`"\\' else f"\\{following}"
                part.text.append("" if following == "\n" else kept)
                self._at += 2
            elif character in "$`":
                self._expansion(part)
            else:
                part.text.append(character)
                self._at += 1
        self._at += 1

    def _expansion(self, part: _Part) -> None:
        text = self._text
        if text[self._at] == "`":
            self._at += 1
            inner = self._until_backtick()
            self._note(part, self._substitute(inner))
        elif text.startswith("$'", self._at):
            self._at += 2
            part.quoted = True
            part.text.append(self._ansi_quotes())
        elif text.startswith('$"', self._at):
            self._at += 1
        elif text.startswith("$((", self._at):
            self._at += 1
            self._in_parentheses()
            part.known = False
        elif text.startswith("$(", self._at):
            self._at += 1
            self._note(part, self._substitute(self._in_parentheses()))
        elif text.startswith("${", self._at):
            self._at += 2
            self._braced(part)
        else:
            match = _NAME.match(text, self._at + 1)
            self._at = self._at + 1 if match is None else match.end()
            if match is None:
                part.text.append("$")
            else:
                self._variable(part, match[0])

    def _note(self, part: _Part, value: Word, *, known: bool = True) -> None:
        """Put a value into a word, with what is known of it."""
        part.names |= value.names
        part.tainted = part.tainted or value.tainted
        part.size += len(value.text)
        part.known = part.known and value.known and known and part.size <= _LONGEST_WORD
        if value.known and known and part.size <= _LONGEST_WORD:
            part.text.append(value.text)

    def _variable(self, part: _Part, name: str) -> None:
        value = self._variables.get(name)
        if value is None:  # it comes from the environment
            part.names.add(name)
        self._note(part, value or Word("", known=False))

    def _braced(self, part: _Part) -> None:
        start, depth = self._at, 1
        text = self._text
        while self._at < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[self._at], 0)
            self._at += 1
        match = _BRACED.fullmatch(text[start : self._at - 1])
        if match is None or self._depth >= _MOST_NESTED:
            part.known = False
            return
        mark, name, rest = match.groups()
        value = self._variables.get(name)
        if mark:  # a length, or the value of another variable
            part.known = False
            part.names |= {name} if value is None else {*value.names, value.text}
        if mark or not rest:
            self._variable(part, name)
            return
        part.names.add(name)
        deeper = self._depth + 1
        inner = Lexer(
            f'"{rest}"', variables=self._variables, substitute=self._substitute, depth=deeper
        )
        token = inner.next()
        used = token.word if token is not None and token.word is not None else Word("")
        if rest.startswith((":-", "-", ":=", "=")) and name not in self._variables:
            default = used.text.lstrip(":-=")
            self._note(part, Word(default, used.known, names=used.names, tainted=used.tainted))
        elif (
            rest.startswith((":-", "-", ":=", "=", ":?", "?")) and value is not None and value.text
        ):
            self._note(part, value)
        else:
            self._note(part, Word("", known=False, names=used.names, tainted=used.tainted))

    def _ansi_quotes(self) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] != "'":
            self._at += 2 if self._text[self._at] == "\\" else 1
        raw = self._text[start : self._at]
        self._at += 1
        raw = raw.replace("\\e", "\\x1b").replace("\\E", "\\x1b")
        try:
            return codecs.decode(raw.encode("latin-1", "backslashreplace"), "unicode_escape")
        except (UnicodeDecodeError, ValueError):
            return raw

    def _until_backtick(self) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] != "`":
            self._at += 2 if self._text[self._at] == "\\" else 1
        inner = self._text[start : self._at]
        self._at += 1
        return re.sub(r"\\([`$\\])", r"\1", inner)

    def _in_parentheses(self) -> str:
        """The text up to the parenthesis that closes the one at the present place."""
        start = self._at + 1
        end = end_of_parentheses(self._text, self._at)
        self._at = end + 1
        return self._text[start:end]
