"""Reads one simple command strictly: its assignments, words, redirections and here-documents."""

import re

from agents.harness.policy.parse_words import ReadScript, WordReader, joined, plain
from agents.harness.policy.simple import NotUnderstoodError
from agents.harness.policy.syntax import Items, Literal, Part, Redirect, Simple, Word

_REDIRECTION = re.compile(r"(\d*)(<<<|<<-|<<|<>|>>|>\||>&|&>>|&>|<&|<(?!\()|>(?!\())")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:=|\+=(?=\())")
_OPERATORS = ("&&", "||", ";;", "|&", ";", "&", "|", "\n", ")", "(")
_AFTER_RESERVED = ("", " ", "\t", "\n", ";", "&", "|", ")", "(", "<", ">")
_RESERVED = re.compile(r"[a-z]+|[{}!]|\[\[|\]\]|\(\(")


class SimpleReader(WordReader):
    """Reads what lies between two operators."""

    def __init__(self, text: str, script: ReadScript, *, depth: int = 0) -> None:
        super().__init__(text, script, depth=depth)
        self._waiting: list[tuple[str, bool, bool, Redirect]] = []

    def _operator(self) -> str:
        self._blanks()
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.at):
                return operator
        return ""

    def _blanks(self, *, lines: bool = False) -> None:
        text = self.text
        while self.at < len(text):
            character = text[self.at]
            if character in " \t":
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif character == "\n" and lines:
                self.at += 1
                self._here_documents()
            elif character == "#" and (self.at == 0 or text[self.at - 1] in " \t\n;&|()"):
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            else:
                return

    def _reserved(self) -> str:
        """The word at the present place if it is of bare characters, for a look at it."""
        match = _RESERVED.match(self.text, self.at)
        if match is None:
            return ""
        following = self.text[match.end() : match.end() + 1]
        return match[0] if match[0] == "((" or following in _AFTER_RESERVED else ""

    def _take(self, word: str) -> None:
        self._blanks(lines=True)
        if self._reserved() != word:
            raise NotUnderstoodError(f"it does not parse ({word} is missing)")
        self.at += len(word)
        self._blanks()

    def _bare_name(self) -> str:
        name = plain(self._argument())
        if name is None or not re.fullmatch(r"[A-Za-z_][\w-]*", name):
            raise NotUnderstoodError("it has a name that is not plain")
        return name

    def _argument(self) -> Word:
        """One word that has to be there."""
        self._blanks()
        start = self.at
        word = self.word()
        if self.at == start:
            raise NotUnderstoodError("a word is missing")
        return word

    def simple(self) -> Simple:
        """The command at the present place; it may be empty."""
        command = Simple()
        while self._has_more():
            if self._is_redirection():
                command.redirects += self._redirects()
                continue
            assignment = None if command.words else _ASSIGNMENT.match(self.text, self.at)
            start = self.at
            if assignment is not None:
                self.at = assignment.end()
                command.assignments.append((assignment[1], self._value()))
                continue
            if not command.words:
                command.at = start
            command.words.append(self._argument())
        return command

    def _has_more(self) -> bool:
        return (self._operator() == "" and self.at < len(self.text)) or self._is_redirection()

    def _value(self) -> Word:
        """What is assigned; it may be empty, but no list."""
        if self.text.startswith("(", self.at):
            return (self._items(adds=self.text[self.at - 2] == "+"),)
        return self.word() or (Literal("", quoted=True),)

    def _items(self, *, adds: bool) -> Items:
        """The words of a list in parentheses."""
        self.at += 1
        words: list[Word] = []
        self._blanks(lines=True)
        while not self.text.startswith(")", self.at):
            if self.text.startswith("[", self.at) or self._operator():
                raise NotUnderstoodError("it has a list that is not plain")
            words.append(self._argument())
            self._blanks(lines=True)
        self.at += 1
        if self.text[self.at : self.at + 1] not in ("", *_AFTER_RESERVED):
            raise NotUnderstoodError("it has a list that is not plain")
        return Items(tuple(words), adds)

    def _is_redirection(self) -> bool:
        return _REDIRECTION.match(self.text, self.at) is not None

    def _redirects(self) -> list[Redirect]:
        found: list[Redirect] = []
        while True:
            self._blanks()
            match = _REDIRECTION.match(self.text, self.at)
            if match is None:
                return found
            self.at = match.end()
            number, operator = match.groups()
            target = self._argument()
            if operator in ("<<", "<<-"):
                found.append(self._announced(number, operator, target))
            else:
                found.append(Redirect(number, operator, target))

    def _announced(self, number: str, operator: str, target: Word) -> Redirect:
        if not all(isinstance(part, Literal) for part in target):
            raise NotUnderstoodError("it has a here-document with an unusual end")
        quoted = any(isinstance(part, Literal) and part.quoted for part in target)
        end = "".join(part.text for part in target if isinstance(part, Literal))
        redirect = Redirect(number, "<<", target)
        self._waiting.append((end, quoted, operator == "<<-", redirect))
        return redirect

    def _here_documents(self) -> None:
        """Read the bodies of the here-documents that were announced on the line before."""
        waiting, self._waiting = self._waiting, []
        for end, quoted, strips_tabs, redirect in waiting:
            lines: list[str] = []
            start = self.at
            while True:
                if self.at >= len(self.text):
                    raise NotUnderstoodError("a here-document is not closed")
                stop = self.text.find("\n", self.at)
                line = self.text[self.at :] if stop < 0 else self.text[self.at : stop]
                self.at = len(self.text) if stop < 0 else stop + 1
                line = line.lstrip("\t") if strips_tabs else line
                if line == end:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            parts: list[Part] = [Literal(body, quoted=True)]
            if not quoted:
                parts = self.expanded(body, start)
            redirect.body = joined(parts)

    def expanded(self, body: str, start: int) -> list[Part]:
        """The parts of a here-document that begins at `start`."""
        raise NotImplementedError
