"""Terminal output becomes text and classes, whatever a program sends."""

import pytest

from board.ansi import MAX_LINE, Terminal, plain, visible

GOLDEN = [
    ("plain text", "hello\n", ["hello"], ""),
    ("markup is text", "<script>&\n", ["&lt;script&gt;&amp;"], ""),
    ("a colour is a class", "\x1b[31mred\x1b[0m x\n", ['<span class="ansi-red">red</span> x'], ""),
    ("bright is the same hue", "\x1b[92mok\n", ['<span class="ansi-green">ok</span>'], ""),
    (
        "bold and colour",
        "\x1b[1;33mw\x1b[22my\x1b[m\n",
        ['<span class="ansi-bold ansi-yellow">w</span><span class="ansi-yellow">y</span>'],
        "",
    ),
    ("256 colours", "\x1b[38;5;196mr\n", ['<span class="ansi-red">r</span>'], ""),
    ("true colour", "\x1b[38;2;10;200;10mg\n", ['<span class="ansi-green">g</span>'], ""),
    ("colons", "\x1b[38:5:4mb\n", ['<span class="ansi-blue">b</span>'], ""),
    ("a ground", "\x1b[41mx\n", ['<span class="ansi-on-red">x</span>'], ""),
    ("a title is dropped", "\x1b]0;evil\x07a\n", ["a"], ""),
    ("a link is dropped", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\\n", ["text"], ""),
    ("a device string is dropped", "\x1bPq#0\x1b\\a\n", ["a"], ""),
    ("cursor moves are dropped", "\x1b[2J\x1b[10;5Ha\x1b[?25l\n", ["a"], ""),
    ("a carriage return overwrites", "10 %\r99 %\n", ["99 %"], ""),
    ("and leaves the rest", "abcdef\rXY\n", ["XYcdef"], ""),
    ("a windows line end is a line end", "a\r\nb\n", ["a", "b"], ""),
    ("erase to the end of the line", "abcdef\rX\x1b[K\n", ["X"], ""),
    ("a backspace", "abc\b\bX\n", ["aXc"], ""),
    ("other controls vanish", "a\x00\x07\x0eb\x9b\n", ["ab"], ""),
    ("a tab stays", "a\tb\n", ["a\tb"], ""),
    ("the unfinished line is apart", "one\ntwo", ["one"], "two"),
    (
        "direction marks are named",
        "a\u202eb\n",
        ['a<span class="term__hidden">&lt;U+202E&gt;</span>b'],
        "",
    ),
    ("emoji and arabic stay", "🧾 دعم\n", ["🧾 دعم"], ""),
]


@pytest.mark.parametrize(("name", "text", "lines", "tail"), GOLDEN, ids=[row[0] for row in GOLDEN])
def test_output_becomes_lines(name: str, text: str, lines: list[str], tail: str) -> None:
    _, got, rest = Terminal().feed(text)
    assert (got, rest) == (lines, tail)


@pytest.mark.parametrize(("name", "text", "lines", "tail"), GOLDEN, ids=[row[0] for row in GOLDEN])
def test_chunks_may_end_anywhere(name: str, text: str, lines: list[str], tail: str) -> None:
    for cut in range(1, len(text)):
        terminal, first, _ = Terminal().feed(text[:cut])
        _, second, rest = terminal.feed(text[cut:])
        assert ([*first, *second], rest) == (lines, tail), repr(text[:cut])


def test_the_style_goes_on_in_the_next_line() -> None:
    assert Terminal().feed("\x1b[31ma\nb\n")[1] == [
        '<span class="ansi-red">a</span>',
        '<span class="ansi-red">b</span>',
    ]


def test_a_long_line_is_cut_and_says_so() -> None:
    terminal = Terminal()
    for _ in range(20):
        terminal, _, _ = terminal.feed("x" * 1000)
    _, lines, _ = terminal.feed("\n")
    assert lines[0].startswith("x" * MAX_LINE + "<span")
    assert "cut at 8 KB" in lines[0]
    assert len(lines[0]) < MAX_LINE + 100


def test_a_sequence_that_never_ends_does_not_grow() -> None:
    terminal = Terminal()
    for _ in range(100):
        terminal, _, _ = terminal.feed("\x1b]" + "x" * 1000)
    assert len(terminal.pending) <= 5000


def test_whole_text_is_lines_in_elements() -> None:
    assert plain("a\n\nb") == (
        '<span class="term__line">a</span><span class="term__line"> </span>'
        '<span class="term__line">b</span>'
    )


@pytest.mark.parametrize("character", "\u2800\u3164\u115f\uffa0\u2028\u034f\u202e\u200b\U000e0100")
def test_letters_that_draw_nothing_are_named(character: str) -> None:
    assert f"&lt;U+{ord(character):04X}&gt;" in visible(f"a{character}b")
