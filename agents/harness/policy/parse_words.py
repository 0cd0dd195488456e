"""Reads the words of a shell text strictly: what is not known for certain is refused."""

import re
from collections.abc import Callable

from agents.harness.policy.simple import NotUnderstoodError
from agents.harness.policy.syntax import (
    Literal,
    Number,
    Parameter,
    Part,
    Script,
    Substitution,
    Word,
)

ReadScript = Callable[[int, str], tuple[Script, int]]

_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!]")
_BRACED = re.compile(r"\{(#?)([A-Za-z_]\w*|[0-9@*#?])([^{}'\"\\`$()\n]*)\}")
_ITEMS = re.compile(r"\{(#?)([A-Za-z_]\w*)\[([@*]|\d{1,4})\]\}")
_STATUS = re.compile(r"\$\{PIPESTATUS\[\d\]\}")
_CALCULATED = re.compile(r"[\w \t+*/%<>=!&|?:(-]|\)(?!\))|\)(?=\)\))|\$(?=[A-Za-z_])")
_END = frozenset(" \t\n;&|<>()")
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_MOST_DEPTH = 12
_DEFAULT = re.compile(r":?-([\w./ -]*)")


class WordReader:
    """Reads one word after the other; `script` reads the text of a substitution."""

    def __init__(self, text: str, script: ReadScript, *, depth: int = 0) -> None:
        if depth > _MOST_DEPTH:
            raise NotUnderstoodError("it is nested too deeply")
        self.text = text
        self.at = 0
        self._script = script

    def word(self) -> Word:
        """The word at the present place; it has at least one part."""
        parts: list[Part] = []
        text = self.text
        while self.at < len(text):
            character = text[self.at]
            if character in "<>" and text[self.at + 1 : self.at + 2] == "(":
                parts.append(self._substitution(self.at + 2, is_file=True))
            elif character in _END:
                break
            elif character == "'":
                parts.append(self._single())
            elif character == '"':
                self.at += 1
                parts += self.double('"')
            elif character == "\\":
                self._backslash(parts)
            elif character in "$`":
                parts.append(self._expansion(quoted=False))
            else:
                parts.append(Literal(character))
                self.at += 1
        return joined(parts)

    def _single(self) -> Literal:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise NotUnderstoodError("a quote is not closed")
        inner = self.text[self.at + 1 : end]
        self.at = end + 1
        return Literal(inner, quoted=True)

    def _backslash(self, parts: list[Part]) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if not following:
            raise NotUnderstoodError("it ends with a backslash")
        if following != "\n":
            parts.append(Literal(following, quoted=True))
        self.at += 2

    def double(self, end: str) -> list[Part]:
        """The parts up to a closing double quote; with no `end`, to the end of the text."""
        parts: list[Part] = [Literal("", quoted=True)]
        text = self.text
        kept = '$`"\\' if end else "$`\\"
        while self.at < len(text) and not (end and text[self.at] == end):
            character = text[self.at]
            following = text[self.at + 1 : self.at + 2]
            if character == "\\" and following == "\n":
                raise NotUnderstoodError("it has a line that goes on inside quotes")
            if character == "\\" and following and following in kept:
                parts.append(Literal(following, quoted=True))
                self.at += 2
            elif character in "$`":
                parts.append(self._expansion(quoted=True))
            else:
                parts.append(Literal(character, quoted=True))
                self.at += 1
        if end and self.at >= len(text):
            raise NotUnderstoodError("a quote is not closed")
        self.at += 1
        return parts

    def _expansion(self, *, quoted: bool) -> Part:
        text, at = self.text, self.at
        if text[at] == "`":
            return self._backticks(quoted=quoted)
        if text.startswith("$'", at) and not quoted:
            return self._ansi()
        following = text[at + 1 : at + 2]
        if following == "[" or (following == '"' and not quoted):
            raise NotUnderstoodError(f"it has an unusual expansion ($ and {following})")
        if following == "(":
            is_number = text.startswith("$((", at)
            return self._arithmetic() if is_number else self._substitution(at + 2, quoted=quoted)
        return self._braced(quoted=quoted) if following == "{" else self._name(quoted=quoted)

    def _name(self, *, quoted: bool) -> Part:
        match = _NAME.match(self.text, self.at + 1)
        if match is None:
            self.at += 1
            return Literal("$", quoted=quoted)
        self.at = match.end()
        return Parameter(match[0], quoted)

    def _substitution(self, start: int, *, quoted: bool = False, is_file: bool = False) -> Part:
        if self.text.startswith("<", start):
            raise NotUnderstoodError("it reads a file into a word")
        script, self.at = self._script(start, ")")
        return Substitution(script, quoted, is_file)

    def _backticks(self, *, quoted: bool) -> Part:
        end = self.text.find("`", self.at + 1)
        if end < 0 or "\\" in self.text[self.at : end]:
            raise NotUnderstoodError("it has backticks that are not plain")
        script, self.at = self._script(self.at + 1, "`")
        return Substitution(script, quoted)

    def _arithmetic(self) -> Part:
        self.at += len("$((")
        plain = ""
        scripts: list[Script] = []
        while not (self.text.startswith("))", self.at) and plain.count("(") == plain.count(")")):
            match = _CALCULATED.match(self.text, self.at)
            if match is not None:
                plain += match[0]
                self.at = match.end()
            elif (
                self.text.startswith("$(", self.at) and self.text[self.at + 2 : self.at + 3] != "("
            ):
                script, self.at = self._script(self.at + 2, ")")
                scripts.append(script)
                plain += "1"
            else:
                raise NotUnderstoodError("it has arithmetic that is not plain")
        self.at += len("))")
        if re.search(r"(?<![<>=!])=(?!=)|\+\+|--", plain):
            raise NotUnderstoodError("it has arithmetic that changes a variable")
        return Number(tuple(re.findall(r"[A-Za-z_]\w*", plain)), tuple(scripts))

    def _braced(self, *, quoted: bool) -> Part:
        status = _STATUS.match(self.text, self.at)
        items = _ITEMS.match(self.text, self.at + 1)
        if status is not None:
            self.at = status.end()
            return Parameter("?", quoted)
        if items is not None:
            self.at = items.end()
            return Parameter(items[2], quoted, "[", f"{items[1]}{items[3]}")
        return self._changed(quoted=quoted)

    def _changed(self, *, quoted: bool) -> Part:
        match = _BRACED.match(self.text, self.at + 1)
        if match is None:
            raise NotUnderstoodError("it has an expansion that is not plain (${)")
        self.at = match.end()
        length, name, rest = match.groups()
        if not rest:
            return Parameter(name, quoted, length)
        default = _DEFAULT.fullmatch(rest)
        if length or rest[0] == "[" or "@" in rest or "!" in rest:
            raise NotUnderstoodError("it has an expansion that is not plain (${)")
        if default is not None:
            # Without a colon a variable that is set, even to nothing, keeps its value.
            return Parameter(name, quoted, *(("-", default[1]) if rest[0] == ":" else ("?", "-")))
        if rest[0] in "%#/^,:+=" or rest.startswith(":="):
            if rest.startswith(("=", ":=", ":+", "+")) or re.match(r":[^-]", rest):
                raise NotUnderstoodError("it has an expansion that is not plain (${)")
            return Parameter(name, quoted, "?", rest)
        raise NotUnderstoodError("it has an expansion that is not plain (${)")

    def _ansi(self) -> Literal:
        at = self.at + 2
        while at < len(self.text) and self.text[at] != "'":
            at += 2 if self.text[at] == "\\" else 1
        if at >= len(self.text):
            raise NotUnderstoodError("a quote is not closed")
        raw = self.text[self.at + 2 : at]
        self.at = at + 1
        return Literal(_ANSI.sub(_decoded, raw), quoted=True)


def _decoded(match: re.Match[str]) -> str:
    hexadecimal, octal, letter = match.groups()
    if letter is not None:
        if letter not in _ANSI_LETTERS:
            raise NotUnderstoodError("it has an escape that is not plain")
        return _ANSI_LETTERS[letter]
    code = int(hexadecimal, 16) if hexadecimal else int(octal, 8)
    if not " " <= chr(code) <= "~":
        raise NotUnderstoodError("it has an escape that is not plain")
    return chr(code)


def joined(parts: list[Part]) -> Word:
    """Neighbours of the same kind put together."""
    done: list[Part] = []
    for part in parts:
        last = done[-1] if done else None
        if isinstance(part, Literal) and isinstance(last, Literal) and last.quoted == part.quoted:
            done[-1] = Literal(last.text + part.text, part.quoted)
        else:
            done.append(part)
    return tuple(done)


def plain(word: Word) -> str | None:
    """The text of a word of unquoted characters; None for every other one."""
    if len(word) == 1 and isinstance(word[0], Literal) and not word[0].quoted:
        return word[0].text
    return None
