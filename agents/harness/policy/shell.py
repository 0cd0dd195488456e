"""Finds the simple commands in a shell text, also nested and behind wrappers.

The loose reading: it finds what is recognisable, to deny what must never run. What may run
without a question is read by `simple.py` alone.
"""

import re
from dataclasses import dataclass, field

from agents.harness.policy import files
from agents.harness.policy.commands import Command, Redirection, Word
from agents.harness.policy.context import Context
from agents.harness.policy.lexer import Lexer, Token
from agents.harness.policy.nesting import alternatives
from agents.harness.policy.printing import printed

MOST_COMMANDS = 2000
MOST_DEPTH = 12

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^]]*\])?\+?=(.*)", re.DOTALL)
_KEYWORDS = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "while",
        "until",
        "do",
        "done",
        "time",
        "coproc",
        "{",
        "}",
        "!",
        "[[",
        "esac",
    ]
)
_DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
_PIPES = ("|", "|&")


@dataclass
class Reading:
    """The commands of a text, and of the substitutions in it, in order."""

    commands: list[Command] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)


def read(context: Context, text: str, *, cwd: str | None = None, depth: int = 0) -> Reading:
    """All commands that can be recognised in `text`."""
    variables = {name: Word(value) for name, value in context.variables.items()}
    variables["HOME"] = Word(str(context.home))
    reading = Reading()
    reader = _Reader(context, reading, variables, cwd or str(context.workspace), depth)
    reader.read(text)
    return reading


class _Reader:
    def __init__(
        self,
        context: Context,
        reading: Reading,
        variables: dict[str, Word],
        cwd: str | None,
        depth: int,
    ) -> None:
        self._context = context
        self._reading = reading
        self._variables = variables
        self._cwd = cwd
        self._depth = depth
        self._words: list[Word] = []
        self._redirections: list[Redirection] = []
        self._assignments: list[tuple[str, Word]] = []
        self._upstream: Command | None = None
        self._stack: list[tuple[str | None, dict[str, Word]]] = []
        self.last: Command | None = None

    def read(self, text: str) -> None:
        if self._cwd is not None:
            self._variables["PWD"] = Word(self._cwd)
        lexer = Lexer(text, variables=self._variables, substitute=self._substitute)
        while (token := lexer.next()) is not None:
            if len(self._reading.commands) > MOST_COMMANDS:
                return
            self._take(token)
        self._end_command("\n")

    def _take(self, token: Token) -> None:
        if token.redirection is not None:
            self._redirections.append(token.redirection)
        elif token.word is not None:
            self._take_word(token.word)
        elif token.operator == "(" and len(self._words) == 1 and not self._words[0].quoted:
            self._reading.functions.add(self._words[0].text)  # name() { ... }
            self._words = []
        else:
            self._end_command(token.operator)
            if token.operator == "(":
                self._stack.append((self._cwd, dict(self._variables)))
            elif token.operator == ")" and self._stack:
                self._cwd, variables = self._stack.pop()
                self._variables.clear()
                self._variables.update(variables)

    def _take_word(self, word: Word) -> None:
        if len(self._words) == 1 and self._words[0].text == "function":
            self._reading.functions.add(word.text)
            self._words = []
            return
        if not self._words:
            if not word.quoted and word.text in _KEYWORDS:
                return
            match = _ASSIGNMENT.match(word.text)
            if match is not None:
                value = Word(match[2], word.known, word.quoted, word.names, word.tainted)
                self._assignments.append((match[1], value))
                return
            if not word.text and word.known:
                return  # `$empty rm` runs rm
        self._words += alternatives(word)

    def _end_command(self, operator: str) -> None:
        words, self._words = self._words, []
        redirections, self._redirections = self._redirections, []
        assignments, self._assignments = self._assignments, []
        if words or redirections or assignments:
            command = Command(
                words, assignments, redirections, self._upstream, self._cwd, operator == "&"
            )
            command.multiplies = self._multiplies(command)
            self._reading.commands.append(command)
            self.last = command
            self._remember(command, piped=operator in _PIPES)
            self._upstream = command if operator in _PIPES else None
        elif operator not in _PIPES:
            self._upstream = None if operator != "\n" else self._upstream

    def _multiplies(self, command: Command) -> bool:
        """`f() { f | f & }`, the fork bomb."""
        name, functions = command.name, self._reading.functions
        if command.upstream is not None and name in functions:
            return command.upstream.name == name
        before = self._reading.commands[-1:]
        return name in functions and any(
            one.name == name and (one.background or command.background) for one in before
        )

    def _remember(self, command: Command, *, piped: bool) -> None:
        """What a command changes for those after it: variables and the folder."""
        if not command.words:
            self._variables.update(command.assignments)
        elif command.name in _DECLARING:
            for word in command.words[1:]:
                match = _ASSIGNMENT.match(word.text)
                if match is not None:
                    value = Word(match[2], word.known, names=word.names, tainted=word.tainted)
                    command.assignments.append((match[1], value))
                    self._variables[match[1]] = value
        elif command.name == "for" and len(command.words) > 1:
            self._remember_loop(command)
        elif command.name in ("cd", "pushd") and not piped and command.upstream is None:
            self._change_folder(command)

    def _remember_loop(self, command: Command) -> None:
        """`for name in one`: with one value the variable is known."""
        three = 3
        values = command.words[three:]
        value = values[0] if len(values) == 1 else Word("", known=False)
        self._variables[command.words[1].text] = value

    def _change_folder(self, command: Command) -> None:
        targets = [word for word in command.words[1:] if not word.text.startswith("-")]
        if not targets:
            self._cwd = str(self._context.home)
        elif targets[0].known and self._cwd is not None:
            self._cwd = files.real(self._context, targets[0].text, cwd=self._cwd)
        else:
            self._cwd = None
        self._variables["PWD"] = Word(self._cwd or "", known=self._cwd is not None)

    def _substitute(self, text: str) -> Word:
        """Read the commands of a substitution, and say what is known of its output."""
        if self._depth >= MOST_DEPTH:
            return Word("", known=False)
        inner = _Reader(
            self._context, self._reading, dict(self._variables), self._cwd, self._depth + 1
        )
        before = len(self._reading.commands)
        inner.read(text)
        commands = self._reading.commands[before:]
        tainted = any(reads_secret(self._context, command) for command in commands)
        names = frozenset(name for one in commands for word in one.words for name in word.names)
        last = commands[-1] if commands else None
        is_one = last is not None and len(commands) == _pipe_length(last)
        output = printed(self._context, last) if is_one and last is not None else None
        if output is None:
            return Word("", known=False, names=names, tainted=tainted)
        return Word(output.rstrip("\n"), names=names, tainted=tainted)


def _pipe_length(command: Command) -> int:
    """How many commands pipe into each other up to this one."""
    length = 1
    while command.upstream is not None:
        command = command.upstream
        length += 1
    return length


def reads_secret(context: Context, command: Command) -> bool:
    """Whether a command reads a file that holds secrets (rule A12 or D5), or uses one it has read."""
    if command.secret is None:
        command.secret = _reads_secret(context, command)
    return command.secret


def _reads_secret(context: Context, command: Command) -> bool:
    if command.name in ("ls", "stat", "test", "[", "echo", "printf", "git"):
        return any(word.tainted for word in command.words)
    words = [*command.words[1:], *(one.target for one in command.redirections
                                   if one.operator in ("<", "<>"))]  # fmt: skip
    texts = {word.text for word in words}
    return any(word.tainted for word in words) or any(
        names_secret(context, text, command.cwd) for text in texts
    )


def names_secret(context: Context, text: str, cwd: str | None) -> bool:
    """Whether a word names a secret file: as a path, behind `=` or `@`, or before a colon."""
    for part in {
        text,
        text.partition("=")[2],
        text.rpartition("@")[2].partition(";")[0],
        text.partition(":")[0],
    }:
        if not part or part.startswith("-") or "\n" in part:
            continue
        path = files.real(context, part, cwd=cwd)
        if files.is_secret(path) or files.is_product_data(context, path):
            return True
        if files.is_environment(path):
            return True
    return False
