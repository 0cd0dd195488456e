"""Reads the options of a program that starts another one: what is not in its table is refused."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.values import Field, Kind


@dataclass(frozen=True)
class Options:
    """Options of a wrapper: flags, options with a value, and how many words come before the command."""

    flags: str = ""
    values: str = ""
    long: tuple[str, ...] = ()  # flags, and `--name=` for those with a value
    before: int = 0


def after_options(
    name: str, words: Sequence[Field], options: Options
) -> tuple[list[tuple[str, str]], list[Field]]:
    """The options with their values, and what follows them."""
    found: list[tuple[str, str]] = []
    rest = list(words)
    while rest and rest[0].text.startswith("-") and len(rest[0].text) > 1:
        word = rest.pop(0)
        text = word.text
        if not word.is_constant and word.kind is not Kind.NUMBER:
            raise Refused("A9", f"`{name}` with an option that is not known beforehand")
        if text == "--":
            break
        if name == "nice" and re.fullmatch(r"-\d+", text):
            continue
        found.append(_option(name, text, rest, options))
    return found, rest


def _option(name: str, text: str, rest: list[Field], options: Options) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if text.startswith("--"):
        if (key + equals) in options.long:
            return key, value
        if f"{key}=" in options.long and rest and rest[0].is_constant:
            return key, rest.pop(0).text
        raise Refused("A8", f"`{name} {text}` is an option that is not known")
    letters = text[1:].lstrip(options.flags) if options.flags else text[1:]
    if not letters:
        return text, ""
    if letters[0] in options.values:
        if len(letters) > 1 or (letters[0] in "il" and name == "xargs"):
            return f"-{letters[0]}", letters[1:]
        if rest and (rest[0].is_constant or rest[0].kind is Kind.NUMBER):
            return f"-{letters[0]}", rest.pop(0).text
    raise Refused("A8", f"`{name} {text}` is an option that is not known")
