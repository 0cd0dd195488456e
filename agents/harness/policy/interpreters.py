"""Judges Python, Node and other interpreters: program text, scripts, and what they are given."""

import re
from collections.abc import Callable
from dataclasses import replace

from agents.harness.policy.context import Context
from agents.harness.policy.listed import check_listed
from agents.harness.policy.programs import allowing_rule
from agents.harness.policy.programs_paths import Refused, check_folder
from agents.harness.policy.python_code import check_python
from agents.harness.policy.python_modules import check_given, check_module
from agents.harness.policy.ruby_php_code import (
    check_input_files,
    check_php_text,
    check_ruby_text,
    options_and_text,
)
from agents.harness.policy.script_code import check_node, check_perl
from agents.harness.policy.simple import Argument
from agents.harness.policy.values import UNKNOWN, Kind, State
from agents.harness.policy.walk import Run, Walker

_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")
_NODE = frozenset({"node", "nodejs"})
_PYTHON_FLAGS = frozenset(
    {"-B", "-u", "-q", "-I", "-s", "-E", "-S", "-O", "-OO", "-b", "-bb", "-v"}
)
_VALUE_FLAGS = re.compile(
    r"-W(?:error|ignore|default|always|module|once|all|[edaimo])?|-X(?:dev|utf8)?"
)
_DATABASE_COMMANDS = frozenset(
    ["test", "check", "makemigrations", "migrate", "showmigrations", "sqlmigrate", "runserver",
     "collectstatic", "compilemessages", "makemessages", "show_urls", "inspectdb", "diffsettings",
     "version", "help", "--help", "--version", "findstatic"]
)  # fmt: skip
_TELLS = frozenset(
    {"--version", "--name", "--fullname", "--description", "--help", "--classifiers", "check"}
)
_PUBLISHING = re.compile(r"deploy|publish|release|upload|install|push", re.IGNORECASE)


def takes(name: str) -> bool:
    """Whether this module judges a program of this name."""
    return _PYTHON.fullmatch(name) is not None or name in _NODE or name in ("perl", "ruby", "php")


def check(walker: Walker, name: str, run: Run) -> str:
    """The rule that allows it. Raises Refused."""
    if any(one.kind in (Kind.FOUND, Kind.TEXT) for one in run.fields[1:]):
        raise Refused("A9", f"`{name}` gets something that is not known")
    for at, one in enumerate(run.fields):
        if one.kind is Kind.LISTED and "-m" not in [f.text for f in run.fields]:
            check_listed(name, run.fields, at)
    first = next((one for one in run.fields[1:] if not one.text.startswith("-")), None)
    if first is not None and first.kind is Kind.LISTED and "-m" not in [f.text for f in run.fields]:
        raise Refused("C2", f"Runs scripts whose names are not known ({name})")
    rules = []
    for folder in run.state.folders:
        here = replace(walker.context, cwd=folder)
        arguments = [Argument(one.text, one.glob) for one in run.fields[1:]]
        texts = [one.text for one in arguments if not one.glob]
        if len(texts) < len(arguments):
            texts = [one.text for one in arguments]
        rules.append(_LANGUAGES[_language(name)](walker, here, texts, run))
        check_folder(here, rules[-1])
    return rules[0]


def check_text(walker: Walker, name: str, text: str, state: State) -> str:
    """A script in this language, by its content."""
    for folder in state.folders:
        _text(replace(walker.context, cwd=folder), _language(name), text, [], inline=False)
    return "L3"


def _language(name: str) -> str:
    return "python" if _PYTHON.fullmatch(name) else "node" if name in _NODE else name


def _text(
    context: Context, language: str, text: str, arguments: list[str], *, inline: bool = True
) -> str:
    if language == "python":
        return check_python(context, text, arguments, inline=inline)
    if language == "node":
        return check_node(context, text, arguments)
    if language == "ruby":
        return check_ruby_text(context, text, arguments)
    if language == "php":
        return check_php_text(context, text.removeprefix("<?php"), arguments)
    raise Refused("A8", f"Runs {language} text that was not looked at")


def _python(walker: Walker, context: Context, texts: list[str], run: Run) -> str:
    rest = list(texts)
    while rest and (rest[0] in _PYTHON_FLAGS or _VALUE_FLAGS.fullmatch(rest[0])):
        if rest.pop(0) in ("-W", "-X") and (
            not rest or not re.fullmatch(r"error|ignore|default|dev|utf8|importtime", rest.pop(0))
        ):
            raise Refused("A8", "Runs Python with an option that is not known")
    if rest in (["--version"], ["-V"], ["-VV"]):
        return "L1"
    if rest[:1] == ["-c"] and len(rest) > 1:
        return check_python(context, rest[1], rest[2:])
    if rest[:1] == ["-m"] and len(rest) > 1:
        return check_module(
            context,
            rest[1],
            rest[2:],
            lambda given: _file(walker, context, "python", given, run),
        )
    if not rest or rest[0] == "-":
        return _from_stdin(context, "python", rest[1:], run)
    return _file(walker, context, "python", rest, run)


def _from_stdin(context: Context, language: str, arguments: list[str], run: Run) -> str:
    stdin = run.state.stdin or UNKNOWN
    if stdin.kind is not Kind.KNOWN:
        raise Refused("A8", f"Runs {language} text that is not known beforehand")
    return _text(context, language, stdin.text, arguments)


def _file(walker: Walker, context: Context, language: str, rest: list[str], run: Run) -> str:
    """A file of the project. What can be read of it is looked at (rule C2)."""
    path, arguments = rest[0], rest[1:]
    if path.startswith("-"):
        raise Refused("A8", f"`{language} {path}` is an option that is not known")
    if language == "node" and path in ("inspect", "debug"):
        raise Refused("A8", "Starts the debugger, which runs what it is told")
    _check_script(walker, context, language, path)
    name = path.rpartition("/")[2]
    if name == "manage.py":
        if not arguments or arguments[0] not in _DATABASE_COMMANDS:
            raise Refused("A11", f"`manage.py {' '.join(arguments[:1])}` may change data")
        if arguments[0] == "runserver":
            _check_loopback(arguments[1:])
            return "L7"
        if any(a in ("--fake", "--settings", "--pythonpath") for a in arguments[1:]):
            raise Refused("A8", "`manage.py` with an option that changes what it runs")
    elif (name == "setup.py" and not _TELLS.issuperset(arguments or ["x"])) or _PUBLISHING.search(
        name
    ):
        raise Refused("A11", f"The script {name} may publish or install something")
    check_given(context, arguments)
    return "L3"


def _check_script(walker: Walker, context: Context, language: str, path: str) -> None:
    state = State(frozenset({context.cwd or str(context.workspace)}))
    try:
        text = walker.script_text(path, state)
    except Refused as refused:
        from agents.harness.policy import files

        place = files.real(context, path)
        missing = context.files.read(place) is None and place not in walker.written
        if refused.rule == "C2" and missing and files.is_inside(context, place):
            return  # it does not exist, or it is a module of the project
        raise
    if path.rpartition("/")[2] != "manage.py":
        _text(context, language, text, [], inline=False)


def _check_loopback(arguments: list[str]) -> None:
    for argument in arguments:
        host = argument.rpartition(":")[0]
        if argument.startswith("--"):
            if argument not in ("--noreload", "--nothreading", "--insecure", "--nostatic"):
                raise Refused("A8", f"`runserver {argument}` is not known")
        elif host not in ("", "127.0.0.1", "localhost", "[::1]", "0.0.0.0"):  # noqa: S104
            raise Refused("A1", "Serves to other machines")


def _node(walker: Walker, context: Context, texts: list[str], run: Run) -> str:
    files = texts[1:]
    if texts[:1] in (["--check"], ["-c"]) and files and not any(t.startswith("-") for t in files):
        # Only parses, so what the files would do does not count.
        check_input_files(context, files)
        return "L3"
    rest = list(texts)
    while rest and re.fullmatch(
        r"--no-warnings|--trace-warnings"
        r"|--experimental-(?:vm-modules|json-modules|strip-types|test-coverage)|--input-type=(?:module|commonjs)"
        r"|--trace-\w+|--enable-source-maps|--max-old-space-size=\d+|--check|-c",
        rest[0],
    ):
        rest.pop(0)
    if rest in (["--version"], ["-v"]):
        return "L1"
    if rest[:1] in (["-e"], ["-p"], ["--eval"], ["--print"], ["-pe"]) and len(rest) > 1:
        if rest[2:3] != ["--"] and rest[2:3] and rest[2].startswith("-"):
            raise Refused(
                "A8", f"`node {rest[2]}` may run other text instead"
            )  # the last one counts
        return check_node(context, rest[1], rest[2:])
    if rest[:1] == ["--test"]:
        return allowing_rule(context, [Argument("node"), *map(Argument, rest)])
    if not rest or rest[0] == "-":
        return _from_stdin(context, "node", rest[1:], run)
    return _file(walker, context, "node", rest, run)


def _perl(_walker: Walker, context: Context, texts: list[str], _run: Run) -> str:
    return check_perl(context, texts)


def _ruby_or_php(language: str) -> Callable[[Walker, Context, list[str], Run], str]:
    def check(walker: Walker, context: Context, texts: list[str], run: Run) -> str:
        if texts in (["-v"], ["--version"], ["-m"], ["-i"]):
            return "L1"
        if texts[:1] in (["-c"], ["-l"], ["-wc"]) and len(texts) > 1:  # only parses
            check_input_files(context, texts[1:])
            return "L3"
        text, rest = options_and_text(context, language, texts)
        if text is not None:
            check_input_files(context, rest)
            return _text(context, language, text, [])
        if rest in ([], ["-"]):
            return _from_stdin(context, language, rest[1:], run)
        if language == "php" and rest[0].rpartition("/")[2] in ("artisan", "console"):
            raise Refused("A11", f"`{' '.join(rest[:2])}` may change data")
        return _file(walker, context, language, rest, run)

    return check


_LANGUAGES: dict[str, Callable[[Walker, Context, list[str], Run], str]] = {
    "python": _python,
    "node": _node,
    "perl": _perl,
    "ruby": _ruby_or_php("ruby"),
    "php": _ruby_or_php("php"),
}
