"""The rules that nothing softens (D1 to D7), applied to every command that can be recognised."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from agents.harness.policy import (
    denies_host,
    denies_product,
    denies_theft,
    denies_together,
    files,
    network,
    recipes,
)
from agents.harness.policy.code import INTERPRETERS, Signs, signs_in
from agents.harness.policy.commands import Command, Word
from agents.harness.policy.context import Context
from agents.harness.policy.embedded import awk_text
from agents.harness.policy.findings import Finding
from agents.harness.policy.printing import given
from agents.harness.policy.recipes import RECIPES
from agents.harness.policy.shell import MOST_COMMANDS, names_secret, read
from agents.harness.policy.wrappers import SHELLS, unwrapped

_MOST_WORDS = 20_000
_MOST_SECONDS = 1.0  # a text that takes longer is made to; it is never allowed, so it asks
_MOST_SCRIPTS = 3  # that run each other
_FORK_BOMB = Finding("D3", "Multiplies itself until the machine stands still")

_RULES: tuple[Callable[[Context, Command], Iterator[Finding]], ...] = (
    *denies_host.RULES,
    *denies_product.RULES,
    *denies_theft.RULES,
)


@dataclass(frozen=True)
class Judged:
    """What the loose reading found in a text: the commands, and what must be denied.

    `inside` are the commands of scripts that the text runs.
    """

    commands: tuple[Command, ...]
    findings: tuple[Finding, ...]
    inside: tuple[Command, ...] = ()


def judge(context: Context, text: str, *, cwd: str | None = None, scripts: int = 0) -> Judged:
    """All recognisable commands of `text`, and all D-rules that they break."""
    found = read(context, text, cwd=cwd).commands
    commands = tuple(islice(_within_budget(unwrapped(context, found)), MOST_COMMANDS))
    findings: list[Finding] = []
    inside: list[Command] = []
    deadline = time.monotonic() + _MOST_SECONDS
    for command in commands:
        if time.monotonic() > deadline:
            break
        if command.multiplies:
            findings.append(_FORK_BOMB)
        findings += broken_rules(context, command)
        findings += _inline_code(context, command)
        if scripts < _MOST_SCRIPTS:
            script = _script(context, command, scripts)
            findings += script.findings
            inside += [*script.commands, *script.inside]
    findings += denies_together.in_the_whole(context, commands)
    return Judged(commands, tuple(dict.fromkeys(findings)), tuple(inside[:MOST_COMMANDS]))


def broken_rules(context: Context, command: Command) -> Iterator[Finding]:
    """The D-rules that one command breaks by itself."""
    for rule in _RULES:
        yield from rule(context, command)


def _within_budget(commands: Iterator[Command]) -> Iterator[Command]:
    """Each wrapper repeats the words behind it; a thousand of them would repeat a million."""
    words = 0
    for command in commands:
        words += len(command.words)
        if words > _MOST_WORDS:
            return
        yield command


def _inline_code(context: Context, command: Command) -> Iterator[Finding]:
    """Program text in an argument, or on the standard input of an interpreter."""
    language = re.sub(r"[\d.]+$", "", command.name)
    awk = awk_text(command)
    if awk is not None:
        yield from judge_code(context, awk, python=False, cwd=command.cwd)
    if language not in INTERPRETERS:
        return
    texts = [
        command.arguments[at + 1]
        for at, argument in enumerate(command.arguments[:-1])
        if argument in INTERPRETERS[language]
    ]
    if not texts and (text := given(context, command)):
        texts = [text]
    for text in texts:
        yield from judge_code(context, text, python=language == "python", cwd=command.cwd)


def judge_code(
    context: Context, text: str, *, python: bool, cwd: str | None = None, inline: bool = True
) -> Iterator[Finding]:
    """D-rules that a program text breaks. `inline` text runs at once, a file maybe later."""
    signs = signs_in(text, python=python)
    if inline:
        yield from _at_once(context, text, signs, cwd)
    for shell_text in signs.shell_texts:
        yield from judge(context, shell_text, cwd=cwd, scripts=_MOST_SCRIPTS).findings
    for command in _as_commands(signs, cwd):
        for rule in _RULES:
            yield from rule(context, command)


def _at_once(context: Context, text: str, signs: Signs, cwd: str | None) -> Iterator[Finding]:
    """What counts only for text that runs now; in a file it may be a test or never run."""
    if signs.fork_bomb:
        yield _FORK_BOMB
    if signs.signals_all:
        yield Finding("D3", "Sends a signal to every process")
    if signs.reverse_shell:
        yield Finding("D7", "Gives another machine a shell here")
    yield from denies_product.in_code(context, text, signs.strings, cwd)
    addresses = [*network.addresses_in(text), *network.addresses_in_code(text)]
    if any(network.is_product(context, host, port) for host, port in addresses):
        yield Finding("D4", "Calls this product's own address")
    names = [string for string in signs.strings if " " not in string]
    if any(names_secret(context, name, cwd) for name in names) and not all(
        network.is_loopback(host) for host, _ in addresses
    ):
        yield Finding("D7", "Sends a secret to another machine")


def _as_commands(signs: Signs, cwd: str | None) -> Iterator[Command]:
    for words in signs.argument_lists:
        yield Command([Word(word) for word in words], cwd=cwd)
    for path in signs.removed:
        yield Command([Word(word) for word in ("rm", "-rf", path)], cwd=cwd)


def _script(context: Context, command: Command, scripts: int) -> Judged:
    """Rule C2: a script is judged by its content at this moment."""
    word = _script_word(command)
    if word is not None and word.output is not None:
        return judge(context, word.output, cwd=command.cwd, scripts=scripts + 1)
    if command.name in RECIPES:
        return Judged((), tuple(_recipe(context, command)))
    path = script_of(context, command)
    content = context.files.read(path) if path is not None else None
    if path is None or content is None or b"\0" in content:
        return Judged((), ())
    text = content.decode("utf-8", "replace")
    first = text.partition("\n")[0]
    if command.name in SHELLS or command.name in (".", "source") or _is_shell(first, path):
        return judge(context, text, cwd=command.cwd, scripts=scripts + 1)
    python = command.name.startswith("python") or "python" in first
    found = judge_code(context, text, python=python, cwd=command.cwd, inline=False)
    return Judged((), tuple(found))


def _recipe(context: Context, command: Command) -> Iterator[Finding]:
    """What the lines of a recipe or the scripts of a manifest would run that is denied."""
    named = _named_recipe(command)
    if named:
        content = context.files.read(files.real(context, named, cwd=command.cwd))
        for text in recipes.commands_in("Makefile", command.arguments, content or b""):
            yield from judge(context, text, cwd=command.cwd, scripts=_MOST_SCRIPTS).findings
    for name in RECIPES[command.name]:
        content = context.files.read(files.real(context, name, cwd=command.cwd))
        for text in recipes.commands_in(name, command.arguments, content or b""):
            yield from judge(context, text, cwd=command.cwd, scripts=_MOST_SCRIPTS).findings


def _named_recipe(command: Command) -> str:
    """The file behind `make -f`."""
    arguments = command.arguments if command.name in ("make", "gmake") else []
    for at, word in enumerate(arguments):
        match = re.fullmatch(r"(?:-f|--(?:make)?file(?:=|$))(.*)", word)
        if match is not None:
            return match[1] or "".join(arguments[at + 1 : at + 2])
    return ""


def _is_shell(first_line: str, path: str) -> bool:
    if first_line.startswith("#!"):
        return re.search(r"\b(?:ba|da|z|k|a)?sh\b", first_line) is not None
    return path.endswith((".sh", ".bash"))


def script_of(context: Context, command: Command) -> str | None:
    """The real path of the file whose text the command runs, if there is one."""
    word = _script_word(command)
    if word is None or not word.known or not word.text:
        return None
    return denies_host.place(context, word.text, command)


def _script_word(command: Command) -> Word | None:
    name = command.name
    if not command.words or not command.words[0].known:
        return None
    language = re.sub(r"[\d.]+$", "", name)
    if name in (".", "source") or name in SHELLS or language in INTERPRETERS:
        return _first_plain(command)
    return command.words[0] if "/" in command.words[0].text else None


def _first_plain(command: Command) -> Word | None:
    """The first argument that is no option; None if the program text is given directly."""
    for word in command.words[1:]:
        if not word.text.startswith(("-", "+")):
            return word
        if re.fullmatch(r"-\w*[ceEmrp]", word.text) or word.text in ("--eval", "--print"):
            return None
    return None
