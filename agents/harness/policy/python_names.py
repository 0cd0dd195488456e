"""Finds out whether Python text opens files by names that it puts together itself."""

import ast
from collections.abc import Iterator, Sequence

_OPENING = frozenset(
    ["open", "fdopen", "Path", "PurePath", "PosixPath", "joinpath", "with_name", "with_suffix",
     "with_stem", "glob", "rglob", "iglob", "listdir", "scandir", "walk", "copy", "copy2", "copyfile",
     "copytree", "move", "rename", "replace", "mkdir", "makedirs", "read_csv", "read_json", "connect",
     "ZipFile", "fromfile", "loadtxt", "load", "FileInput", "input"]
)  # fmt: skip
_MAKING = frozenset(
    ["chr", "format", "join", "decode", "replace", "fromhex", "b64decode", "b16decode", "b32decode",
     "unhexlify", "translate", "bytes", "bytearray", "reversed", "strip", "lower", "upper", "swapcase",
     "removeprefix", "removesuffix", "input", "getenv", "get", "read", "readline", "readlines", "pop"]
)  # fmt: skip
_NO_PATHS = frozenset({"replace", "load", "input"})  # mostly of texts and open files


def made_up_path(nodes: Sequence[ast.AST]) -> bool:
    """Whether a call that opens something gets a name that is put together in the text."""
    made = {name for name, value in _bound(nodes) if value is None or _is_made(value, set())}
    for _ in range(3):  # names that come from names
        made |= {
            name for name, value in _bound(nodes) if value is not None and _is_made(value, made)
        }
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = _name(node)
        is_path_join = name == "join" and _is_of_os(node.func)
        if name in _OPENING - _NO_PATHS or is_path_join:
            first = [*node.args[:1], *[word.value for word in node.keywords if word.arg == "file"]]
            given = node.args if is_path_join else first
            if any(_is_made(argument, made) for argument in given):
                return True
    return False


def _name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _is_of_os(function: ast.expr) -> bool:
    """`os.path.join` and `path.join`, not that of a text."""
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Attribute | ast.Name)
        and not isinstance(function.value, ast.Constant)
    )


def _bound(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr | None]]:
    """Names with what they are bound to; None if that is not known."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from ((name, node.value) for name in _names(target))
        elif isinstance(node, ast.AugAssign):
            yield from ((name, None) for name in _names(node.target))
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            yield from ((name, node.value) for name in _names(node.target))
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield from ((name, node.iter) for name in _names(node.target))
        elif isinstance(node, ast.arg):
            yield node.arg, None


def _names(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id


def _is_made(value: ast.expr, made: set[str]) -> bool:
    return any(_makes(node, made) for node in ast.walk(value))


def _makes(node: ast.AST, made: set[str]) -> bool:
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.Div)
    if isinstance(node, ast.Name):
        return node.id in made
    if isinstance(node, ast.Call):
        return _name(node) in _MAKING and not (_name(node) == "join" and _is_of_os(node.func))
    return isinstance(node, ast.JoinedStr | ast.Slice | ast.Dict) or (
        isinstance(node, ast.Attribute) and node.attr in ("sep", "environ", "curdir", "altsep")
    )
