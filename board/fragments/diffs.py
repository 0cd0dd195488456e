"""Diffs as tables: whole ones of a run, and the small one of a single edit. Drawn by string, they may be long."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from board.ansi import visible
from board.templatetags.markup import MINUS

MAX_EDIT_LINES = 60  # of the small diff in the log
MAX_MARKED = 400  # characters of a line; in longer ones the differences are not looked for
ALIKE = 0.5  # the share of words that two lines must have in common to be one line that changed
WORD = re.compile(r"\w+|\s+|.")
SIGNS = {"+": ("add", "+"), "-": ("del", MINUS), " ": ("", "")}
PARTS = 4  # of a line: kind, old number, new number, text

Line = Sequence[Any]  # [kind, old number, new number, text]


def file_rows(hunks: Iterable[Mapping[str, Any]]) -> str:
    """Return the rows of one file's table."""
    return "".join(_hunk(hunk) for hunk in hunks)


def _hunk(hunk: Mapping[str, Any]) -> str:
    header = str(hunk.get("header", ""))
    where = header.rpartition("@@")[2].strip() if "@@" in header else header
    rows = _rows([line for line in hunk.get("lines", ()) if len(line) == PARTS])
    words = f"in {visible(where)}" if where else "…"
    return f'<tr class="hunk"><td colspan="4">{words}</td></tr>{rows}'


def _rows(lines: Sequence[Line]) -> str:
    html: list[str] = []
    place = 0
    while place < len(lines):
        taken = _run_of(lines, place, "-")
        added = _run_of(lines, place + len(taken), "+")
        if taken and len(taken) == len(added):
            pairs = [
                _marked(str(old[3]), str(new[3])) for old, new in zip(taken, added, strict=True)
            ]
            html += [_row(line, pair[0]) for line, pair in zip(taken, pairs, strict=True)]
            html += [_row(line, pair[1]) for line, pair in zip(added, pairs, strict=True)]
            place += len(taken) + len(added)
        else:
            html.append(_row(lines[place], visible(str(lines[place][3]))))
            place += 1
    return "".join(html)


def _run_of(lines: Sequence[Line], start: int, kind: str) -> Sequence[Line]:
    end = start
    while end < len(lines) and lines[end][0] == kind:
        end += 1
    return lines[start:end]


def _row(line: Line, html: str) -> str:
    classes, sign = SIGNS.get(str(line[0]), ("", ""))
    css = f' class="{classes}"' if classes else ""
    old, new = (str(number) if number else "" for number in line[1:3])
    spoken = {"add": '<span class="sr">added: </span>', "del": '<span class="sr">removed: </span>'}
    return (
        f'<tr{css}><td class="n">{old}</td><td class="n">{new}</td><td class="s" aria-hidden="true">{sign}</td>'
        f"<td>{spoken.get(classes, '')}{html}</td></tr>"
    )


def _marked(old: str, new: str) -> tuple[str, str]:
    """Return both lines with what differs between them marked, unless they have little in common."""
    if max(len(old), len(new)) > MAX_MARKED:
        return visible(old), visible(new)
    before, after = WORD.findall(old), WORD.findall(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < ALIKE:
        return visible(old), visible(new)
    left, right = [], []
    for kind, a, b, c, d in matcher.get_opcodes():
        gone, come = visible("".join(before[a:b])), visible("".join(after[c:d]))
        if kind == "equal":
            left.append(gone)
            right.append(come)
        else:
            left.append(f"<del>{gone}</del>" if gone else "")
            right.append(f"<ins>{come}</ins>" if come else "")
    return "".join(left), "".join(right)


def edit_rows(path: str, old: str, new: str) -> str:
    """Return the small diff of one edit, which knows no line numbers."""
    compared = difflib.ndiff(old.splitlines(), new.splitlines())
    lines: list[Line] = [[line[0], 0, 0, line[2:]] for line in compared if line[0] in SIGNS]
    shown = lines[:MAX_EDIT_LINES]
    added = sum(line[0] == "+" for line in lines)
    taken = sum(line[0] == "-" for line in lines)
    more = len(lines) - len(shown)
    rest = f'<tr class="hunk"><td colspan="4">{more} lines more</td></tr>' if more else ""
    return (
        f'<div class="diff"><div class="diff__head"><span class="clip mono">{visible(path)}</span>'
        f'<span class="churn"><ins>+{added}</ins><del>{MINUS}{taken}</del></span></div>'
        f'<div class="diff__scroll"><table class="diff__rows"><caption class="sr">Changed lines</caption>'
        f"<tbody>{_rows(shown)}{rest}</tbody></table></div></div>"
    )
