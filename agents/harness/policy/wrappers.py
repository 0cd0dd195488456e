"""Looks through programs that start other programs: sudo, env, timeout, xargs, sh -c, find -exec.

Each command that is found stands beside its wrapper, with the names of its wrappers.
"""

from collections.abc import Iterator
from dataclasses import replace

from agents.harness.policy.commands import Command, Word
from agents.harness.policy.context import Context
from agents.harness.policy.embedded import shell_texts
from agents.harness.policy.printing import given
from agents.harness.policy.shell import MOST_DEPTH, read

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash"})

# Wrappers whose command is the rest of the line: their options that take a value, and how many
# plain words stand before the command.
_REST: dict[str, tuple[str, int]] = {
    "sudo": ("ugpCDhrtTU", 0),
    "doas": ("uC", 0),
    "env": ("uCS", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("a", 0),
    "nice": ("n", 0),
    "ionice": ("cnpP", 0),
    "stdbuf": ("ioe", 0),
    "time": ("fo", 0),
    "timeout": ("ks", 1),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "chroot": ("", 1),
    "flock": ("wE", 1),
    "watch": ("n", 0),
    "strace": ("eoOpPsSuEI", 0),
    "ltrace": ("eopsuF", 0),
    "busybox": ("", 0),
    "toybox": ("", 0),
    "unshare": ("", 0),
    "setpriv": ("", 0),
    "prlimit": ("", 0),
    "taskset": ("", 1),
    "chrt": ("", 1),
    "caffeinate": ("tw", 0),
    "unbuffer": ("", 0),
    "chronic": ("", 0),
    "noglob": ("", 0),
    "xargs": ("adEeIiLlnPs", 0),
    "parallel": ("jIaS", 0),
    "uvx": ("", 0),
    "npx": ("p", 0),
    "systemd-run": ("pu", 0),
    "bwrap": ("", 0),
    "fakeroot": ("", 0),
    "script": ("", 0),
    "ssh": ("bcDEeFIiJLlmOopQRSWw", 1),
    "coproc": ("", 0),
}
# Two-word wrappers: the rest is the command.
_PAIRS = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"),
     ("npm", "exec"), ("pnpm", "exec"), ("yarn", "exec"), ("bundle", "exec")}
)  # fmt: skip
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_FIND_STARTS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_TAKES_TEXT = {"su": "-c", "script": "-c", "flock": "-c", "env": "-S", "mapfile": "-C"}
_ONLY_TEXT = frozenset({"eval", "trap", *_TAKES_TEXT})


def unwrapped(context: Context, commands: list[Command], *, depth: int = 0) -> Iterator[Command]:
    """Each command, followed by those that it starts."""
    for command in commands:
        yield command
        if depth < MOST_DEPTH:
            yield from unwrapped(context, list(_inner(context, command, depth)), depth=depth + 1)


def _inner(context: Context, command: Command, depth: int) -> Iterator[Command]:
    texts = [*shell_texts(command), *_text_argument(command)]
    for text in texts:
        yield from _text(context, command, text, depth)
    if command.name not in _ONLY_TEXT or not texts:
        yield from _started(context, command, depth)


def _started(context: Context, command: Command, depth: int) -> Iterator[Command]:
    if command.name in SHELLS:
        yield from _shell(context, command, depth)
    elif command.name == "find":
        yield from _find(command)
    elif command.name == "git":
        yield from _git(context, command, depth)
    elif command.name in _CONTAINERS and command.arguments[:1] == ["exec"]:
        yield from _rest(command, command.words[2:], "uew", 1)
    elif (command.name, *command.arguments[:1]) in _PAIRS:
        yield from _rest(command, command.words[2:], "p", 0)
    elif command.name in _REST:
        yield from _wrapper(context, command, depth)


def _text_argument(command: Command) -> list[str]:
    """Shell text that a command is given as an argument (shells themselves are read elsewhere)."""
    name, arguments = command.name, command.arguments
    if name == "eval":
        return [" ".join(arguments)]
    if name == "trap" and arguments:
        return arguments[:1]
    option = _TAKES_TEXT.get(name)
    if option is not None and option in arguments[:-1]:
        return [arguments[arguments.index(option) + 1]]
    return []


def _wrapper(context: Context, command: Command, depth: int) -> Iterator[Command]:
    name = command.name
    letters, before = _REST[name]
    for inner in _rest(command, command.words[1:], letters, before):
        if name == "xargs":
            yield _with_input(context, command, inner)
        elif name in ("ssh", "watch"):
            yield from _text(context, command, " ".join(inner.argv), depth)
        else:
            yield inner


def _rest(command: Command, words: list[Word], letters: str, before: int) -> Iterator[Command]:
    """The command that follows the options and `before` plain words."""
    rest = list(words)
    assignments: list[tuple[str, Word]] = []
    while rest:
        text = rest[0].text
        if text == "--":
            rest.pop(0)
        elif text.startswith("-") and len(text) > 1:
            rest.pop(0)
            takes_value = len(text) == 2 and text[1] in letters  # noqa: PLR2004
            if takes_value and rest:
                rest.pop(0)
        elif "=" in text and text.partition("=")[0].isidentifier():
            name, _, value = text.partition("=")
            assignments.append((name, replace(rest.pop(0), text=value)))
        elif before:
            before -= 1
            rest.pop(0)
        else:
            break
    if rest or assignments:
        yield replace(
            command,
            words=rest,
            assignments=assignments,
            through=(*command.through, command.name),
            secret=None,
        )


def _with_input(context: Context, command: Command, inner: Command) -> Command:
    """xargs puts what is piped into it behind the words of its command."""
    text = given(context, command)
    if text is None:
        return replace(inner, words=[*inner.words, Word("", known=False)], secret=None)
    words = [*inner.words, *(Word(part) for part in text.split())]
    return replace(inner, words=words, secret=None)


def _find(command: Command) -> Iterator[Command]:
    words = command.words
    for at, word in enumerate(words):
        if word.text in _FIND_STARTS:
            rest: list[Word] = []
            for following in words[at + 1 :]:
                if following.text in (";", "+"):
                    break
                # The names that it finds lie below where it starts, so they are not known.
                is_name = following.text == "{}"
                rest.append(Word("", known=False) if is_name else following)
            yield replace(command, words=rest, through=(*command.through, "find"), secret=None)


def _git(context: Context, command: Command, depth: int) -> Iterator[Command]:
    arguments = command.arguments
    if "foreach" in arguments and "submodule" in arguments:
        rest = arguments[arguments.index("foreach") + 1 :]
        yield from _text(context, command, " ".join(rest), depth)
    elif arguments[:2] == ["bisect", "run"]:
        through = (*command.through, "git")
        yield replace(command, words=command.words[3:], through=through, secret=None)
    elif arguments[:1] in (["rebase"], ["filter-branch"]):
        for at, argument in enumerate(arguments[:-1]):
            if argument in ("--exec", "-x") or argument.endswith("-filter"):
                yield from _text(context, command, arguments[at + 1], depth)


def _shell(context: Context, command: Command, depth: int) -> Iterator[Command]:
    """What a shell is given to run: -c TEXT, a script, or its standard input."""
    rest = list(command.words[1:])
    while rest and rest[0].text.startswith(("-", "+")) and len(rest[0].text) > 1:
        option = rest.pop(0).text
        if not option.startswith("--") and "c" in option and rest:
            yield from _text(context, command, rest[0].text, depth)
            return
        if option in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file") and rest:
            rest.pop(0)
    text = given(context, command) if not rest else None
    if text is not None:
        yield from _text(context, command, text, depth)


def _text(context: Context, command: Command, text: str, depth: int) -> Iterator[Command]:
    for inner in read(context, text, cwd=command.cwd, depth=depth + 1).commands:
        through = (*command.through, command.name, *inner.through)
        # The first command of the text has what is piped into the shell.
        upstream = inner.upstream or command.upstream
        yield replace(inner, through=through, upstream=upstream)
