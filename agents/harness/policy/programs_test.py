"""Programs that test, check and build (rule L3), with the options that are known to be harmless.

They run the project's own code, in the sandbox. What they may not do without a question: take
their settings or their code from outside, start other programs, install something, or write to
protected files.
"""

import re
from collections.abc import Callable, Sequence

from agents.harness.policy import programs_build
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused, check_read, check_values

_PUBLISHING = re.compile(r"deploy|publish|release|upload|install|push", re.IGNORECASE)
_NAME = re.compile(r"[\w.:-]+")

# Options of a program that ask; a long one in every abbreviation. The rest is checked for paths.
_DANGEROUS: dict[str, tuple[str, ...]] = {
    "pytest": ("--basetemp", "--pastebin", "--pdbcls", "--rootdir", "--confcutdir", "--debug",
               "--override-ini", "--config-file", "--inifile"),
    "unittest": (),
    "mypy": ("--install-types", "--python-executable", "--non-interactive"),
    "ruff": ("--config", "--add-noqa", "--watch"),
    "black": ("--code",),
    "flake8": ("--config", "--append-config", "--bug-report"),
    "pylint": ("--init-hook", "--rcfile", "--load-plugins"),
    "isort": ("--settings-path",),
    "coverage": ("--rcfile",),
    "tsc": ("--watch",),
    "eslint": ("--resolve-plugins-relative-to", "--rulesdir", "--plugin", "--parser"),
    "prettier": ("--plugin",),
    "jest": ("--watch", "--watchAll"),
    "vitest": ("--watch", "--ui", "--api"),
    "mocha": ("--watch",),
    "stylelint": ("--custom-syntax",),
    "go": ("-exec", "-toolexec", "-vettool", "-overlay", "-modfile", "-ldflags", "-gcflags",
           "-gccgoflags", "-asmflags", "-compiler", "-C", "-mod", "-pkgdir"),
    "cargo": ("--config", "-Z", "--manifest-path", "-C"),
    "shellcheck": ("--rcfile", "--source-path"),
}  # fmt: skip
PYTHON_MODULES = frozenset(
    [
        "pytest",
        "unittest",
        "py_compile",
        "compileall",
        "mypy",
        "ruff",
        "black",
        "flake8",
        "pylint",
        "isort",
        "coverage",
    ]
)
_NPX_TOOLS = frozenset(
    [
        "tsc",
        "eslint",
        "prettier",
        "jest",
        "vitest",
        "mocha",
        "stylelint",
        "playwright",
        "vite",
        "webpack",
    ]
)


def _refuse_dangerous(name: str, arguments: Sequence[str]) -> None:
    shortest = 3
    for argument in arguments:
        head = argument.partition("=")[0]
        for word in _DANGEROUS[name]:
            if word.startswith("--"):
                bad = len(head) >= shortest and head.startswith("--") and word.startswith(head)
            else:  # go takes -exec and --exec; a glued value counts as well
                bad = head.lstrip("-") == word.lstrip("-") and head.startswith("-")
                bad = bad or (len(word) == 2 and head.startswith(word))  # noqa: PLR2004
            if bad:
                raise Refused("A8", f"`{name} {argument}` may run other programs or code")


def _tool(name: str) -> Callable[[Context, list[str]], str]:
    def check(context: Context, arguments: list[str]) -> str:
        _refuse_dangerous(name, arguments)
        check_values(context, arguments)
        return "L3"

    return check


def _check_pytest(context: Context, arguments: list[str]) -> str:
    rest = list(arguments)
    for option in ("-k", "-m", "-n", "-W"):  # their values are no paths
        while option in rest[:-1]:
            at = rest.index(option)
            del rest[at : at + 2]
    while "-p" in rest[:-1] and rest[rest.index("-p") + 1].startswith("no:"):
        at = rest.index("-p")
        del rest[at : at + 2]
    for argument in rest:
        if argument.startswith(("-c", "-o", "-p")) and not argument.startswith("--"):
            raise Refused("A8", f"`pytest {argument}` changes where its settings or code come from")
    return _tool("pytest")(context, rest)


def _check_ruff(context: Context, arguments: list[str]) -> str:
    if arguments[:1] not in (["check"], ["format"], ["--version"], ["version"]):
        raise Refused("A9", "only `ruff check` and `ruff format` are known")
    return _tool("ruff")(context, arguments[1:])


def _check_coverage(context: Context, arguments: list[str]) -> str:
    if arguments[:1] == ["run"]:
        if arguments[1:2] != ["-m"] or arguments[2:3] not in (["pytest"], ["unittest"]):
            raise Refused("A8", "`coverage run` starts a program that is not known")
        return CHECKS[arguments[2]](context, arguments[3:])
    if arguments[:1] not in (["report"], ["html"], ["xml"], ["json"], ["combine"]):
        raise Refused("A9", "this `coverage` command is not known")
    return _tool("coverage")(context, arguments[1:])


def _check_python(context: Context, arguments: list[str]) -> str:
    rest = list(arguments)
    while rest and rest[0] in ("-B", "-u", "-q", "-I", "-s", "-E"):
        rest.pop(0)
    if rest in (["--version"], ["-V"], ["-VV"]):
        return "L1"
    if rest[:1] == ["-m"] and len(rest) > 1 and rest[1] in PYTHON_MODULES:
        return CHECKS[rest[1]](context, rest[2:])
    raise Refused("A8", "Runs Python code that was not looked at")


def check_test_module(context: Context, module: str, arguments: list[str]) -> str:
    """`python -m` with one of PYTHON_MODULES."""
    return CHECKS[module](context, arguments)


def _check_npm(context: Context, arguments: list[str]) -> str:
    rest = list(arguments)
    while rest and rest[0] in ("-s", "--silent"):
        rest.pop(0)
    if rest[:1] in (["test"], ["t"]):
        rest = rest[1:]
    elif rest[:1] in (["run"], ["run-script"]) and len(rest) > 1 and _NAME.fullmatch(rest[1]):
        if _PUBLISHING.search(rest[1]):
            raise Refused("A11", f"The script `{rest[1]}` may publish something")
        rest = rest[2:]
    elif rest in (["--version"], ["-v"]) or rest[:1] in (["ls"], ["list"]):
        if any(not re.fullmatch(r"--depth=\d+|--all|-a|[\w@/.-]+", word) for word in rest[1:]):
            raise Refused("A9", "this option is not known")
        return "L1"
    else:
        raise Refused("A2", "only running the project's own scripts is known of this program")
    before = rest[: rest.index("--")] if "--" in rest else rest
    if any(option not in ("-s", "--silent", "--if-present") for option in before):
        raise Refused("A8", "this option may change what the script runs")
    check_values(context, rest)
    return "L3"


def _check_npx(context: Context, arguments: list[str]) -> str:
    if not arguments or arguments[0] not in _NPX_TOOLS:
        raise Refused("A2", "May install and run a package from the internet (npx)")
    check = CHECKS.get(arguments[0]) or programs_build.CHECKS[arguments[0]]
    return check(context, arguments[1:])


def _check_node(context: Context, arguments: list[str]) -> str:
    if arguments in (["--version"], ["-v"]):
        return "L1"
    if arguments[:1] == ["--test"] and not any(a.startswith("-") for a in arguments[1:]):
        check_values(context, arguments[1:])
        return "L3"
    raise Refused("A8", "Runs JavaScript code that was not looked at")


def _check_go(context: Context, arguments: list[str]) -> str:
    if arguments == ["version"]:
        return "L1"
    if arguments[:1] == ["run"] and any(
        "@" in a or re.match(r"[\w-]+\.\w+/", a) for a in arguments[1:]
    ):
        raise Refused("A2", "runs a package from the internet (go run)")
    if arguments[:1] not in (["test"], ["build"], ["vet"], ["fmt"], ["run"], ["list"]):
        raise Refused("A2", "only `go test`, `build`, `run`, `vet`, `list` and `fmt` are known")
    return _tool("go")(context, arguments[1:])


def _check_cargo(context: Context, arguments: list[str]) -> str:
    if arguments == ["--version"]:
        return "L1"
    if arguments[:1] not in (["test"], ["build"], ["check"], ["clippy"], ["fmt"], ["run"]):
        raise Refused(
            "A2", "only `cargo test`, `build`, `check`, `clippy`, `run` and `fmt` are known"
        )
    return _tool("cargo")(context, arguments[1:])


def _check_make(context: Context, arguments: list[str]) -> str:
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "-C" and rest:
            check_values(context, [rest.pop(0)])
        elif word == "-j" and rest and rest[0].isdigit():
            rest.pop(0)
        elif word in ("-j", "-k", "-s", "-n", "--silent", "--dry-run") or re.fullmatch(
            r"-j\d+", word
        ):
            continue
        elif word.startswith("-") or _NAME.fullmatch(word) is None:
            raise Refused("A8", f"`make {word}` may change what is run")
        elif _PUBLISHING.search(word):
            raise Refused("A11", f"The target `{word}` may publish or install something")
    return "L3"


def _check_tox(_context: Context, arguments: list[str]) -> str:
    allowed = ("-e", "run", "-q", "-v", "-s", "-l", "--list")
    if any(a not in allowed and (a.startswith("-") or not re.fullmatch(r"[\w,.-]+", a))
           for a in arguments):  # fmt: skip
        raise Refused("A8", "this option may change what is run")
    if any(_PUBLISHING.search(argument) for argument in arguments):
        raise Refused("A11", "This environment may publish or install something")
    if {"exec", "devenv", "e", "d"} & set(arguments):
        raise Refused("A8", "starts a program that is not known")
    return "L3"


def _check_bash(context: Context, arguments: list[str]) -> str:
    if arguments[:1] != ["-n"] or any(a.startswith("-") for a in arguments[1:]):
        raise Refused("A9", "Runs a script or a command line in another shell")
    for argument in arguments[1:]:
        check_read(context, argument)
    return "L3"


def _check_pip(_context: Context, arguments: list[str]) -> str:
    if arguments[:1] not in (["list"], ["show"], ["freeze"], ["check"], ["--version"]) or any(
        a.startswith("-") for a in arguments[1:]
    ):
        raise Refused("A2", "May install or remove packages (pip)")
    return "L3"


def _checked_files(context: Context, arguments: list[str]) -> str:
    if any(argument.startswith("-") for argument in arguments):
        raise Refused("A8", "this option is not known")
    check_values(context, arguments)
    return "L3"


CHECKS: dict[str, Callable[[Context, list[str]], str]] = {
    **{name: _tool(name) for name in _DANGEROUS},
    "pytest": _check_pytest,
    "py.test": _check_pytest,
    "py_compile": _checked_files,
    "compileall": _checked_files,
    "ruff": _check_ruff,
    "coverage": _check_coverage,
    "python": _check_python,
    "python3": _check_python,
    "npm": _check_npm,
    "pnpm": _check_npm,
    "yarn": _check_npm,
    "npx": _check_npx,
    "node": _check_node,
    "go": _check_go,
    "cargo": _check_cargo,
    "make": _check_make,
    "tox": _check_tox,
    "nox": _check_tox,
    "bash": _check_bash,
    "sh": _check_bash,
    "pip": _check_pip,
    "pip3": _check_pip,
}
