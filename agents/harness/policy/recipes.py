"""The files that decide what `make`, `npm` and their like run, and the shell text in them."""

import json
import re
from collections.abc import Iterator, Sequence

# A person who approves such a command approves this content.
RECIPES = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "just": ("justfile", "Justfile"),
    "tox": ("tox.ini", "pyproject.toml"),
    "nox": ("noxfile.py",),
}
_TARGET = re.compile(r"^([\w.%/ -]+):(?![=:])([^=#\n;]*)", re.MULTILINE)
_MOST_TARGETS = 50


def commands_in(name: str, arguments: Sequence[str], content: bytes) -> Iterator[str]:
    """The shell texts that a program runs from its file `name` when it gets `arguments`."""
    text = content.decode("utf-8", "replace")
    words = [word for word in arguments if re.fullmatch(r"[\w.:/-]+", word) and word[0] != "-"]
    if name == "package.json":
        yield from _scripts(words, text)
    elif name.casefold() in ("makefile", "gnumakefile", "justfile"):
        yield from _lines(words, text)


def _scripts(words: Sequence[str], text: str) -> Iterator[str]:
    """The scripts of these names, and those that npm runs before and after them."""
    try:
        scripts = json.loads(text).get("scripts", {})
    except (ValueError, AttributeError):
        return
    if isinstance(scripts, dict):
        names = {f"{place}{word}" for word in words for place in ("", "pre", "post")}
        yield from (str(value) for key, value in scripts.items() if key in names)


def _lines(words: Sequence[str], text: str) -> Iterator[str]:
    """The lines of the targets, and of those that they need; without a name, of the first one."""
    found: dict[str, tuple[list[str], str]] = {}
    matches = list(_TARGET.finditer(text))
    ends = [*(match.start() for match in matches[1:]), len(text)]
    for match, end in zip(matches, ends, strict=False):
        for target in match[1].split():
            found.setdefault(target, (match[2].split(), text[match.end() : end]))
    waiting = [word for word in words if word in found] or list(found)[:1]
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_TARGETS:
        target = waiting.pop()
        if target in seen or target not in found:
            continue
        seen.add(target)
        needed, body = found[target]
        waiting += needed
        yield "\n".join(line.lstrip(" \t@+-") for line in body.splitlines() if line[:1] in " \t")
