"""Expands words as the shell does, as far as the values of the variables in them are known."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.harness.policy.commands import Word as LooseWord
from agents.harness.policy.nesting import alternatives
from agents.harness.policy.pieces import piece
from agents.harness.policy.simple import NotUnderstoodError
from agents.harness.policy.syntax import (
    Items,
    Literal,
    Number,
    Parameter,
    Script,
    Substitution,
    Word,
)
from agents.harness.policy.values import NUMBER, UNKNOWN, Field, Kind, State, Value

_NUMBERS = frozenset("#?$!")
_BRACE = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_RANGE = re.compile(r"([\w./-]*)\{(0|[1-9]\d{0,3})\.\.(0|[1-9]\d{0,3})\}([\w./-]*)")
_LONGEST = 20_000


@dataclass
class _Growing:
    text: str = ""
    kind: Kind = Kind.KNOWN
    glob: bool = False
    quoted: bool = False
    is_cut: bool = False  # the shell will cut it, or drop it
    exists: bool = False
    parts: int = 0

    def add(self, text: str, kind: Kind, *, quoted: bool) -> None:
        self.text += text
        self.parts += 1
        self.exists = True
        self.kind = max(self.kind, kind)
        self.quoted = self.quoted or quoted
        self.is_cut = self.is_cut or (not quoted and kind is not Kind.KNOWN)
        is_pattern = not quoted and kind is Kind.KNOWN and bool(set(text) & set("*?["))
        self.glob = self.glob or is_pattern

    def done(self) -> Field:
        # A listed path with something before or behind it is another path.
        is_path = self.kind in (Kind.LISTED, Kind.FOUND)
        kind = Kind.TEXT if is_path and self.parts > 1 else self.kind
        # A number with something before or behind it may be the name of a variable.
        kind = Kind.NAMED if kind is Kind.NUMBER and not self.text.isdigit() else kind
        return Field(self.text, kind, self.glob, self.quoted and not self.is_cut)


def changed(text: str, part: Parameter) -> Value:
    """A known value, as `${name...}` changes it."""
    if part.change == "-":
        return Value(text or part.default, Kind.KNOWN)
    found = piece(text, part.default)
    return UNKNOWN if found is None else Value(found, Kind.KNOWN)


def _cut(text: str, growing: _Growing, done: list[Field]) -> _Growing:
    """Add a known value that is not quoted: blanks in it end a word."""
    for character in text:
        if character not in " \t\n":
            growing.add(character, Kind.KNOWN, quoted=False)
        elif growing.exists:
            done.append(growing.done())
            growing = _Growing()
    return growing


class Expander:
    """Expands words in a state; `substitute` judges the script of a substitution.

    `places` are the home and the scratch folder.
    """

    def __init__(
        self,
        state: State,
        places: tuple[str, str],
        substitute: Callable[[Script], Value],
    ) -> None:
        self._state = state
        self._home, self._scratch = places
        self._substitute = substitute

    def fields(self, words: Sequence[Word]) -> list[Field]:
        """The words as a program gets them."""
        return [found for word in words for found in self._fields(word)]

    def value(self, word: Word) -> Value:
        """A word that is not split, as in an assignment."""
        if len(word) == 1 and isinstance(word[0], Items):
            return Value(items=tuple(self.fields(word[0].words)))
        growing = _Growing()
        for part in self._with_home(word):
            if isinstance(part, Literal):
                if not part.quoted and ":~" in part.text:
                    raise NotUnderstoodError("it has a home directory (~) in an unusual place")
                if part.text or not growing.parts:
                    growing.add(part.text, Kind.KNOWN, quoted=True)
                    growing.parts -= not part.text
            else:
                value = self._value(part)
                growing.add(value.text, value.kind, quoted=True)
        done = growing.done()
        if len(done.text) > _LONGEST:
            return UNKNOWN
        return Value(done.text, done.kind)

    def _fields(self, word: Word) -> list[Field]:
        parts = [part for part in word if not (isinstance(part, Literal) and not part.text)]
        if len(parts) == 1:
            (part,) = parts
            if isinstance(part, Parameter) and part.name == "@" and part.quoted and not part.change:
                if self._state.arguments is not None:
                    return list(self._state.arguments)
                return [Field("", Kind.TEXT)]
            if isinstance(part, Parameter) and part.change == "[" and part.default == "@":
                return self._all_items(part)
            if isinstance(part, Literal) and not part.quoted and _BRACE.search(part.text):
                return self._braces(part.text)
        if any(isinstance(p, Literal) and not p.quoted and "{" in p.text for p in word):
            whole = "".join(part.text if isinstance(part, Literal) else "" for part in word)
            if len(word) > 1 and ("," in whole or ".." in whole) and "}" in whole:
                raise NotUnderstoodError("it has braces that are not plain")
        return self._split(word)

    def _all_items(self, part: Parameter) -> list[Field]:
        """`"${name[@]}"`; without quotes the items would be cut at blanks and matched again."""
        items = self._state.variables.get(part.name, UNKNOWN).items
        if items is None:
            return [Field("", Kind.TEXT)]
        if not part.quoted and any(
            one.kind is Kind.KNOWN
            and (one.quoted or not one.text or set(" \t\n*?[") & set(one.text))
            for one in items
        ):
            raise NotUnderstoodError("it has a list without quotes")
        return list(items)

    def _item(self, part: Parameter) -> Value:
        items = self._state.variables.get(part.name, UNKNOWN).items
        if part.default.startswith("#"):
            return NUMBER
        if items is None or not part.default.isdigit():
            return UNKNOWN
        if not all(one.is_constant for one in items) or int(part.default) >= len(items):
            return UNKNOWN
        return Value(items[int(part.default)].text, Kind.KNOWN)

    def _braces(self, text: str) -> list[Field]:
        most = 30
        counted = _RANGE.fullmatch(text)
        if counted is not None and abs(int(counted[3]) - int(counted[2])) < most:
            first, last = int(counted[2]), int(counted[3])
            step = 1 if last >= first else -1
            numbers = range(first, last + step, step)
            return [Field(f"{counted[1]}{number}{counted[4]}") for number in numbers]
        if ".." in text:
            raise NotUnderstoodError("it has braces that are not plain")
        found = [one.text for one in alternatives(LooseWord(text))]
        if len(found) > most or any(
            "{" in one or "}" in one or one.startswith("~") for one in found
        ):
            raise NotUnderstoodError("it has braces that are not plain")
        return [Field(one, glob=bool(set(one) & set("*?["))) for one in found]

    def _with_home(self, word: Word) -> Word:
        first = word[0] if word else None
        if not isinstance(first, Literal) or first.quoted or not first.text.startswith("~"):
            return word
        if first.text[1:2] not in ("", "/") or (len(word) > 1 and first.text == "~"):
            raise NotUnderstoodError("it has a home directory (~) in an unusual place")
        return (Literal(self._home, quoted=True), Literal(first.text[1:]), *word[1:])

    def _split(self, word: Word) -> list[Field]:
        done: list[Field] = []
        growing = _Growing()
        for part in self._with_home(word):
            if isinstance(part, Literal):
                if not part.quoted and ("=~" in part.text or ":~" in part.text):
                    raise NotUnderstoodError("it has a home directory (~) in an unusual place")
                if part.quoted or part.text:
                    growing.add(part.text, Kind.KNOWN, quoted=part.quoted)
                    growing.parts -= not part.text
                continue
            value = self._value(part)
            quoted = not isinstance(part, Number | Items) and part.quoted
            if quoted or value.kind is not Kind.KNOWN:
                growing.add(value.text, value.kind, quoted=quoted)
            else:
                growing = _cut(value.text, growing, done)
        if growing.exists:
            done.append(growing.done())
        if any(len(one.text) > _LONGEST for one in done):
            raise NotUnderstoodError("a word is too long")
        return done

    def _value(self, part: Parameter | Substitution | Number | Items) -> Value:
        if isinstance(part, Substitution):
            value = self._substitute(part.script)
            return Value("/dev/fd/63", Kind.KNOWN) if part.is_file else value
        if isinstance(part, Number):
            return self._number(part)
        if isinstance(part, Items):
            raise NotUnderstoodError("it has a list in an unusual place")
        return self._item(part) if part.change == "[" else self._parameter(part)

    def _parameter(self, part: Parameter) -> Value:
        if part.change == "#" or part.name in _NUMBERS:
            return NUMBER
        value = self._variable(part.name)
        if not part.change:
            return value
        if value.kind is Kind.KNOWN:
            return changed(value.text, part)
        return value if part.change == "-" and value.kind < Kind.TEXT else UNKNOWN

    def _variable(self, name: str) -> Value:
        if name in self._state.variables:
            return self._state.variables[name]
        if name.isdigit() and name != "0":
            return self._argument(int(name))
        if name == "HOME":
            return Value(self._home, Kind.KNOWN)
        if name == "TMPDIR":
            return Value(self._scratch, Kind.KNOWN)
        if name == "PWD" and len(self._state.folders) == 1:
            return Value(next(iter(self._state.folders)), Kind.KNOWN)
        return UNKNOWN

    def _argument(self, number: int) -> Value:
        """`$1` and so on. One that is not known may stand for several, and move the others."""
        arguments = self._state.arguments
        if arguments is None:
            return UNKNOWN
        if not all(one.is_constant or one.kind is Kind.NUMBER for one in arguments):
            only = arguments[0] if number == 1 and len(arguments) == 1 else None
            if only is None or only.glob:
                return UNKNOWN
            return Value(only.text, only.kind)
        if number > len(arguments):
            return Value("", Kind.KNOWN)
        return Value(arguments[number - 1].text, arguments[number - 1].kind)

    def _number(self, part: Number) -> Value:
        """The shell works out the value of a name again, so it has to be a number itself."""
        for name in part.names:
            value = self._state.variables.get(name, UNKNOWN)
            is_number = value.kind is Kind.KNOWN and re.fullmatch(r"-?\d+", value.text) is not None
            if value.kind is not Kind.NUMBER and not is_number:
                raise NotUnderstoodError("it calculates with a value that is not known")
        for script in part.scripts:
            if self._substitute(script).kind is not Kind.NUMBER:
                raise NotUnderstoodError("it calculates with a value that is not known")
        return NUMBER
