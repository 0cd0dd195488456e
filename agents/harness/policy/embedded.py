"""Shell text and program text that hides in the options and scripts of other programs.

For the rules that deny; that such an option asks at all is in the tables of the programs.
"""

import itertools
import re
from collections.abc import Iterator

from agents.harness.policy.commands import Command

_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_EDITORS = frozenset({"vim", "vi", "nvim", "ex", "ed", "view"})
_SED_STARTS = re.compile(r"(?:^|[;{}\n\d$/!])\s*e[ \t]+([^\n]+)")
_EDITOR_STARTS = re.compile(r"(?:^|[:|\n]|r ?|w ?)!\s*([^\n]+)|system\((['\"])(.*?)\2\)")
_DATABASE_STARTS = re.compile(r"^\s*\.(?:shell|system)\s+([^\n]+)", re.MULTILINE)
_SCRIPTS = {
    "sed": _SED_STARTS,
    "sqlite3": _DATABASE_STARTS,
    **dict.fromkeys(_EDITORS, _EDITOR_STARTS),
}
# Options whose value is shell text, by program; a long one has it behind `=` or as the next word.
_OPTIONS: dict[str, re.Pattern[str]] = {
    "tar": re.compile(
        r"--(?:to-command|use-compress-program|info-script|new-volume-script|rsh-command)|-[IF]"
        r"|--checkpoint-action=exec"
    ),
    "rsync": re.compile(r"-e|--rsh|--rsync-path"),
    "man": re.compile(r"-P|--pager"),
    "sort": re.compile(r"--compress-program"),
    "split": re.compile(r"--filter"),
    "zip": re.compile(r"-TT|--unzip-command"),
    "make": re.compile(r"--eval|SHELL|CC"),
    "npm": re.compile(r"-c|--call"),
    "npx": re.compile(r"-c|--call"),
    "expect": re.compile(r"-c"),
    "rg": re.compile(r"--pre"),
    "git": re.compile(r"--upload-pack|--receive-pack|-x|--extcmd|--exec"),
}


def shell_texts(command: Command) -> Iterator[str]:
    """What the command gives to a shell, beside the words that wrappers pass on."""
    name, arguments = command.name, command.arguments
    for argument in arguments if name in _SCRIPTS else ():
        for match in _SCRIPTS[name].finditer(argument):
            yield match[1] or match[match.lastindex or 1]
    if name == "git":
        yield from _git_settings(arguments)
    pattern = _OPTIONS.get(name)
    if pattern is not None:
        yield from _option_values(pattern, arguments)


def _git_settings(arguments: list[str]) -> Iterator[str]:
    """`-c KEY=!TEXT` and `git config KEY TEXT`: aliases, pagers, editors, ssh."""
    for before, word in itertools.pairwise(arguments):
        if before == "-c" and "=" in word:
            yield word.partition("=")[2].removeprefix("!")
    if arguments[:1] == ["config"] and arguments[-1:]:
        yield arguments[-1].removeprefix("!")


def _option_values(pattern: re.Pattern[str], arguments: list[str]) -> Iterator[str]:
    for at, argument in enumerate(arguments):
        match = pattern.match(argument)
        if match is None:
            continue
        rest = argument[match.end() :]
        if rest:
            yield rest.removeprefix("=")
        elif at + 1 < len(arguments):
            yield arguments[at + 1]


def awk_text(command: Command) -> str | None:
    """The program of an awk command, if it stands in the command."""
    if command.name not in _AWKS:
        return None
    rest = list(command.arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option in ("-F", "-v") and rest:
            rest.pop(0)
        elif option in ("-f", "--file"):
            return None
    return rest[0] if rest else None
