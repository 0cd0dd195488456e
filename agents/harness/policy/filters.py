"""What filters make of a known text: for the rules that deny, so an uncommon option gives None."""

import binascii
import codecs
import re
from collections.abc import Callable

_Filter = Callable[[str, list[str]], str | None]


def _rev(text: str, _arguments: list[str]) -> str:
    return "".join(f"{line[::-1]}\n" for line in text.splitlines())


def _tac(text: str, _arguments: list[str]) -> str:
    return "".join(f"{line}\n" for line in reversed(text.splitlines()))


def _characters(text: str) -> str | None:
    """The characters of a set like `a-z\\n`."""
    if "[" in text or len(text) > len("a-z") * 20:
        return None
    plain = codecs.decode(text.encode("latin-1", "backslashreplace"), "unicode_escape")
    return re.sub(
        r"(.)-(.)", lambda m: "".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), plain, flags=re.S
    )


def _tr(text: str, arguments: list[str]) -> str | None:
    options = [word for word in arguments if re.fullmatch(r"-[ds]+", word)]
    sets = [_characters(word) for word in arguments if word not in options]
    if not sets or any(one is None for one in sets) or any("s" in option for option in options):
        return None
    first = sets[0] or ""
    if options:
        return text.translate({ord(one): None for one in first})
    second = (sets[1] if len(sets) > 1 else None) or ""
    if not second:
        return None
    second += second[-1] * (len(first) - len(second))
    return text.translate(dict(zip(map(ord, first), second, strict=False)))


def _xxd(text: str, arguments: list[str]) -> str | None:
    if not any("r" in word for word in arguments if word.startswith("-")):
        return None
    digits = re.sub(r"(?m)^[0-9a-f]+: |  .*$", "", text) if ": " in text else text
    try:
        return binascii.unhexlify(re.sub(r"\s", "", digits)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def _ends(*, last: bool) -> _Filter:
    def cut(text: str, arguments: list[str]) -> str | None:
        match = re.search(r"(?:-n ?|-)(\d+)", " ".join(arguments))
        if any(word.startswith("-c") for word in arguments):
            return None
        count = int(match[1]) if match is not None else 10
        lines = text.splitlines(keepends=True)
        return "".join(lines[-count:] if last else lines[:count])

    return cut


def _sort(text: str, arguments: list[str]) -> str | None:
    if any(not re.fullmatch(r"-[ru]+", word) for word in arguments if word.startswith("-")):
        return None
    lines = sorted(text.splitlines(), reverse=any("r" in word for word in arguments))
    return "".join(f"{line}\n" for line in lines)


FILTERS: dict[str, _Filter] = {
    "rev": _rev,
    "tac": _tac,
    "tr": _tr,
    "xxd": _xxd,
    "head": _ends(last=False),
    "tail": _ends(last=True),
    "sort": _sort,
}
