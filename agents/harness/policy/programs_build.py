"""Compilers and build tools (rule L3): their commands and options that only work on the project."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused, check_values

_PUBLISHING = re.compile(r"deploy|publish|release|upload|install|push", re.IGNORECASE)
_NAME = re.compile(r"[\w.:@/-]+")
_Check = Callable[[Context, list[str]], str]


@dataclass(frozen=True)
class Tool:
    """`verbs` may come first (none: any word that does not publish); `options` are patterns."""

    options: str = ""
    verbs: frozenset[str] = frozenset()
    free_verbs: bool = False
    needs_verb: bool = False


_TOOLS: dict[str, Tool] = {
    "mvn": Tool(
        r"-[qBoeUX]+|-Dskip\w+(?:=\w+)?|-Dtest=[\w.,*#]+|-pl|-am|--batch-mode|--quiet|--offline"
        r"|--no-transfer-progress|-ntp|-T\d*C?",
        frozenset(["clean", "validate", "compile", "test", "package", "verify", "test-compile",
                   "dependency:tree", "checkstyle:check", "spotbugs:check"]), needs_verb=True,
    ),
    "gradle": Tool(
        r"--no-daemon|--info|--debug|-q|--quiet|--offline|--tests(?:=\S+)?|--stacktrace|--continue|-s|-i"
        r"|-x|--exclude-task|--parallel|--rerun-tasks|--console=plain|--warning-mode(?:=\w+)?", free_verbs=True,
    ),
    "dotnet": Tool(
        r"--no-build|--no-restore|-c|--configuration|--filter|--nologo|-v|--verbosity|--verify-no-changes"
        r"|--logger|--framework|-f|--project|--"
        r"|--collect|--results-directory|--help"
        r"|-p:(?:Configuration|Platform|Version\w*|TreatWarningsAsErrors|Nullable|WarningLevel|ContinuousIntegrationBuild"
        r"|Deterministic|CollectCoverage|CoverletOutputFormat|UseAppHost|PublishReadyToRun)=[\w.]+",
        frozenset(["test", "build", "run", "format", "clean"]), needs_verb=True,
    ),
    "cmake": Tool(
        r"-[SBGDjN]\S*|--build|--target|--config|--parallel|-j\d*|--preset|--preset=\w+|--version"
        r"|--clean-first|--verbose|-Wno-dev", free_verbs=True,
    ),
    "ctest": Tool(r"--test-dir|--output-on-failure|-j\d*|-R|-E|-V|-VV|-N|--verbose|-C|--rerun-failed",
                  free_verbs=True),
    "ninja": Tool(r"-C|-j\d*|-v|-n|-k\d*|--version", free_verbs=True),
    "meson": Tool(r"-C|-v|--verbose|--print-errorlogs|--buildtype=\w+|-D[\w.]+=\w*|--suite|--list|--wipe",
                  frozenset(["setup", "compile", "test", "configure", "introspect"]), needs_verb=True),
    "rspec": Tool(r"-f|--format|--fail-fast|-e|--example|--tag|--seed|--order|-fd|-fp|--no-color|--color",
                  free_verbs=True),
    "rake": Tool(r"-T|-P|-n|-t|--trace|--dry-run|-q|-s|-v", free_verbs=True),
    "phpunit": Tool(r"--filter|--testsuite|--group|--stop-on-failure|--testdox|--colors(?:=\w+)?|-v|--no-coverage",
                    free_verbs=True),
    "mix": Tool(r"--trace|--failed|--cover|--check-formatted|--warnings-as-errors|--stale|--seed|--only",
                frozenset(["test", "compile", "format", "credo", "dialyzer"]), needs_verb=True),
    "pre-commit": Tool(r"--all-files|-a|--files|--show-diff-on-failure|--verbose|-v", frozenset(["run"]),
                       needs_verb=True),
    "just": Tool(r"-l|--list|-n|--dry-run|--summary", free_verbs=True),
    "webpack": Tool(r"--mode(?:=\w+)?|--progress|--no-color", free_verbs=True),
    "vite": Tool(r"--outDir(?:=\S+)?|--base(?:=/\S*)?|--emptyOutDir|--mode|--port|--strictPort"
                 r"|--host(?:=(?:localhost|127\.0\.0\.1))?",
                 frozenset(["build", "preview", "dev", "optimize"])),
    "playwright": Tool(r"--project(?:=[\w -]+)?|--grep(?:=.*)?|-g|--reporter(?:=\w+)?|--headed|--workers(?:=\d+)?"
                       r"|--list|--retries(?:=\d+)?", frozenset(["test", "show-report"]), needs_verb=True),
    "javac": Tool(r"-d|-cp|-classpath|-Xlint\S*|-g|-encoding|--release|-source|-target|-nowarn", free_verbs=True),
    "rustc": Tool(r"--verbose|-v|-o|-O|-g|--test|--out-dir|--cfg|-[Cl]?opt-level=\w"
                  r"|--edition(?:=\d+)?|--crate-type(?:=\w+)?|--emit(?:=\w+)?|--version|-V",
                  free_verbs=True),
}  # fmt: skip
_CONFIGURED = ("dotnet", "cmake", "ctest")  # with a configuration of the name Release
_STARTS_PROGRAM = re.compile(
    r"(?i:CMAKE_\w*(?:LAUNCHER|COMPILER|PROGRAM|LINKER|_AR|_LD|RANLIB|RULE\w*|COMMAND|EMULATOR|CLANG_TIDY|CPPCHECK"
    r"|CPPLINT|INCLUDE_WHAT_YOU_USE))(?::\w+)?=(.*)"
)
_USUAL_PROGRAMS = frozenset(
    [
        "gcc",
        "g++",
        "clang",
        "clang++",
        "cc",
        "c++",
        "ccache",
        "sccache",
        "ninja",
        "make",
        "clang-tidy",
    ]
)
_COMPILERS = ("gcc", "g++", "clang", "clang++", "cc", "c++")
_COMPILER_OPTION = re.compile(
    r"-(?:[ocSEgwvx]|O\w*|W[a-z][\w+=-]*|[DUIL][\w./=\"\\-]*|l[\w+]+|std=[\w+]+|pedantic\S*|pthread|shared|static"
    r"|f(?:no-)?(?:PIC|pic|sanitize=[\w,]+|omit-frame-pointer|exceptions|rtti|syntax-only|openmp|profile-arcs"
    r"|test-coverage|diagnostics-color\S*)|m(?:arch|tune)=[\w.-]+|M[MDFTP]*|ansi|g\d|ggdb\d?|pipe|s)|--version"
)


def _check_settings(name: str, arguments: list[str]) -> None:
    """Values that make a build tool run a program of another name, or read its options."""
    for argument in arguments:
        if argument.startswith("@") and name in ("rustc", "javac", "dotnet"):
            raise Refused("A8", f"`{name}` takes options from a file ({argument})")
        if name == "dotnet" and ";" in argument and not argument.startswith("console;"):
            raise Refused("A8", f"`dotnet {argument}` is not known")
        setting = _STARTS_PROGRAM.fullmatch(argument.removeprefix("-D"))
        if name == "cmake" and setting is not None and setting[1] not in _USUAL_PROGRAMS:
            raise Refused("A8", f"`cmake {argument}` makes it start another program")


def tool_check(name: str, tool: Tool) -> _Check:
    """The check of a program by its entry in a table."""
    pattern = re.compile(tool.options)

    def check(context: Context, arguments: list[str]) -> str:
        words = [argument for argument in arguments if not argument.startswith("-")]
        _check_settings(name, arguments)
        for argument in arguments:
            if (
                argument.startswith("-")
                and not pattern.fullmatch(argument)
                and argument != "--version"
            ):
                raise Refused("A8", f"`{name} {argument}` may run other programs or code")
            is_setting = argument in ("Release", "Debug") and name in _CONFIGURED
            if not argument.startswith("-") and _PUBLISHING.search(argument) and not is_setting:
                raise Refused("A11", f"`{name} {argument}` may publish or install something")
        if tool.verbs and (words or tool.needs_verb):
            first = words[0] if words else ""
            is_known = first in tool.verbs and (name != "mvn" or tool.verbs >= set(words))
            if not is_known and arguments != ["--version"]:
                raise Refused("A9", f"`{name} {first}` is not known")
        check_values(context, arguments)
        return "L3"

    return check


def _compiler(name: str) -> _Check:
    def check(context: Context, arguments: list[str]) -> str:
        for argument in arguments:
            if argument.startswith("-") and not _COMPILER_OPTION.fullmatch(argument):
                raise Refused("A8", f"`{name} {argument}` is an option that is not known")
            if argument.startswith("@"):
                raise Refused("A8", f"`{name}` takes options from a file ({argument})")
        paths = [re.sub(r"^-[IL]", "", argument) for argument in arguments]
        check_values(context, [path for path in paths if not path.startswith("-")])
        return "L3"

    return check


CHECKS: dict[str, _Check] = {
    **{name: tool_check(name, tool) for name, tool in _TOOLS.items()},
    **{name: _compiler(name) for name in _COMPILERS},
}
