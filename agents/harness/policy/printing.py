"""What a command prints, as far as the loose reading can say it: constant words, files, decoding.

What it finds may only be denied. Text that comes from a file or a decoder is never allowed by it.
"""

import base64
import binascii
import re

from agents.harness.policy import files
from agents.harness.policy.commands import Command, Word
from agents.harness.policy.context import Context
from agents.harness.policy.filters import FILTERS

_PRINTERS = ("echo", "printf")
_MOST_CHARACTERS = 20_000
_MOST_PIPED = 6
_DECODES = re.compile(r"-\w*[dD]|--decode")


def printed(context: Context, command: Command, *, depth: int = 0) -> str | None:
    """What a command prints, if that is known."""
    if depth > _MOST_PIPED or any(
        one.operator not in ("<", "<<<", "<<", "<<-") and one.number != "2"
        for one in command.redirections
    ):
        return None
    if command.name in _PRINTERS:
        return _echoed(command) if all(word.known for word in command.words) else None
    if command.name in ("cat", "tee"):
        return _input(context, command, _plain(command), depth)
    decodes = any(_DECODES.fullmatch(word) for word in command.arguments)
    if command.name in ("base64", "base32") and decodes:
        return _decoded(command.name, _input(context, command, _plain(command), depth))
    if command.name in FILTERS:
        words = _plain(command)
        first = len(words) if command.name == "tr" else 0
        text = _input(context, command, words[first:] if first else _files_of(command), depth)
        return None if text is None else FILTERS[command.name](text, command.arguments)
    return None


def _files_of(command: Command) -> list[Word]:
    """The words that are files, without the values of options."""
    words, rest = [], list(command.words[1:])
    while rest:
        word = rest.pop(0)
        if word.text in ("-n", "-c") and rest and command.name in ("head", "tail"):
            rest.pop(0)
        elif not word.text.startswith("-"):
            words.append(word)
    return words


def given(context: Context, command: Command, *, depth: int = 0) -> str | None:
    """What a command finds on its standard input, if that is known."""
    for one in command.redirections:
        if one.body is not None:
            return one.body
        if one.operator == "<" and one.number in ("", "0"):
            return _content(context, one.target, command.cwd)
    upstream = command.upstream
    return printed(context, upstream, depth=depth + 1) if upstream is not None else None


def _input(context: Context, command: Command, words: list[Word], depth: int) -> str | None:
    if not words:
        return given(context, command, depth=depth)
    texts = [_content(context, word, command.cwd) for word in words]
    return None if any(text is None for text in texts) else "".join(map(str, texts))


def _plain(command: Command) -> list[Word]:
    return [word for word in command.words[1:] if not word.text.startswith("-")]


def _content(context: Context, word: Word, cwd: str | None) -> str | None:
    if word.output is not None:
        return word.output
    if not word.known or not word.text or "\0" in word.text:
        return None
    content = context.files.read(files.real(context, word.text, cwd=cwd))
    if content is None or b"\0" in content or len(content) > _MOST_CHARACTERS:
        return None
    return content.decode("utf-8", "replace")


def _decoded(name: str, text: str | None) -> str | None:
    decode = base64.b64decode if name == "base64" else base64.b32decode
    try:
        return None if text is None else decode(text).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def _echoed(command: Command) -> str:
    arguments = command.arguments
    if command.name == "echo":
        while arguments and re.fullmatch(r"-[neE]+", arguments[0]):
            arguments = arguments[1:]
        return " ".join(arguments) + "\n"
    if arguments[:1] == ["--"]:
        arguments = arguments[1:]
    if not arguments:
        return ""
    template = arguments[0].replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0")
    for value in arguments[1:]:
        template = re.sub(r"%[sbq]", lambda _match, value=value: value, template, count=1)  # type: ignore[misc]
    return template.replace("%%", "%")
