"""Reads a command line that is one simple command, and refuses every other one.

Only what is read here can be allowed, so it takes no chances: constant words, no operators, no
expansion but globs in arguments, no redirection but to /dev/null and 2>&1.
"""

import re
import unicodedata
from dataclasses import dataclass

MOST_CHARACTERS = 10_000

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^")
_GLOB = frozenset("*?[]")
_ESCAPABLE = frozenset("()!*?[]{}$\"'\\;|&<>~#.+-^ ")
_KEPT_IN_DOUBLE_QUOTES = frozenset('$`"\\')
_ODD_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs"})
# Redirections that neither read nor write anything.
_HARMLESS_REDIRECTION = re.compile(
    r"(?:2>&1|1>&2|>&2|[12]?>>?[ \t]*/dev/null|&>[ \t]*/dev/null|<[ \t]*/dev/null)(?=[ \t]|$)"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")


class NotUnderstoodError(Exception):
    """The text is not one simple command; the message says why, for a person."""


@dataclass(frozen=True)
class Argument:
    """A word after the shell has read it; `glob` if the shell will still expand it."""

    text: str
    glob: bool = False
    quoted: bool = False


def read_simple(text: str) -> list[Argument]:
    """The words of `text`.

    Raises NotUnderstoodError if it is anything but one simple command of constant words.
    """
    check_characters(text)
    arguments = _Reader(text.strip(" \t\n")).read()
    head = arguments[0]
    if head.glob or head.quoted or _ASSIGNMENT.match(head.text):
        raise NotUnderstoodError("the name of the command is not plain")
    return arguments


def check_characters(text: str) -> None:
    """Raise NotUnderstoodError for characters that can show a person something else than bash sees."""
    if len(text) > MOST_CHARACTERS:
        raise NotUnderstoodError("it is longer than 10,000 characters")
    for character in text:
        if character in " \t\n" or (character.isascii() and character.isprintable()):
            continue
        if unicodedata.category(character) in _ODD_CATEGORIES:
            name = unicodedata.name(character, f"U+{ord(character):04X}")
            raise NotUnderstoodError(f"it has a character that cannot be seen ({name})")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._word: list[str] = []
        self._in_word = False
        self._glob = False
        self._quoted = False
        self._arguments: list[Argument] = []

    def read(self) -> list[Argument]:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        self._end_word()
        if not self._arguments:
            raise NotUnderstoodError("there is no command")
        return self._arguments

    def _step(self, character: str) -> None:
        if character in " \t":
            self._end_word()
            self._at += 1
        elif character in "<>&" or (character in "12" and not self._in_word):
            self._redirection_or_plain(character)
        elif character == "'":
            self._single_quotes()
        elif character == '"':
            self._double_quotes()
        elif character == "\\":
            self._escape()
        else:
            self._unquoted(character)

    def _end_word(self) -> None:
        if self._in_word:
            self._arguments.append(Argument("".join(self._word), self._glob, self._quoted))
        self._word, self._in_word, self._glob, self._quoted = [], False, False, False

    def _add(self, text: str, length: int) -> None:
        self._word.append(text)
        self._in_word = True
        self._at += length

    def _redirection_or_plain(self, character: str) -> None:
        match = _HARMLESS_REDIRECTION.match(self._text, self._at)
        if match is not None and not self._in_word:
            self._at = match.end()
        elif character in "12":
            self._add(character, 1)
        else:
            raise NotUnderstoodError(f"it has a redirection or an operator ({character})")

    def _single_quotes(self) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise NotUnderstoodError("a quote is not closed")
        self._quote(self._text[self._at + 1 : end], end + 1)

    def _double_quotes(self) -> None:
        inner: list[str] = []
        at = self._at + 1
        while at < len(self._text) and self._text[at] != '"':
            character = self._text[at]
            if character in "$`":
                raise NotUnderstoodError(f"it has an expansion ({character})")
            following = self._text[at + 1 : at + 2]
            if character == "\\" and following in _KEPT_IN_DOUBLE_QUOTES:
                inner.append(following)
                at += 2
            else:
                inner.append(character)
                at += 1
        if at >= len(self._text):
            raise NotUnderstoodError("a quote is not closed")
        self._quote("".join(inner), at + 1)

    def _quote(self, inner: str, end: int) -> None:
        if "\n" in inner:
            raise NotUnderstoodError("it has more than one line")
        self._quoted = True
        self._add(inner, end - self._at)

    def _escape(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following not in _ESCAPABLE or not following:
            raise NotUnderstoodError("it has a backslash in an unusual place")
        self._quoted = True
        self._add(following, 2)

    def _unquoted(self, character: str) -> None:
        if character in _GLOB:
            self._glob = True
        elif character == "~" and not (self._word and self._word[-1][-1:].isalnum()):
            raise NotUnderstoodError("it has a home directory (~)")
        elif character == "#" and not self._in_word:
            raise NotUnderstoodError("it has a comment")
        elif character == "!" and not self._arguments:
            raise NotUnderstoodError("it has an operator (!)")
        elif character not in _PLAIN and character not in "~#!" and character.isascii():
            what = {"\n": "more than one line", "$": "an expansion ($)", "`": "an expansion (`)"}
            raise NotUnderstoodError(f"it has {what.get(character, f'an operator ({character})')}")
        self._add(character, 1)
