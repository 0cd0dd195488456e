"""Programs that test, check and build (rule L3), with the options that are known to be harmless.

They run the project's own code, in the sandbox. What they may not do without a question: take
their settings or their code from outside, start other programs, install something, or write to
protected files.
"""

import re
from collections.abc import Callable, Sequence

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
    "pyright": ("--watch", "--venvpath", "--typeshedpath", "--pythonpath"),
    "bandit": (),
    "vulture": (),
    "djlint": (),
    "pydocstyle": (),
    "pycodestyle": (),
    "pyflakes": (),
    "radon": (),
    "codespell": (),
    "gofmt": (),
    "goimports": (),
    "golangci-lint": ("--modules-download-mode",),
    "staticcheck": (),
    "rustfmt": ("--config", "--config-path"),
    "clang-format": ("--files",),
    "clang-tidy": ("-load", "--load", "--config-file", "--vfsoverlay", "--extra-arg", "--plugins"),
    "cppcheck": ("--addon", "--addon-python", "--library", "--rule-file", "--config-excludes-file"),
    "shfmt": (),
    "rubocop": ("--require", "-r", "--server", "--init-from", "--plugin"),
    "phpstan": ("--autoload-file", "-a"),
    "hadolint": (),
    "yamllint": (),
    "markdownlint": ("--rules", "-r"),
    "ktlint": ("--ruleset", "-R"),
    "djhtml": (),
    "buf": (),
    "biome": (),
    "oxlint": (),
    "svelte-check": ("--watch",),
    "vue-tsc": ("--watch",),
    "dos2unix": (),
    "unix2dos": (),
    "ranlib": ("--plugin",),
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


_VERBS = {
    "golangci-lint": ("run", "fmt", "linters", "version"),
    "buf": ("lint", "build", "format", "breaking"),
    "biome": ("check", "lint", "format", "ci"),
}


def tool(name: str) -> Callable[[Context, list[str]], str]:
    """The check of a program that only has options that are dangerous."""

    def check(context: Context, arguments: list[str]) -> str:
        _refuse_dangerous(name, arguments)
        if any(argument.startswith("@") for argument in arguments):
            raise Refused("A8", f"`{name}` takes options from a file")
        if name in _VERBS and not set(_VERBS[name]).issuperset(arguments[:1]):
            raise Refused("A9", f"`{name} {''.join(arguments[:1])}` is not known")
        check_values(context, arguments)
        return "L3"

    return check


def _check_pytest(context: Context, arguments: list[str]) -> str:
    rest = [one for one in arguments if one != "--co"]  # the short name of --collect-only
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
    return tool("pytest")(context, rest)


def _check_ruff(context: Context, arguments: list[str]) -> str:
    if arguments[:1] not in (["check"], ["format"], ["--version"], ["version"]):
        raise Refused("A9", "only `ruff check` and `ruff format` are known")
    return tool("ruff")(context, arguments[1:])


def _check_coverage(context: Context, arguments: list[str]) -> str:
    if arguments[:1] == ["run"]:
        plain = ("--branch", "-a", "--append", "-p", "--parallel-mode")
        arguments = [
            "run",
            *(
                a
                for at, a in enumerate(arguments[1:])
                if a not in plain or "-m" in arguments[: at + 1]
            ),
        ]
        if arguments[1:2] != ["-m"] or arguments[2:3] not in (["pytest"], ["unittest"]):
            raise Refused("A8", "`coverage run` starts a program that is not known")
        return CHECKS[arguments[2]](context, arguments[3:])
    if arguments[:1] not in (["report"], ["html"], ["xml"], ["json"], ["combine"]):
        raise Refused("A9", "this `coverage` command is not known")
    return tool("coverage")(context, arguments[1:])


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


def _check_node(context: Context, arguments: list[str]) -> str:
    if arguments in (["--version"], ["-v"]):
        return "L1"
    if arguments[:1] == ["--test"] and not any(a.startswith("-") for a in arguments[1:]):
        check_values(context, arguments[1:])
        return "L3"
    raise Refused("A8", "Runs JavaScript code that was not looked at")


def _check_bash(context: Context, arguments: list[str]) -> str:
    if arguments[:1] != ["-n"] or any(a.startswith("-") for a in arguments[1:]):
        raise Refused("A9", "Runs a script or a command line in another shell")
    for argument in arguments[1:]:
        check_read(context, argument)
    return "L3"


def _check_pip(_context: Context, arguments: list[str]) -> str:
    if arguments[:1] not in (["list"], ["show"], ["freeze"], ["check"], ["--version"]) or any(
        a.startswith("-")
        and a not in ("-f", "--files", "-v", "--verbose", "--format=json", "--local", "--user")
        for a in arguments[1:]
    ):
        raise Refused("A2", "May install or remove packages (pip)")
    return "L3"


def _checked_files(context: Context, arguments: list[str]) -> str:
    if any(re.fullmatch(r"-(?!q|f|b|j\d+$).*", argument) for argument in arguments):
        raise Refused("A8", "this option is not known")
    check_values(context, [argument for argument in arguments if not argument.startswith("-")])
    return "L3"


CHECKS: dict[str, Callable[[Context, list[str]], str]] = {
    **{name: tool(name) for name in _DANGEROUS},
    "pytest": _check_pytest,
    "py.test": _check_pytest,
    "py_compile": _checked_files,
    "compileall": _checked_files,
    "ruff": _check_ruff,
    "coverage": _check_coverage,
    "python": _check_python,
    "python3": _check_python,
    "node": _check_node,
    "bash": _check_bash,
    "sh": _check_bash,
    "pip": _check_pip,
    "pip3": _check_pip,
}
