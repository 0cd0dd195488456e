"""Programs that run what a project has named: npm scripts, make targets, tox (rule L3)."""

import re
from collections.abc import Callable

from agents.harness.policy import programs_build, programs_test
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused, check_values

_PUBLISHING = re.compile(r"deploy|publish|release|upload|install|push", re.IGNORECASE)
_NAME = re.compile(r"\w[\w.:-]*")
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
        "biome",
        "vue-tsc",
        "svelte-check",
    ]
)
# Names of scripts that are no commands of yarn and pnpm themselves.
_USUAL_SCRIPTS = re.compile(
    r"(?:lint|build|test|format|type-?check|types|check|dev|start|serve|e2e|unit|coverage|docs|storybook|clean|tsc"
    r"|prettier|eslint|jest|vitest|ci|validate|verify)(?:[:_.-]\w+)*"
)
_NPM_FLAGS = frozenset(
    ["-s", "--silent", "--if-present", "-r", "--recursive", "--workspaces", "-ws", "--no-bail",
     "--parallel", "--stream", "--no-color", "--color"]
)  # fmt: skip
_NPM_VALUES = frozenset({"-w", "--workspace", "--filter", "-F", "--prefix", "-C", "--dir", "--cwd"})
_NPM_FOLDERS = frozenset({"--prefix", "-C", "--dir", "--cwd"})
_NPM_LISTS = re.compile(
    r"--depth=?\d*|\d+|--all|-a|--json|--long|--parseable|--prod|--dev|[\w@/.-]+"
)
_MAKE_FLAGS = re.compile(
    r"-[jkswniBqRrS]+|-[jl]\d+|-O\w*|--(?:silent|quiet|dry-run|just-print|keep-going|always-make|no-print-directory"
    r"|print-directory|ignore-errors|question|output-sync(?:=\w+)?|jobs(?:=\d+)?|no-builtin-rules|warn-undefined-variables)"
)
# `V=1`: what a recipe can only compare, whatever the name is.
_MAKE_SWITCH = re.compile(
    r"(?:CC|CXX)=(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+)(?:-\d+)?|(?!SHELL|MAKE|CC=|CXX=)[A-Za-z_]\w*=(?:\d*|y|n|yes|no|on|off|true|false|debug|release|test|dev|ci|all)",
    re.IGNORECASE,
)
_TOX_FLAGS = frozenset(
    ["-e", "run", "r", "-q", "-v", "-vv", "-s", "-l", "--list", "-p", "auto", "--parallel", "-r", "--recreate", "-x",
     "--session", "--sessions", "--no-install", "run-parallel", "--skip-missing-interpreters"]
)  # fmt: skip


def check_pnpm(context: Context, arguments: list[str]) -> str:
    """pnpm and yarn run with `exec` what is installed, and take no option behind its name for themselves."""
    if arguments[:1] != ["exec"]:
        return check_npm(context, arguments)
    words = [word for word in arguments[1:] if word != "--"]
    if not words or words[0] not in _NPX_TOOLS:
        raise Refused("A9", "this tool is not among those that run without asking")
    return check_npx(context, words)


def check_npm(context: Context, arguments: list[str]) -> str:
    """npm, pnpm, yarn and bun: `L3` for scripts of the project, `L1` for lists."""
    before = arguments[: arguments.index("--")] if "--" in arguments else list(arguments)
    words = _npm_words(context, before)
    if words[:1] in (["ls"], ["list"], ["why"], ["outdated-none"]) or words[:2] == ["pkg", "get"]:
        if not all(_NPM_LISTS.fullmatch(word) for word in words[1:]):
            raise Refused("A9", "this option is not known")
        return "L1"
    name, rest = _script(words)
    if _PUBLISHING.search(name):
        raise Refused("A11", f"The script `{name}` may publish something")
    # yarn and bun pass on what follows; npm takes it for options of its own.
    if any(word.startswith("-") and not _is_plain_option(word) for word in rest):
        raise Refused("A8", "this option may change what the script runs")
    check_values(context, [*rest, *arguments[len(before) + 1 :]])
    return "L3"


def _is_plain_option(word: str) -> bool:
    return (
        re.fullmatch(
            r"--(?:fix|watch=false|watchAll=false|watch-all=false|no-watch|passWithNoTests|ci"
            r"|coverage|run|runInBand|verbose|quiet|check|bail|silent)",
            word,
        )
        is not None
    )


def _npm_words(context: Context, arguments: list[str]) -> list[str]:
    """The words without the options that only choose a package."""
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        key, equals, value = word.partition("=")
        if word in _NPM_FLAGS:
            continue
        if key in _NPM_VALUES and (equals or rest) and word.startswith("-"):
            value = value if equals else rest.pop(0)
            if key in _NPM_FOLDERS:
                check_values(context, [value])
            elif not re.fullmatch(r"[\w@/.*{}^!-]+", value) or ".." in value:
                raise Refused("A8", f"`{word}` with an unusual value is not known")
            continue
        words.append(word)
    return words


def _script(words: list[str]) -> tuple[str, list[str]]:
    """The name of the script, and what follows it. Raises Refused if no script is named."""
    if words[:1] in (["test"], ["t"], ["tst"]):
        return "test", words[1:]
    if words[:1] in (["run"], ["run-script"]) and len(words) > 1 and _NAME.fullmatch(words[1]):
        return words[1], words[2:]
    if words[:1] == ["workspace"] and len(words) > 2 and _USUAL_SCRIPTS.fullmatch(words[2]):  # noqa: PLR2004
        return words[2], words[3:]
    if (
        words[:1]
        and _USUAL_SCRIPTS.fullmatch(words[0])
        and words[0] not in ("ci", "start", "docs", "check")
    ):
        return words[0], words[1:]
    raise Refused("A2", "only running the project's own scripts is known of this program")


def _only_tool_follows(words: list[str]) -> bool:
    """Whether no option is left that npm would take for itself, such as `--package`."""
    return words[:1] == ["--"] or not any(word.startswith("-") for word in words)


def check_npm_itself(context: Context, arguments: list[str]) -> str:
    """npm takes no script without `run`, but for `test` and `start`."""
    if arguments[:1] == ["exec"] and _only_tool_follows(arguments[1:]):
        return check_npx(context, arguments[1:])
    words = _npm_words(context, list(arguments))
    if words[:1] and words[0] not in (
        "test",
        "t",
        "tst",
        "run",
        "run-script",
        "ls",
        "list",
        "why",
        "pkg",
    ):
        raise Refused("A2", "only running the project's own scripts is known of this program")
    return check_npm(context, arguments)


def check_bun(context: Context, arguments: list[str]) -> str:
    """bun also runs files, so a script has to have a plain name."""
    if any(re.search(r"\.\w|/", word) for word in arguments[:2]) and arguments[:1] != ["test"]:
        raise Refused("A8", "Runs a file that was not looked at (bun)")
    return check_npm(context, arguments)


def check_npx(context: Context, arguments: list[str]) -> str:
    """`L3` for well-known tools, which are not fetched."""
    rest = list(arguments)
    while rest and rest[0] in ("--no-install", "--no", "--offline", "--"):
        rest.pop(0)
    if not rest or rest[0] not in _NPX_TOOLS:
        raise Refused("A2", "May install and run a package from the internet (npx)")
    check = programs_test.CHECKS.get(rest[0]) or programs_build.CHECKS[rest[0]]
    return check(context, rest[1:])


def check_make(context: Context, arguments: list[str]) -> str:
    """`L3` for targets that do not publish."""
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "-C" and rest:
            check_values(context, [rest.pop(0)])
        elif word in ("-j", "-l") and rest and rest[0].isdigit():
            rest.pop(0)
        elif _MAKE_FLAGS.fullmatch(word) or _MAKE_SWITCH.fullmatch(word):
            continue
        elif word.startswith("-") or _NAME.fullmatch(word.replace("/", "_")) is None:
            raise Refused("A8", f"`make {word}` may change what is run")
        elif _PUBLISHING.search(word):
            raise Refused("A11", f"The target `{word}` may publish or install something")
        check_values(context, [word])
    return "L3"


def check_tox(context: Context, arguments: list[str]) -> str:
    """`L3` for environments that do not publish; what is behind `--` goes to the test runner."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    before, given = arguments[:at], arguments[at + 1 :]
    if any(
        a not in _TOX_FLAGS and (a.startswith("-") or not re.fullmatch(r"[\w,.-]+", a))
        for a in before
    ):
        raise Refused("A8", "this option may change what is run")
    if any(_PUBLISHING.search(argument) for argument in before if argument != "--no-install"):
        raise Refused("A11", "This environment may publish or install something")
    if {"exec", "devenv", "e", "d"} & set(before):
        raise Refused("A8", "starts a program that is not known")
    if any(
        re.match(r"-[cop](?!no:)|--(?:rootdir|confcutdir|override-ini|basetemp|pastebin)", a)
        for a in given
    ):
        raise Refused("A8", "this option may change what is run")
    check_values(context, given)
    return "L3"


CHECKS: dict[str, Callable[[Context, list[str]], str]] = {
    "npm": check_npm_itself,
    "pnpm": check_pnpm,
    "yarn": check_pnpm,
    "bun": check_bun,
    "npx": check_npx,
    "make": check_make,
    "tox": check_tox,
    "nox": check_tox,
}
