"""Judges Python text that runs at once: rule L5, or the sign of rule A8 that it shows."""

import ast
import re
import warnings
from collections.abc import Callable, Iterator

from agents.harness.policy import files
from agents.harness.policy.context import Context
from agents.harness.policy.program_text import check_strings
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.python_names import made_up_path
from agents.harness.policy.secrets import may_match_secret

_SOURCE = "<code of an agent>"
# The parser remarks on odd literals in it; that is nothing for our log.
warnings.filterwarnings("ignore", module=re.escape(_SOURCE))

_MODULES = frozenset(
    ["subprocess", "socket", "urllib", "urllib2", "urllib3", "requests", "http", "httpx", "aiohttp",
     "ftplib", "smtplib", "telnetlib", "imaplib", "poplib", "ssl", "socketserver", "xmlrpc",
     "websocket", "websockets", "paramiko", "fabric", "boto3", "pty", "ctypes", "cffi", "importlib",
     "runpy", "code", "codeop", "pickle", "marshal", "dill", "shelve", "cloudpickle", "webbrowser",
     "multiprocessing", "signal", "pip", "ensurepip", "setuptools", "distutils", "site", "builtins",
     "pkgutil", "zipimport", "pydoc", "posix", "nt", "_posixsubprocess", "sh", "plumbum", "invoke",
     "pexpect", "psutil", "gc", "commands", "asyncio", "timeit", "cProfile", "profile", "trace",
     "venv", "zipapp", "mailbox", "dbm", "readline", "test", "torch", "rlcompleter", "lib2to3", "idlelib",
     "pdb", "bdb", "doctest", "joblib", "concurrent", "threading", "_thread", "antigravity"]
)  # fmt: skip
_NAMES = frozenset(
    ["eval", "exec", "compile", "__import__", "globals", "locals", "vars", "breakpoint", "delattr",
     "setattr", "__builtins__", "__loader__", "__spec__", "help", "memoryview"]
)  # fmt: skip
_ATTRIBUTES = frozenset(
    ["system", "popen", "popen2", "popen3", "popen4", "fork", "forkpty", "kill", "killpg",
     "posix_spawn", "posix_spawnp", "spawnl", "spawnle", "spawnlp", "spawnlpe", "spawnv", "spawnve",
     "spawnvp", "spawnvpe", "execl", "execle", "execlp", "execlpe", "execv", "execve", "execvp",
     "execvpe", "startfile", "remove", "unlink", "rmdir", "removedirs", "rmtree", "chown", "chmod",
     "lchmod", "fchmod", "lchown",
     "chroot", "symlink", "link", "symlink_to", "hardlink_to", "link_to", "mkfifo", "mknod",
     "urlopen", "urlretrieve", "urlcleanup", "import_module", "run_path", "run_module", "modules",
     "meta_path", "path_hooks", "settrace", "setprofile", "addaudithook", "putenv", "unsetenv",
     "create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell",
     "check_output", "check_call", "getoutput", "getstatusoutput", "Popen", "attrgetter",
     "methodcaller", "delete", "drop", "truncate_table", "call_command", "get_loader", "expanduser",
     "home", "expandvars", "chdir", "fchdir", "setuid", "setgid", "load_extension", "read_pickle",
     "subprocess", "socket", "importlib", "builtins", "ctypes", "f_globals", "f_builtins", "f_locals",
     "gi_frame", "tb_frame", "f_back", "execute_script", "executescript", "pardir",
     "fileConfig", "dictConfig", "unsafe_load", "full_load", "Loader", "UnsafeLoader", "FullLoader"]
)  # fmt: skip
_DUNDERS = frozenset(
    ["__version__", "__file__", "__name__", "__doc__", "__all__", "__class__", "__qualname__",
     "__annotations__", "__init__", "__len__", "__str__", "__repr__", "__path__", "__module__",
     "__iter__", "__next__", "__enter__", "__exit__", "__post_init__", "__eq__", "__hash__",
     "__lt__", "__call__", "__author__"]
)  # fmt: skip
_WRITES = frozenset(
    ["write_text", "write_bytes", "writelines", "mkdir", "makedirs", "touch", "rename", "renames",
     "copy", "copy2", "copyfile", "copytree", "move", "chmod", "truncate", "to_csv", "to_json",
     "to_parquet", "to_excel", "savefig", "save", "savetxt", "extractall", "extract", "dump",
     "connect", "make_archive", "unpack_archive", "NamedTemporaryFile", "mkstemp", "mkdtemp",
     "TemporaryDirectory", "TemporaryFile", "FileHandler", "RotatingFileHandler", "WatchedFileHandler",
     "TimedRotatingFileHandler", "basicConfig", "to_pickle", "to_html", "to_feather", "to_hdf", "imwrite",
     "imsave", "write_html", "write_image"]
)  # fmt: skip
_READS = frozenset({"open", "read_text", "read_bytes", "read", "readlines", "getline"})
_LISTS = frozenset({"listdir", "iterdir", "scandir", "walk"})
_FINDS = frozenset({"glob", "iglob", "rglob"})
_MOST_FILES = 500
_WRITING_MODE = re.compile(r"[rb+t]*[wax+][wax+bt]*")
_CHANGES_DATA = re.compile(r"(?i)\s*(?:delete|drop|truncate|update|insert|alter|replace)\b")
_TAKES_SLASH = frozenset(
    ["join", "split", "rsplit", "replace", "count", "strip", "lstrip", "rstrip", "startswith",
     "endswith", "find", "rfind", "partition", "rpartition", "removeprefix", "removesuffix"]
)  # fmt: skip


def check_python(context: Context, text: str, arguments: list[str], *, inline: bool = True) -> str:
    """`L5`. Raises Refused with the sign that speaks against it."""
    try:
        tree = ast.parse(text, filename=_SOURCE)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused("A9", "Runs Python text that does not parse") from error
    nodes = list(ast.walk(tree))
    for node in nodes:
        for kind, check in _CHECKS.items():
            if isinstance(node, kind):
                check(node)
    if made_up_path(nodes):
        raise Refused("A8", "Opens a file whose name the text makes up")
    _check_together(nodes)
    _check_variables(nodes)
    _check_search(context, nodes)
    # Code from outside that is put on the search path counts as writing there.
    writes = any(_is_writing(node) or _is_search_path(node) for node in nodes)
    strings = [*_strings(tree), *arguments]
    check_strings(context, strings, writes=writes, inline=inline)
    if any(_CHANGES_DATA.match(string) and " " in string.strip() for string in strings) and any(
        isinstance(node, ast.Attribute) and node.attr in ("execute", "executemany")
        for node in nodes
    ):
        raise Refused("A11", "Changes the data of a database")
    return "L5"


def _check_together(nodes: list[ast.AST]) -> None:
    """What only the whole of a text shows."""
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    if attributes & {"cwd", "getcwd"} and attributes & {"parent", "parents"}:
        raise Refused("A13", "Looks at the folder above this one")
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if any(_called(call) == "main" and call.args and _ends_in(call.func.value, "pytest")
           for call in calls if isinstance(call.func, ast.Attribute)):  # fmt: skip
        raise Refused("A8", "Runs tests with options that were not looked at")
    if any(isinstance(node, ast.keyword) and node.arg == "allow_pickle" for node in nodes):
        raise Refused("A8", "Runs Python text that loads what may run code")


def _check_variables(nodes: list[ast.AST]) -> None:
    """A variable of the environment is named as it is: what is put together may be a secret's."""
    for node in nodes:
        if isinstance(node, ast.Subscript) and _ends_in(node.value, "environ"):
            names = [node.slice]
        elif isinstance(node, ast.Call) and (
            _ends_in(node.func, "getenv")
            or (isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop")
                and _ends_in(node.func.value, "environ"))
        ):  # fmt: skip
            names = node.args[:1]
        else:
            continue
        if not all(isinstance(name, ast.Constant) for name in names):
            raise Refused("A8", "Runs Python text that reads a variable by a name it has made")


def _ends_in(node: ast.expr, name: str) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == name) or (
        isinstance(node, ast.Name) and node.id == name
    )


def _check_search(context: Context, nodes: list[ast.AST]) -> None:
    """Reading whatever files there are also reads the secrets among them."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    names = {_called(call) for call in calls}
    if not names & _READS or not names & (_LISTS | _FINDS):
        return
    patterns = [
        argument.value
        for call in calls if _called(call) in _FINDS
        for argument in call.args[:1] if isinstance(argument, ast.Constant)
    ]  # fmt: skip
    for pattern in [*("." if names & _LISTS else ""), *patterns]:
        last = str(pattern).rpartition("/")[2]
        is_open = last in (".", "*", "**", ".*", "*.*") or may_match_secret(last)
        if is_open and any(
            files.is_secret(found)
            for found in context.files.matches(
                ".*", folder=str(context.workspace), limit=_MOST_FILES
            )
        ):
            raise Refused("A12", "Reads whatever files there are, also those that hold secrets")


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _check_import(node: ast.AST) -> None:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
        for alias in node.names:
            _check_word(alias.name, f"imports {alias.name}")
            if alias.name == "*" and names[0].partition(".")[0] in ("os", "shutil", "sys"):
                raise Refused("A8", "Imports everything, by names that cannot be followed")
    for name in names:
        for part in name.split("."):
            if part in _MODULES:
                raise Refused("A8", f"Runs Python text that uses {part}")


def _check_word(word: str, shown: str) -> None:
    if word in _ATTRIBUTES or word in _NAMES or word in _MODULES:
        raise Refused("A8", f"Runs Python text that {shown}")


def _check_name(node: ast.AST) -> None:
    if isinstance(node, ast.Name) and node.id in _NAMES:
        raise Refused("A8", f"Runs Python text that uses {node.id}")


def _check_attribute(node: ast.AST) -> None:
    if not isinstance(node, ast.Attribute):
        return
    if node.attr in _ATTRIBUTES:
        raise Refused("A8", f"Runs Python text that uses {node.attr}")
    if node.attr.startswith("__") and node.attr not in _DUNDERS:
        raise Refused("A8", f"Runs Python text that uses {node.attr}")


def _check_call(node: ast.AST) -> None:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return
    if node.func.id in ("getattr", "hasattr"):
        two = 2
        name = node.args[1] if len(node.args) >= two else None
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            raise Refused("A8", "Runs Python text that looks up a name it has made")
        _check_word(name.value, f"uses {name.value}")
        if name.value.startswith("__") and name.value not in _DUNDERS:
            raise Refused("A8", f"Runs Python text that uses {name.value}")


_CHECKS: dict[type[ast.AST], Callable[[ast.AST], None]] = {
    ast.Import: _check_import,
    ast.ImportFrom: _check_import,
    ast.Name: _check_name,
    ast.Attribute: _check_attribute,
    ast.Call: _check_call,
}


def _is_search_path(node: ast.AST) -> bool:
    """`sys.path.insert(...)`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr in ("insert", "append", "extend")
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "path"
    )


def _is_writing(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    if name in ("open", "fdopen", "ZipFile", "TarFile"):
        modes = [*node.args, *(word.value for word in node.keywords)]
        constants = [one.value for one in modes if isinstance(one, ast.Constant)]
        is_constant = all(isinstance(one, ast.Constant) for one in node.args[1:2])
        return not is_constant or any(
            isinstance(one, str) and _WRITING_MODE.fullmatch(one) for one in constants
        ) or any(word.arg is None for word in node.keywords)  # fmt: skip
    if name == "replace":  # of a path, not of a text
        return len(node.args) == 1 or (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "os"
        )
    return name in _WRITES or any(word.arg in ("inplace", "filename") for word in node.keywords)


def _strings(tree: ast.AST) -> Iterator[str]:
    """The constants that may be paths; a slash that texts are cut at is none."""
    no_paths: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _TAKES_SLASH:
                no_paths |= {id(one) for one in [node.func.value, *node.args]}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            no_paths.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if not (id(node) in no_paths and text.strip("/") == "") and text:
                yield text
