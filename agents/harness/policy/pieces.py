"""Works out `${name%...}` and its like for a value that is known."""

import re
from fnmatch import translate

_PLAIN_PATTERN = re.compile(r"[\w .,:@=+*?/-]*")
_REPLACED = re.compile(r"(//?)((?:[^/]|\\/)+)(?:/(.*))?", re.DOTALL)
_CUT = re.compile(r"(%%?|##?)(.*)", re.DOTALL)


def piece(text: str, change: str) -> str | None:
    """What bash makes of a value; None if that is not certain."""
    if change == "-":  # a default for what is not set
        return text
    cut = _CUT.fullmatch(change)
    if cut is not None and _PLAIN_PATTERN.fullmatch(cut[2]):
        return _without(text, cut[1], cut[2])
    replaced = _REPLACED.fullmatch(change)
    if replaced is not None and re.fullmatch(r"[\w .,:@=+-]+", replaced[2]):
        new = replaced[3] or ""
        if "&" in new or "\\" in new or "~" in new:
            return None
        return text.replace(replaced[2], new, -1 if replaced[1] == "//" else 1)
    return None


def _without(text: str, mark: str, pattern: str) -> str:
    """Without the shortest (or, for a doubled mark, longest) beginning or end that matches."""
    matches = re.compile(translate(pattern)).match
    lengths = range(len(text) + 1)
    for length in lengths if len(mark) == 1 else reversed(lengths):
        if mark[0] == "#" and matches(text[:length]):
            return text[length:]
        if mark[0] == "%" and matches(text[len(text) - length :]):
            return text[: len(text) - length]
    return text
