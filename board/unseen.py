"""Characters that a reader does not see, or that change what is seen. Plain Python."""

import unicodedata

# Controls, formats (direction, joiners, tags), private and unknown characters, unusual spaces and line ends.
UNSEEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}
# Letters and marks that draw nothing: fillers, variation selectors, the grapheme joiner.
LOOKS_EMPTY = frozenset(
    map(chr, [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0])
) | frozenset(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))


def is_unseen(character: str) -> bool:
    """Return whether a character hides, or hides others; a space, a tab and a line end do not."""
    if character in " \n\t" or (character.isascii() and character.isprintable()):
        return False
    return unicodedata.category(character) in UNSEEN or character in LOOKS_EMPTY


def named(text: str) -> str:
    """Return plain text in which each unseen character is named: `<U+202E>`."""
    return "".join(f"<U+{ord(each):04X}>" if is_unseen(each) else each for each in text)
