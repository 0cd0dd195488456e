"""go, cargo, java and ar: building and testing (rule L3)."""

import re
from collections.abc import Callable

from agents.harness.policy import programs_test
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused, check_read, check_values

_PUBLISHING = re.compile(r"deploy|publish|release|upload|install|push", re.IGNORECASE)
_LINKER_FLAGS = re.compile(r"(?:-[sw]|-X [\w./-]+=[\w.:+-]+)(?: (?:-[sw]|-X [\w./-]+=[\w.:+-]+))*")
_COMPILER_FLAGS = re.compile(r"(?:all=)?-[NlmBS](?: -[NlmBS])*")
_GO_REFUSED = {
    "list": (re.compile(r"--?u"), "A1", "Asks another machine for newer versions (go list -u)"),
    "run": (re.compile(r".*@|[\w-]+\.\w+/"), "A2", "runs a package from the internet (go run)"),
    "clean": (re.compile(r"-(?!testcache$)"), "A3", "Deletes what is shared (go clean)"),
}
_JAVA_OPTION = re.compile(
    r"-(?:ea|esa|server|X(?:mx|ms|ss)\d+[kmgKMG]?|D[\w.]+=[\w.,/-]*|XX:[+-]\w+)"
)


def check_go(context: Context, arguments: list[str]) -> str:
    """`L3` for building and testing, `L1` for what only tells."""
    verb, rest = "".join(arguments[:1]), list(arguments[1:])
    options = [word for word in rest if word.startswith("-")]
    if verb in ("version", "doc", "help") or (verb == "env" and not options):
        if not {"-all", "-short", "-src", "-u"}.issuperset(options):
            raise Refused("A8", f"`go {verb}` with an option that is not known")
        return "L1"
    if (verb, *rest[:1]) == ("tool", "cover"):
        check_values(context, rest[1:])
        return "L3"
    if verb == "mod" and rest[:1] in (["graph"], ["why"], ["verify"]):
        return "L3"
    for words, refused in _GO_REFUSED.items():
        if verb == words and any(refused[0].match(word) for word in rest):
            raise Refused(*refused[1:])
    if verb not in ("test", "build", "vet", "fmt", "run", "list", "clean"):
        raise Refused("A2", "only `go test`, `build`, `run`, `vet`, `list` and `fmt` are known")
    return programs_test.tool("go")(context, _without_plain_flags(rest))


def _without_plain_flags(arguments: list[str]) -> list[str]:
    found: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        key, equals, value = word.partition("=")
        if key not in ("-ldflags", "-gcflags", "-mod"):
            found.append(word)
            continue
        value = value if equals else "".join(rest[:1])
        pattern = {"-ldflags": _LINKER_FLAGS, "-gcflags": _COMPILER_FLAGS}.get(key)
        is_plain = pattern.fullmatch(value) if pattern else value in ("mod", "vendor", "readonly")
        if not is_plain:
            raise Refused("A8", f"`go {key}` may run other programs or code")
        rest = rest if equals else rest[1:]
    return found


def check_cargo(context: Context, arguments: list[str]) -> str:
    """`L3` for building and testing."""
    if arguments[:1] == ["nextest"] and arguments[1:2] not in (["run"], ["list"]):
        raise Refused("A2", "only `cargo nextest run` and `list` are known")
    verbs = (
        "test",
        "build",
        "check",
        "clippy",
        "fmt",
        "run",
        "bench",
        "doc",
        "tree",
        "metadata",
        "t",
        "b",
        "c",
        "nextest",
    )
    if arguments[:1] not in [[verb] for verb in verbs] or "--open" in arguments:
        raise Refused(
            "A2", "only `cargo test`, `build`, `check`, `clippy`, `run` and `fmt` are known"
        )
    return programs_test.tool("cargo")(context, arguments[1:])


def check_java(context: Context, arguments: list[str]) -> str:
    """`L3` for a program that was built inside; `L1` for its version."""
    if arguments in (["-version"], ["--version"], ["-fullversion"]):
        return "L1"
    rest = _java_program(context, arguments)
    if any(_PUBLISHING.search(word) for word in rest):
        raise Refused("A11", "Runs a task that may publish or install something (java)")
    check_values(context, rest)
    return "L3"


def _java_program(context: Context, arguments: list[str]) -> list[str]:
    """What the program is given. Raises Refused for an option that is not known."""
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-cp", "-classpath", "--class-path", "-jar") and rest:
            places = [part.rstrip("*") for part in rest.pop(0).split(":")]
            check_values(context, [place for place in places if place])
            if word == "-jar":
                return rest
        elif not word.startswith(("-", "@")):
            check_read(context, word)
            return rest
        elif not _JAVA_OPTION.fullmatch(word):
            raise Refused("A8", f"`java {word}` may run other programs or code")
    raise Refused("A9", "`java` without a program is not known")


def check_ar(context: Context, arguments: list[str]) -> str:
    """`L3`: a library from what was compiled."""
    if not re.fullmatch(r"-?[rctsquvxpD]+", "".join(arguments[:1])):
        raise Refused("A8", "`ar` like this is not known")
    check_values(context, arguments[1:])
    return "L3"


CHECKS: dict[str, Callable[[Context, list[str]], str]] = {
    "go": check_go,
    "cargo": check_cargo,
    "java": check_java,
    "ar": check_ar,
}
