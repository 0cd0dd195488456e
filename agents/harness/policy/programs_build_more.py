"""More compilers, build tools and test runners (rule L3), for the languages beside the usual ones."""

import re
from collections.abc import Callable

from agents.harness.policy.context import Context
from agents.harness.policy.programs_build import Tool, tool_check
from agents.harness.policy.programs_paths import Refused, check_change, check_read, check_values

_Check = Callable[[Context, list[str]], str]
_PUBLISHING = re.compile(r"deploy|publish|release|upload|install|push", re.IGNORECASE)
_SCRIPT = re.compile(
    r"(?:test|tests|lint|check|format|fmt|type-?check|types|cs|cs-fix|phpstan|phpcs|psalm|pest|cov|docs)(?:[:_.-]\w+)*"
)

_TOOLS: dict[str, Tool] = {
    "swift": Tool(r"-c|--configuration|-v|--filter|--parallel|--skip-build|--enable-code-coverage|--product|--target",
                  frozenset(["build", "test"]), needs_verb=True),
    "zig": Tool(r"-O\w+|-D[\w.]+(?:=\w+)?|--summary|--verbose|--check",
                frozenset(["build", "test", "fmt", "ast-check"]), needs_verb=True),
    "stack": Tool(r"--fast|--test|--no-run-tests|--pedantic|--coverage", frozenset(["build", "test", "bench"]),
                  needs_verb=True),
    "cabal": Tool(r"--enable-tests|--enable-coverage|-v\d|-j\d*|--test-show-details=\w+",
                  frozenset(["build", "test", "check", "bench"]), needs_verb=True),
    "dart": Tool(r"--fatal-infos|--fatal-warnings|--set-exit-if-changed|--output=none|-r|--reporter(?:=\w+)?|--no-color"
                 r"|-n|--name|--coverage(?:=[\w/]+)?", frozenset(["analyze", "test", "format"]), needs_verb=True),
    "flutter": Tool(r"--coverage|--no-pub|--reporter|-r|--name|--plain-name|--fatal-infos",
                    frozenset(["analyze", "test"]), needs_verb=True),
    "deno": Tool(r"--allow-(?:read|env)(?:=[\w./,-]+)?|-A|--allow-all|--no-check|--check|--coverage(?:=[\w/]+)?"
                 r"|--parallel|--quiet|-q|--fail-fast|--filter|--frozen|--cached-only|--no-lock",
                 frozenset(["test", "lint", "fmt", "check", "bench"]), needs_verb=True),
    "prove": Tool(r"-[lbvrqs]+|-j\d+|--lib|--verbose|--recurse|--timer|--color", free_verbs=True),
    "rails": Tool(r"-v|-n|--name|--seed|-f|--fail-fast|-b", frozenset(["test", "test:all", "test:system", "routes",
                  "zeitwerk:check", "stats", "notes"]), needs_verb=True),
    "sphinx-build": Tool(r"-b|-[EaqnWTvM]|-j|--keep-going|-d", free_verbs=True),
    "mkdocs": Tool(r"--strict|-s|--clean|-q|--quiet|-d|--site-dir", frozenset(["build"]), needs_verb=True),
    "protoc": Tool(r"-I\S*|--proto_path(?:=\S+)?|--(?:python|java|cpp|csharp|ruby|php|objc|kotlin|pyi)_out(?:=\S+)?"
                   r"|--(?:go|go-grpc|grpc_python|js|ts)_(?:out|opt)(?:=\S+)?|--descriptor_set_out(?:=\S+)?"
                   r"|--include_imports", free_verbs=True),
    "dot": Tool(r"-T\w+|-o\S*|-K\w+|-[GNE][\w=.]+|-O", free_verbs=True),
    "kotlinc": Tool(r"-d|-include-runtime|-cp|-classpath|-nowarn|-Werror", free_verbs=True),
    "autoreconf": Tool(r"-[fivs]+|--force|--verbose", free_verbs=True),
    "actionlint": Tool(r"-color|-no-color|-oneline|-verbose", free_verbs=True),
}  # fmt: skip
_SBT = frozenset(
    [
        "test",
        "compile",
        "Test/compile",
        "clean",
        "scalafmtCheck",
        "scalafmtCheckAll",
        "testQuick",
        "update",
    ]
)
_LINTS_ONLY = frozenset({"yamllint", "hadolint", "shellcheck", "actionlint"})


def _sbt(_context: Context, arguments: list[str]) -> str:
    """Every word of sbt is a command of its own."""
    words = [
        word for word in arguments if not re.fullmatch(r"-(?:batch|no-colors|v)|--batch", word)
    ]
    if not words or not all(word in _SBT for word in words) or "update" in words:
        raise Refused("A9", "`sbt` like this is not known")
    return "L3"


def _composer(context: Context, arguments: list[str]) -> str:
    """`validate` and lists read; scripts of the project test."""
    words = [word for word in arguments if not word.startswith("-")]
    options = [word for word in arguments[: arguments.index("--")] if word.startswith("-")] if (
        "--" in arguments) else [word for word in arguments if word.startswith("-")]  # fmt: skip
    if not all(re.fullmatch(r"-[nqv]+|--(?:no-interaction|strict|no-ansi|ansi|quiet|direct|tree|locked)", one)
               for one in options):  # fmt: skip
        raise Refused("A8", "`composer` with an option that is not known")
    if words[:1] in (["validate"], ["show"], ["licenses"], ["check-platform-reqs"]):
        return "L1"
    if words[:1] in (["run-script"], ["run"]):
        words = words[1:]
    if not words or not _SCRIPT.fullmatch(words[0]) or _PUBLISHING.search(words[0]):
        raise Refused("A2", "May install or change packages (composer)")
    check_values(context, words[1:])
    return "L3"


def _hatch(context: Context, arguments: list[str]) -> str:
    """`hatch run NAME` runs a script of the project; a name that is a program is one of those below."""
    if arguments[:1] in (["test"], ["fmt"], ["version"]) and not any(
        word.startswith("-") and word not in ("--check", "-c", "--cover", "-a") for word in arguments[1:]
    ):  # fmt: skip
        if arguments[:1] == ["version"] and len(arguments) > 1:
            raise Refused("A9", "`hatch version` with a value changes it")
        check_values(context, arguments[1:])
        return "L3"
    if arguments[:1] != ["run"] or len(arguments) < len(("run", "NAME")):
        raise Refused("A2", "May install or change packages (hatch)")
    name = arguments[1].rpartition(":")[2]
    if not _SCRIPT.fullmatch(name) or any(word.startswith("-") for word in arguments[2:]):
        raise Refused("A9", "`hatch run` of something that is not known")
    check_values(context, arguments[2:])
    return "L3"


def _bc(context: Context, arguments: list[str]) -> str:
    """The calculator starts nothing; dc can, with `!`."""
    for word in arguments:
        if not re.fullmatch(r"-[lqsiw]+|--(?:mathlib|quiet|standard)", word):
            check_read(context, word)
    return "L1"


def _rsync(context: Context, arguments: list[str]) -> str:
    """Copying inside, which deletes nothing. A colon makes a place on another machine."""
    plain = [word for word in arguments if not word.startswith("-")]
    for word in arguments:
        if word.startswith("-") and not re.fullmatch(
            r"-[avrtpuzhqncmO]+|--(?:archive|recursive|verbose|times|update|checksum|dry-run|stats|progress"
            r"|quiet|human-readable|itemize-changes|prune-empty-dirs|exclude=[\w.*/-]+|include=[\w.*/-]+)",
            word,
        ):  # fmt: skip
            raise Refused("A8", f"`rsync {word}` is an option that is not known")
    if len(plain) < len(("SOURCE", "TARGET")) or any(":" in word for word in plain):
        raise Refused("A1", "Connects to another machine (rsync)")
    for source in plain[:-1]:
        check_copied(context, source)
    check_change(context, plain[-1])
    check_into(context, plain[-1], plain[:-1])
    return "L2"


def check_copied(context: Context, source: str) -> None:
    """Raise Refused if what is copied holds secrets, or is everything."""
    from agents.harness.policy import files
    from agents.harness.policy.programs_pieces import check_packed

    check_packed(context, source)
    if files.real(context, source) == str(context.workspace):
        raise Refused("A12", "Copies everything, also what holds secrets")


def check_into(context: Context, target: str, sources: list[str]) -> None:
    """Raise Refused if the target may not get the sources; with a slash it gets what is in them."""
    from agents.harness.policy import programs_change

    programs_change.check_target(
        context, target, [f"{one}." if one.endswith("/") else one for one in sources]
    )


def _linter(name: str) -> _Check:
    """It only reads, also what may not be changed."""

    def check(context: Context, arguments: list[str]) -> str:
        for word in arguments:
            if word.startswith("-") and not re.fullmatch(
                r"-[sxafSeicdW]|-[sSfeioWd][\w,=]+|--(?:strict|format[= ]?\w*|shell=\w+|severity=\w+|external-sources"
                r"|exclude=[\w,]+|no-color|color=\w+|ignore=?\w*|failure-threshold=?\w*|list-files|no-warnings)",
                word,
            ):
                raise Refused("A8", f"`{name} {word}` is an option that is not known")
            if not word.startswith("-"):
                check_read(context, word)
        return "L3"

    return check


CHECKS: dict[str, _Check] = {
    **{name: tool_check(name, tool) for name, tool in _TOOLS.items()},
    **{name: _linter(name) for name in _LINTS_ONLY},
    "sbt": _sbt,
    "composer": _composer,
    "hatch": _hatch,
    "bc": _bc,
    "rsync": _rsync,
}
