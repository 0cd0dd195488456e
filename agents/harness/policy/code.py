"""What program text in another language would do, by the signs that can be recognised in it.

For text given with -c or -e, and for files that are written (rule C1). It looks for shell text in
calls that start a process, and for calls that remove a folder or multiply the process.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

INTERPRETERS: dict[str, tuple[str, ...]] = {
    "python": ("-c",),
    "node": ("-e", "--eval", "-p", "--print"),
    "nodejs": ("-e", "--eval", "-p", "--print"),
    "perl": ("-e", "-E"),
    "ruby": ("-e",),
    "php": ("-r",),
    "deno": ("eval",),
    "bun": ("-e",),
    "lua": ("-e",),
}

_SOURCE = "<code of an agent>"
# The parser remarks on odd literals in it; that is nothing for our log.
warnings.filterwarnings("ignore", module=re.escape(_SOURCE))

_STARTS = frozenset(
    [
        "system",
        "popen",
        "run",
        "call",
        "check_call",
        "check_output",
        "Popen",
        "getoutput",
        "getstatusoutput",
        "spawn",
        "execSync",
        "exec",
        "spawnSync",
        "execFile",
        "execFileSync",
        "spawnlp",
        "execvp",
        "execlp",
        "execl",
        "execv",
        "shell_exec",
        "passthru",
        "create_subprocess_shell",
        "create_subprocess_exec",
    ]
)
_REMOVES = frozenset(
    ["rmtree", "rmSync", "rmdirSync", "rm", "rmdir", "removedirs", "remove_tree", "rm_rf"]
)
_CALL = re.compile(
    r"\b(\w+)\s*\(?\s*(\[[^\]]{0,2000}\]|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]{0,2000}`)"
)
_COMMENT = re.compile(r"(?m)^[ \t]*#(?!!).*$")
_BACKTICKS = re.compile(r"`([^`\n]+)`|\bqx[/{(]([^/})]+)[/})]|%x[{(]([^)}]+)[)}]")
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'")
_FORK_BOMB = re.compile(
    r"fork\s*(?:\(\s*\))?\s*while|while\s*\(?\s*(?:1|true|True)\s*\)?\s*:?\s*\{?\s*[^;\n}]*\bfork\b"
    r"|loop\s*\{\s*fork|fork\s*\{?\s*fork"
    r"|fork\(\)\s+for\s+\w+\s+in\s+(?:iter\(int|(?:itertools\.)?(?:count|cycle|repeat)\()",
)
_CONNECTS = re.compile(
    r"socket|Socket|fsockopen|net\.connect|createConnection"
    r"|['\"](?:node:)?(?:net|tls)['\"]\)\.connect"
)
_GIVES_SHELL = re.compile(
    r"dup2|/bin/(?:ba)?sh|pty\.spawn|exec\b|spawn|subprocess|proc_open|\bsystem\b|popen"
)
_SIGNALS_ALL = re.compile(
    r"\bkill\w*\s*\(?\s*(?:-1\s*,|(?:-?\d+|['\"]?(?:SIG)?[A-Z]+['\"]?|[\w.]*SIG[A-Z]+)\s*,\s*-1\b)"
)


@dataclass(frozen=True)
class Signs:
    """What was recognised: shell texts and argument lists that it runs, folders that it removes."""

    shell_texts: tuple[str, ...] = ()
    argument_lists: tuple[tuple[str, ...], ...] = ()
    removed: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    fork_bomb: bool = False
    signals_all: bool = False
    reverse_shell: bool = False


def signs_in(text: str, *, python: bool = False) -> Signs:
    """The signs in a program text."""
    found = _python_calls(text) if python else None
    if found is None:  # a comment is not run, as far as a fragment shows what is one
        found = _loose_calls(_COMMENT.sub("", text) if python else text)
    calls = list(found)
    texts: list[str] = []
    lists: list[tuple[str, ...]] = []
    removed: list[str] = []
    for name, values in calls:
        if name in _STARTS and len(values) == 1:
            texts.append(values[0])
        elif name in _STARTS:
            lists.append(values)
        elif name in _REMOVES:
            removed += values[:1]
    if not python:
        texts += [next(filter(None, match.groups())) for match in _BACKTICKS.finditer(text)]
    return Signs(
        tuple(texts),
        tuple(lists),
        tuple(removed),
        tuple(first or second for first, second in _STRING.findall(text)),
        _FORK_BOMB.search(text) is not None,
        _SIGNALS_ALL.search(text) is not None,
        _CONNECTS.search(text) is not None and _GIVES_SHELL.search(text) is not None,
    )


def _python_calls(text: str) -> Iterator[tuple[str, tuple[str, ...]]] | None:
    """Calls with constant arguments, by the syntax tree; None if it is no Python."""
    try:
        tree = ast.parse(text, filename=_SOURCE)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return _calls_in(tree)


def _calls_in(tree: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            name = function.id if isinstance(function, ast.Name) else name
            values = tuple(_constants(node.args[0]))
            if name and values:
                yield name, values


def _constants(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.List | ast.Tuple):
        for element in node.elts:
            yield from _constants(element)
    elif isinstance(node, ast.Call) and node.args:  # Path("/"), os.path.expanduser("~")
        yield from _constants(node.args[0])


def _loose_calls(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """`name("text")`, `name(["a", "b"])` and `name "text"` in any language."""
    for name, value in _CALL.findall(text):
        if value.startswith("["):
            values = tuple(first or second for first, second in _STRING.findall(value))
        else:
            values = (value[1:-1].replace('\\"', '"').replace("\\'", "'"),)
        if values:
            yield name, values
