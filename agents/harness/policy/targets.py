"""Which files a command changes: by its redirections and by its arguments."""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile

from agents.harness.policy import files
from agents.harness.policy.commands import Command, Word
from agents.harness.policy.context import Context

_WRITING = frozenset({">", ">>", ">|", "&>", "&>>", "<>"})
_ALL_ARGUMENTS = frozenset(
    [
        "tee",
        "touch",
        "truncate",
        "mkdir",
        "mkfifo",
        "mknod",
        "rm",
        "rmdir",
        "unlink",
        "shred",
        "chattr",
        "setfacl",
        "patch",
        "gzip",
        "gunzip",
        "bzip2",
        "xz",
    ]
)
_LAST_ARGUMENT = frozenset({"cp", "mv", "install", "ln", "rsync", "scp"})
_SOURCE_LOST = frozenset({"mv"})
_AFTER_FIRST = frozenset({"chmod", "chown", "chgrp"})
_OUTPUT_OPTIONS: dict[str, tuple[str, ...]] = {
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document", "-P", "--directory-prefix"),
    "sort": ("-o", "--output"),
    "tar": ("-C", "--directory"),
    "unzip": ("-d",),
    "git": (),
}
_TARGET_OPTIONS = ("-t", "--target-directory")


def written(context: Context, command: Command) -> Iterator[str]:
    """The real paths of what the command creates, changes, moves or removes, where known."""
    for word in written_words(command):
        if word.text and word.known:
            yield files.real(context, word.text, cwd=command.cwd)


def written_words(command: Command) -> Iterator[Word]:
    """The words that name such files."""
    for redirection in command.redirections:
        is_descriptor = re.fullmatch(r"\d+-?|-", redirection.target.text) is not None
        if redirection.operator in _WRITING or (redirection.operator == ">&" and not is_descriptor):
            yield redirection.target
    name = command.name
    plain = [word for word in command.words[1:] if not word.text.startswith("-")]
    if name in _ALL_ARGUMENTS or name in _SOURCE_LOST:
        yield from plain
    elif name in _LAST_ARGUMENT:
        yield from plain[-1:]
    elif name in _AFTER_FIRST:
        yield from plain[1:] if plain else []
    elif name in _SPECIAL:
        yield from _SPECIAL[name](command, plain)
    yield from _option_values(command, _OUTPUT_OPTIONS.get(name, ()))
    if name in _LAST_ARGUMENT:
        yield from _option_values(command, _TARGET_OPTIONS)


def _option_values(command: Command, options: tuple[str, ...]) -> Iterator[Word]:
    words = command.words
    for at, word in enumerate(words):
        if word.text in options and at + 1 < len(words):
            yield words[at + 1]
        for option in options:
            glue = f"{option}=" if option.startswith("--") else option
            if word.text.startswith(glue) and word.text != option:
                yield Word(word.text[len(glue) :], word.known, word.quoted, word.names)


def _dd(command: Command, _plain: list[Word]) -> Iterator[Word]:
    for word in command.words[1:]:
        if word.text.startswith("of="):
            yield Word(word.text[3:], word.known, word.quoted, word.names)


def _sed(command: Command, plain: list[Word]) -> Iterator[Word]:
    if any(re.match(r"-[nErsz]*i|--in-place", word.text) for word in command.words[1:]):
        yield from plain[1:] or plain


def _perl(command: Command, plain: list[Word]) -> Iterator[Word]:
    if any(re.match(r"-\w*i", word.text) for word in command.words[1:]):
        yield from plain


def _find(command: Command, _plain: list[Word]) -> Iterator[Word]:
    """`find FOLDER -delete`."""
    if "-delete" in command.arguments:
        yield from takewhile(lambda word: not word.text.startswith("-"), command.words[1:])


def _git(command: Command, plain: list[Word]) -> Iterator[Word]:
    if plain and plain[0].text in ("checkout", "restore", "rm", "mv"):
        yield from plain[1:]


_SPECIAL: dict[str, Callable[[Command, list[Word]], Iterator[Word]]] = {
    "dd": _dd,
    "sed": _sed,
    "find": _find,
    "perl": _perl,
    "ruby": _perl,
    "git": _git,
}
