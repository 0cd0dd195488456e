"""Checks the paths of a command that wants to run without a question."""

from collections.abc import Sequence

from agents.harness.policy import files
from agents.harness.policy.context import Context
from agents.harness.policy.secrets import may_match_secret
from agents.harness.policy.simple import Argument

MOST_MATCHES = 2000
SUBSTITUTED = "/dev/fd/63"  # what stands in a command line for `<(...)`
_MANIFESTS = frozenset({"package.json"})  # only the file tools show beforehand what changes


class Refused(Exception):  # noqa: N818  it is an answer, not an error
    """The command is not allowed by itself: `rule` asks, for this reason."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason


class Denied(Refused):
    """One of the rules that nothing softens applies."""


def expand(context: Context, arguments: Sequence[Argument]) -> list[str]:
    """The words as the program gets them: patterns replaced by what they match.

    Raises Refused if a file name would be taken for an option, or there are too many.
    """
    words: list[str] = []
    for argument in arguments:
        if not argument.glob:
            words.append(argument.text)
            continue
        found = context.files.matches(
            argument.text, folder=context.cwd or str(context.workspace), limit=MOST_MATCHES
        )
        if len(found) >= MOST_MATCHES:
            raise Refused("A9", f"`{argument.text}` matches too many files to look at")
        if any(path.rpartition("/")[2].startswith("-") for path in found):
            raise Refused("A9", f"`{argument.text}` matches a file that looks like an option")
        words += found or [argument.text]
    return words


def check_read(context: Context, argument: str, *, metadata_only: bool = False) -> None:
    """Raise Refused if reading the file that an argument may name needs a question."""
    if argument == SUBSTITUTED:
        return
    argument = argument.removeprefix("@")  # a file of arguments, to some programs
    path = files.real(context, argument)
    if context.noted is not None and not metadata_only:
        context.noted.read.add(path)
    is_secret = files.is_secret(path) or files.is_secret(argument)
    if not metadata_only and (is_secret or may_match_secret(argument.rpartition("/")[2])):
        raise Refused("A12", f"Reads a file that may hold secrets ({argument})")
    if not files.is_readable(context, path):
        raise Refused("A13", f"Reads outside the workspace ({argument})")


def check_write(context: Context, argument: str) -> None:
    """Raise Refused if a program that tests or builds may not use the file an argument names."""
    argument = argument.removeprefix("@")  # a file of arguments, to some programs
    path = files.real(context, argument)
    if files.is_secret(path):
        raise Refused("A12", f"Uses a file that may hold secrets ({argument})")
    if not files.is_inside(context, path) and path != str(context.workspace):
        raise Refused("A4", f"Names a file outside the workspace ({argument})")
    if path.casefold() == f"{context.workspace}/.github".casefold():
        raise Refused("A5", f"Names the folder of protected files ({argument})")
    if files.is_protected(context, path):
        raise Refused("A5", f"Names a protected file ({argument})")
    if files.is_policy(context, path):
        raise Refused("A5", f"Names the policy of this repository ({argument})")


def check_change(context: Context, argument: str) -> None:
    """Raise Refused if a command may not create, change or remove the file an argument names."""
    path = files.real(context, argument)
    if context.noted is not None:
        context.noted.changed.add(path)
    check_write(context, argument)
    if path in (str(context.workspace), str(context.scratch)):
        raise Refused("A3", f"Changes the whole workspace ({argument})")
    if path.rpartition("/")[2].casefold() in _MANIFESTS:
        raise Refused("A5", f"Changes what a build tool runs ({argument})")


def check_folder(context: Context, rule: str) -> None:
    """Raise Refused if what `rule` allows may not be done in the folder where it runs."""
    folder = context.cwd or str(context.workspace)
    if not files.is_readable(context, folder) and folder != str(context.scratch):
        raise Refused("A13", f"Works in a folder outside the workspace ({folder})")
    if rule == "L3" and not files.is_inside(context, folder) and folder != str(context.scratch):
        raise Refused("A4", f"Builds or tests outside the workspace ({folder})")


def check_values(context: Context, arguments: Sequence[str]) -> None:
    """`check_write` for each argument, and for each part of an option that may be a path."""
    for argument in arguments:
        if not argument.startswith("-"):
            check_write(context, argument.partition("::")[0])  # file.py::test_name
            continue
        _, equals, value = argument.partition("=")
        if equals and value:
            for part in value.replace(":", ",").split(","):  # term-missing, xml:build/coverage.xml
                check_write(context, part)
        elif not argument.startswith("--"):
            # Which of its letters takes the rest as a value is not known here.
            for start in range(2, len(argument)):
                check_write(context, argument[start:])
