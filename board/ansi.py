"""Terminal output as HTML: colours become classes, and nothing else that a program sends has an effect.

Plain Python. Text arrives in chunks that may end anywhere, also inside an escape sequence, so a
`Terminal` carries the style, the unfinished line and the unfinished sequence to the next chunk.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

MAX_LINE = 8_192  # characters of one line; a longer one is cut, with a sign that says so
MAX_PENDING = 4_096  # characters of an unfinished sequence; then it is no sequence
CUT = '<span class="term__cut">line cut at 8 KB</span>'

TOKEN = re.compile(
    r"\x1b\[(?P<sgr>[0-9;:]*)m"
    r"|\x1b\[(?P<erase>[0-2]?)K"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # any other control sequence: cursor moves, modes
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, device strings
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
    r"|(?P<newline>\r*\n)"
    r"|(?P<move>[\r\b])"
    r"|(?P<text>[^\x00-\x08\x0b-\x1f\x7f-\x9f\r\n]+)"
    r"|[\x00-\x1f\x7f-\x9f]",  # any other control character
    re.DOTALL,
)
UNFINISHED = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?\Z|\r+\Z", re.DOTALL
)
# Characters that change what a reader sees without being seen: direction, joiners, tags, marks, and
# letters that draw nothing. Not the selectors of emoji, which are in every log.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
HUES = ("dim", "red", "green", "yellow", "blue", "magenta", "cyan", "")  # black .. white
COLORS = {base + place: hue for base in (30, 90) for place, hue in enumerate(HUES)} | {39: ""}
GROUNDS = {base + place: hue for base in (40, 100) for place, hue in enumerate(HUES)} | {49: ""}
SET_COLOR, SET_GROUND = 38, 48  # followed by a colour of the palette or by red, green and blue
INDEXED, TRUE_COLOR = 5, 2
LEVELS = 6  # of each primary in the palette's cube
FLAGS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike"}
ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",), 29: ("strike",)}

Segment = tuple[str, str]  # classes, text


@dataclass(frozen=True)
class Style:
    """How text looks now."""

    color: str = ""
    ground: str = ""
    flags: frozenset[str] = frozenset()

    @property
    def classes(self) -> str:
        """The classes, in a fixed order."""
        names = [f"ansi-{flag}" for flag in sorted(self.flags)]
        if self.color and not (self.color == "dim" and "dim" in self.flags):
            names.append(f"ansi-{self.color}")
        if self.ground:
            names.append(f"ansi-on-{self.ground}")
        return " ".join(names)


@dataclass(frozen=True)
class Terminal:
    """What is left over after a chunk. Immutable, so that a state may be kept and used again."""

    style: Style = Style()
    line: tuple[Segment, ...] = ()
    cursor: int = 0
    pending: str = ""

    def feed(self, text: str) -> tuple["Terminal", list[str], str]:
        """Return the next state, the finished lines as HTML, and the unfinished line as HTML."""
        writer = _Writer(self)
        text = self.pending + text
        rest = UNFINISHED.search(text)
        pending = rest.group() if rest and len(rest.group()) <= MAX_PENDING else ""
        lines = list(writer.write(text[: len(text) - len(pending)]))
        after = Terminal(writer.style, tuple(writer.line), writer.cursor, pending)
        return after, lines, _line(writer.line)


class _Writer:
    """The mutable half of `Terminal.feed`."""

    def __init__(self, terminal: Terminal) -> None:
        self.style = terminal.style
        self.line = list(terminal.line)
        self.cursor = terminal.cursor
        self.length = sum(len(text) for _, text in self.line)

    def write(self, text: str) -> Iterator[str]:
        """Take text, and yield each line that it finishes."""
        for token in TOKEN.finditer(text):
            match token.lastgroup:
                case "text":
                    self._put(token.group())
                case "newline":
                    yield _line(self.line)
                    self.line, self.cursor, self.length = [], 0, 0
                case "sgr":
                    self.style = restyled(self.style, token["sgr"])
                case "move":
                    self.cursor = 0 if token["move"] == "\r" else max(self.cursor - 1, 0)
                case "erase" if token["erase"] in {"", "0"}:
                    self._cut(self.cursor)
                case "erase" if token["erase"] == "2":
                    self._cut(0)
                case _:
                    pass

    def _put(self, text: str) -> None:
        """Write at the cursor, over what is there."""
        text = text[: MAX_LINE + 1 - min(self.cursor, MAX_LINE + 1)]
        segment = (self.style.classes, text)
        end = self.cursor + len(text)
        if self.cursor >= self.length and self.line and self.line[-1][0] == segment[0]:
            self.line[-1] = (segment[0], self.line[-1][1] + text)
        elif self.cursor >= self.length:
            self.line.append(segment)
        else:
            before = _between(self.line, 0, self.cursor)
            self.line = [*before, segment, *_between(self.line, end, self.length)]
        self.cursor, self.length = end, max(self.length, end)

    def _cut(self, at: int) -> None:
        self.line = _between(self.line, 0, at)
        self.length = min(self.length, at)
        self.cursor = min(self.cursor, self.length)


def _between(line: list[Segment], start: int, end: int) -> list[Segment]:
    """Return the part of a line from one place to another."""
    part: list[Segment] = []
    place = 0
    for classes, text in line:
        piece = text[max(start - place, 0) : max(end - place, 0)]
        if piece:
            part.append((classes, piece))
        place += len(text)
    return part


def restyled(style: Style, codes: str) -> Style:
    """Return the style after an SGR sequence; what it does not know changes nothing."""
    numbers = [int(code or 0) for code in codes.replace(":", ";").split(";")]
    color, ground, flags = style.color, style.ground, set(style.flags)
    while numbers:
        number = numbers.pop(0)
        if number == 0:
            color, ground, flags = "", "", set()
        elif number == SET_COLOR:
            color = _extended(numbers)
        elif number == SET_GROUND:
            ground = _extended(numbers)
        elif number in FLAGS:
            flags.add(FLAGS[number])
        else:
            color = COLORS.get(number, color)
            ground = GROUNDS.get(number, ground)
            flags.difference_update(ENDS.get(number, ()))
    return Style(color, ground, frozenset(flags))


def _extended(numbers: list[int]) -> str:
    """Take the rest of a 256-colour or true-colour code, and return the nearest of our hues."""
    kind = numbers.pop(0) if numbers else 0
    if kind == INDEXED and numbers:
        number = numbers.pop(0)
        return PALETTE[number] if number < len(PALETTE) else ""
    parts = numbers[:3]
    if kind == TRUE_COLOR and len(parts) == len("rgb"):
        del numbers[:3]
        return _nearest(*parts)
    return ""


def _nearest(red: int, green: int, blue: int) -> str:
    """Return the hue whose primaries are the strong ones of this colour."""
    top = max(red, green, blue)
    if top == min(red, green, blue):
        return ""
    bits = sum(bit for bit, part in ((1, red), (2, green), (4, blue)) if part * 3 > top * 2)
    return HUES[bits]


# The 256 colours: twice the eight, a cube of primaries, and greys from dark to light.
PALETTE = (
    *HUES,
    *HUES,
    *(
        _nearest(red, green, blue)
        for red in range(LEVELS)
        for green in range(LEVELS)
        for blue in range(LEVELS)
    ),
    *["dim"] * 18,
    *[""] * 6,
)


def _line(line: list[Segment]) -> str:
    """Return a line as HTML, cut at MAX_LINE."""
    html: list[str] = []
    room = MAX_LINE
    for classes, text in line:
        if room <= 0:
            html.append(CUT)
            break
        shown = visible(text[:room])
        html.append(f'<span class="{classes}">{shown}</span>' if classes else shown)
        room -= len(text)
        if room < 0:
            html.append(CUT)
            break
    return "".join(html)


def visible(text: str) -> str:
    """Return text as HTML in which characters that hide or reorder others are named."""
    return INVISIBLE.sub(_named, escape(text, quote=False))


def _named(match: re.Match[str]) -> str:
    return f'<span class="term__hidden">&lt;U+{ord(match.group()):04X}&gt;</span>'


def plain(text: str) -> str:
    """Return a whole text as lines of HTML, each in its own element."""
    _, lines, tail = Terminal().feed(text)
    if tail:
        lines.append(tail)
    return "".join(line_element(line) for line in lines)


def line_element(html: str) -> str:
    """Return one line as the element that the log shows; an empty line keeps its height."""
    return f'<span class="term__line">{html or " "}</span>'
