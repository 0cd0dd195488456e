"""Judges `python -m MODULE`: modules of the library, of tools, and of the project."""

import re
from collections.abc import Callable

from agents.harness.policy.context import Context
from agents.harness.policy.program_text import check_strings
from agents.harness.policy.programs import allowing_rule
from agents.harness.policy.programs_paths import Refused, check_change, check_read, check_values
from agents.harness.policy.programs_test import PYTHON_MODULES, check_test_module
from agents.harness.policy.python_code import check_python
from agents.harness.policy.simple import Argument

RunFile = Callable[[list[str]], str]

_MODULE = re.compile(r"[A-Za-z_][\w.]*")
_SAFE_LIBRARY = frozenset(
    ["json.tool", "tokenize", "ast", "dis", "calendar", "platform", "sysconfig", "tabnanny",
     "zipfile", "tarfile", "this", "base64", "py_compile", "compileall", "inspect", "pprint"]
)  # fmt: skip
_KNOWN_TO_ASK = frozenset(
    ["pip", "ensurepip", "smtpd", "webbrowser", "ftplib", "telnetlib", "pdb", "code", "idlelib",
     "pydoc", "runpy", "twine", "virtualenv", "http", "flask", "profile", "zipapp", "venv", "asyncio",
     "idlelib", "turtledemo", "nntplib", "imaplib", "poplib", "smtplib", "xmlrpc", "wsgiref", "socketserver",
     "uvicorn", "gunicorn", "django", "sqlite3", "pickle", "IPython", "jupyter", "notebook", "alembic",
     "pstats", "poetry", "uv", "pipx", "hatch", "pre_commit", "ansible", "awscli"]
)  # fmt: skip
_BUILD_OPTIONS = frozenset({"--wheel", "-w", "--sdist", "-s", "--no-isolation", "-n", "."})
_PUBLISHING = re.compile(r"deploy|publish|release|upload|install|push", re.IGNORECASE)


def check_module(context: Context, module: str, arguments: list[str], run_file: RunFile) -> str:
    """The rule that allows it; `run_file` judges a file with its arguments. Raises Refused."""
    if not _MODULE.fullmatch(module):
        raise Refused("A8", "Runs a module whose name is not plain")
    if module in ("cProfile", "trace"):
        return _profiled(context, arguments, run_file)
    if module == "build" and any(word not in _BUILD_OPTIONS for word in arguments):
        raise Refused("A2", "Builds with packages from the internet (build)")
    if module in PYTHON_MODULES:
        return check_test_module(context, module, arguments)
    check = _MODULES.get(module)
    if check is not None:
        return check(context, arguments)
    if module.partition(".")[0] in _KNOWN_TO_ASK or _PUBLISHING.search(module):
        raise Refused("A8", f"Runs the module {module}")
    check_given(context, arguments)
    return "L3"


def _timed(context: Context, arguments: list[str]) -> str:
    """`python -m timeit`: its texts run."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-n", "-r", "-u") and rest:
            rest.pop(0)
        elif option in ("-s", "--setup") and rest:
            check_python(context, rest.pop(0), [])
        elif not re.fullmatch(r"-[vpcth]+|-[nr]\d+", option):
            raise Refused("A8", "Runs Python text that was not looked at")
    for text in rest:
        check_python(context, text, [])
    return "L5"


def _profiled(context: Context, arguments: list[str], run_file: RunFile) -> str:
    """`python -m cProfile` and `-m trace` run a file, or a module of those that test."""
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        option = rest.pop(0)
        if option in ("-s", "-o", "-C", "--coverdir", "-f") and rest:
            value = rest.pop(0)
            if option != "-s":
                check_change(context, value)
        elif not re.fullmatch(
            r"--(?:count|trace|summary|missing|timing|listfuncs)|-[ctTsmrRg]+", option
        ):
            raise Refused("A8", "Runs Python with an option that is not known")
    if rest[:1] == ["-m"] and rest[1:2] and rest[1] not in ("cProfile", "trace"):
        return check_module(context, rest[1], rest[2:], run_file)
    if not rest:
        raise Refused("A8", "Runs Python code that was not looked at")
    return run_file(rest)


def _library(module: str) -> Callable[[Context, list[str]], str]:
    return lambda context, arguments: _of_library(context, module, arguments)


def _of_library(context: Context, module: str, arguments: list[str]) -> str:
    plain = [argument for argument in arguments if not argument.startswith("-")]
    for argument in plain:
        check_read(context, argument)
    if module == "json.tool" and len(plain) > 1:
        raise Refused("A4", "Writes a file (json.tool)")
    if module in ("zipfile", "tarfile") and arguments[:1] not in (["-l"], ["--list"]):
        raise Refused("A4", f"`{module}` may write files")
    return "L5"


def _serve(context: Context, arguments: list[str]) -> str:
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-b", "--bind", "-d", "--directory") and rest:
            value = rest.pop(0)
            if word in ("-d", "--directory"):
                check_read(context, value)
            elif value not in ("127.0.0.1", "localhost", "::1", "0.0.0.0"):  # noqa: S104
                raise Refused("A1", "Serves to other machines")
        elif not word.isdigit():
            raise Refused("A9", "Serves files with an option that is not known")
    return "L7"


def _environment(context: Context, arguments: list[str]) -> str:
    options = ("--clear", "--without-pip", "--system-site-packages", "--upgrade-deps")
    for argument in arguments:
        if argument.startswith("-"):
            if argument not in options[:3]:
                raise Refused("A2", "Installs packages into an environment (venv)")
        else:
            check_change(context, argument)
    return "L2"


def check_given(context: Context, arguments: list[str]) -> None:
    """Arguments of project code: no secrets, nothing outside, no addresses."""
    check_strings(context, arguments, writes=False)
    check_values(context, arguments)


def _pip(context: Context, arguments: list[str]) -> str:
    return allowing_rule(context, [Argument("pip"), *map(Argument, arguments)])


_MODULES: dict[str, Callable[[Context, list[str]], str]] = {
    "http.server": _serve,
    "venv": _environment,
    "pip": _pip,
    "timeit": _timed,
    **{module: _library(module) for module in _SAFE_LIBRARY},
}
