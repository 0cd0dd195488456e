"""What is allowed in full isolation and asks on the second level of the sandbox.

There (Landlock) a command shares the machine's processes, and modes and times of files outside can be
changed. So two things ask that the first level holds by itself: deleting whole folders, and running
the project's own code for anything else than testing it. What is not known counts as such code.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from agents.harness.policy.findings import Finding

_QUIET = frozenset(
    ["ls", "cat", "head", "tail", "nl", "wc", "sort", "uniq", "cut", "tr", "paste", "fold", "diff",
     "cmp", "comm", "stat", "file", "du", "df", "tree", "find", "fd", "grep", "egrep", "fgrep", "rg",
     "jq", "yq", "xxd", "od", "strings", "realpath", "readlink", "basename", "dirname", "pwd", "cd",
     "echo", "printf", "date", "test", "[", "[[", "true", "false", ":", "seq", "expr", "sleep", "which",
     "type", "command", "id", "whoami", "hostname", "uname", "nproc", "free", "uptime", "ps", "env",
     "printenv", "export", "set", "unset", "local", "read", "return", "exit", "break", "continue",
     "shift", "wait", "kill", "time", "timeout", "nice", "md5sum", "sha1sum", "sha256sum", "cksum",
     "rm", "mkdir", "touch", "cp", "mv", "ln", "chmod", "sed", "awk", "tee", "xargs", "git", "mktemp"]
)  # fmt: skip
_TESTS = frozenset(
    ["pytest", "py.test", "tox", "nox", "coverage", "mypy", "ruff", "black", "flake8", "pylint",
     "isort", "shellcheck", "tsc", "eslint", "prettier", "jest", "vitest", "mocha", "stylelint",
     "rspec", "phpunit", "ctest"]
)  # fmt: skip
_MODULES = frozenset({"pytest", "unittest", "coverage", "mypy", "ruff", "black", "compileall"})


def _package_manager(words: Sequence[str]) -> bool:
    plain = [word for word in words if not word.startswith("-")]
    name = plain[1] if plain[:1] in (["run"], ["run-script"]) and plain[1:] else "".join(plain[:1])
    return (
        re.fullmatch(r"(?:test|lint|typecheck|type-check|format)(?:[:-][\w:-]+)?|t", name)
        is not None
    )


def _python(words: Sequence[str]) -> bool:
    if list(words[:1]) == ["-m"]:
        return bool(words[1:]) and words[1] in _MODULES
    return [word.rpartition("/")[2] for word in words[:1]] == ["manage.py"] and list(
        words[1:2]
    ) in (["test"], ["check"])


def _first_in(*names: str) -> Callable[[Sequence[str]], bool]:
    return lambda words: bool(words) and words[0] in names


_WITH_ARGUMENTS: Mapping[str, Callable[[Sequence[str]], bool]] = {
    "python": _python,
    "python3": _python,
    "npm": _package_manager,
    "pnpm": _package_manager,
    "yarn": _package_manager,
    "npx": lambda words: bool(words) and words[0] in _TESTS,
    "node": _first_in("--test"),
    "go": _first_in("test", "vet", "fmt"),
    "cargo": _first_in("test", "check", "clippy", "fmt"),
    "make": lambda words: list(words) in (["test"], ["check"], ["lint"]),
    "bash": _first_in("-n"),
}


def objection(commands: Sequence[Sequence[str]]) -> Finding | None:
    """Why a text that starts these commands asks here, or None. Each is its name and its arguments."""
    for name, *arguments in commands:
        if name == "rm" and any(_is_recursive(word) for word in arguments):
            return Finding(
                "A3", "Deletes a folder, which the second level of the sandbox lets happen"
            )
        takes = _WITH_ARGUMENTS.get(name)
        # Without a name there are only assignments or redirections.
        if name and name not in _QUIET | _TESTS and not (takes and takes(arguments)):
            return Finding(
                "sandbox",
                "Runs code outside the tests, and this machine has the second level of the sandbox only",
            )
    return None


def _is_recursive(word: str) -> bool:
    if word.startswith("--"):
        return len(word) > len("--") and "--recursive".startswith(word)
    return word.startswith("-") and ("r" in word or "R" in word)
