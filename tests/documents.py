"""Reads the documentation and the code that it is about, for tests/test_docs.py."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path
    for package in ("board", "agents")
    for path in (ROOT / package).rglob("*.py")
    if "migrations" not in path.parts
)
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\\)!?\[[^\]]*\]\(([^)\s]+)\)")
SHOWN_PARTS = {"key": "KEY", "ref": "KEY-12", "token": "TOKEN"}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def settings_that_are_read() -> Iterator[tuple[str, str]]:
    """Each variable that the settings read, with its default where that is a constant."""
    for node in ast.walk(parse(ROOT / "board/settings.py")):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
            continue
        name, *rest = node.args
        if node.func.id in {"text", "flag", "number"} and isinstance(name, ast.Constant):
            constant = rest[0].value if rest and isinstance(rest[0], ast.Constant) else ""
            yield str(name.value), str(constant)


def constants_given_to(function: str) -> Iterator[str]:
    """The first argument of each call of `function`, or of a method of that name, where it is a constant text."""
    for path in SOURCES:
        for node in ast.walk(parse(path)):
            if (
                not isinstance(node, ast.Call)
                or not node.args
                or not isinstance(node.args[0], ast.Constant)
            ):
                continue
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            if name == function and isinstance(node.args[0].value, str):
                yield node.args[0].value


def arguments_of(path: Path) -> str:
    """The lines of a program that add arguments to its parser."""
    return "\n".join(
        ast.unparse(node).replace("'", '"')
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in {"add", "add_argument"}
    )


def table_rows(page: Path, *, section: str = "", head: str = "") -> dict[str, list[str]]:
    """The rows of a page's tables by the name in their first cell; of one section, or with one head, only."""
    rows: dict[str, list[str]] = {}
    is_wanted = in_table = False
    heading = ""
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ").strip()
        if not line.startswith("|"):
            in_table = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        if not in_table:
            in_table = True
            is_wanted = (not section or heading == section) and (not head or cells[0] == head)
        name = re.fullmatch(r"`([^`]+)`", cells[0])
        if is_wanted and name:
            rows[name[1]] = cells[1:]
    return rows


def names_in(page: Path) -> set[str]:
    """Everything that stands in backticks outside of examples."""
    return set(re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text())))


def shown(route: str) -> str:
    """An address as the page shows it: KEY for `<str:key>`, ID for a number."""
    return re.sub(r"<(\w+):(\w+)>", lambda part: SHOWN_PARTS.get(part[2], "ID"), route)


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each example."""
    return [
        (found[2], re.sub(rf"^{found[1]}", "", found[3], flags=re.MULTILINE))
        for found in FENCE.finditer(page.read_text())
    ]


def links(page: Path) -> list[str]:
    found: list[str] = LINK.findall(FENCE.sub("", page.read_text()))
    return [link for link in found if "://" not in link and not link.startswith("mailto:")]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and others make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings
    }


@cache
def defined_in(path: str) -> frozenset[str]:
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    nodes = ast.walk(parse(file))
    return frozenset(
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def coverage_rows(page: Path) -> Iterator[tuple[str, str, str, str]]:
    """Id, state, tests and note of each row."""
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] not in {"Id", "---"}:
            identity, _what, state, tests, note = cells
            yield identity, state, tests, note
