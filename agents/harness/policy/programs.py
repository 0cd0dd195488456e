"""Which simple commands run without a question: a small list that reads, and one that tests.

A program is allowed with the options that are known to be harmless, or with all but those that
are known to write, to start a program or to read a list of files from a file; a long option is
dangerous in every abbreviation, too. What is not on the list asks.
"""

import re
from collections.abc import Callable, Sequence

from agents.harness.policy import (
    files,
    programs_archives,
    programs_build,
    programs_build_more,
    programs_change,
    programs_git,
    programs_installed,
    programs_languages,
    programs_net,
    programs_pieces,
    programs_run,
    programs_test,
    programs_text,
)
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused, check_change, check_read, expand
from agents.harness.policy.programs_readers import READERS, TELL_VERSION
from agents.harness.policy.simple import Argument

_MOST_DOT_ENV = 50
_VERSIONS = (["--version"], ["-V"], ["--help"])
_LISTS_OF_USERS = frozenset({"passwd", "group", "services", "protocols", "shells"})
_LESS = frozenset({"-N", "-R", "-S", "-F", "-X", "-FX", "-FRX", "-r"})
_FIND_ACTIONS = frozenset(
    [
        "-delete",
        "-fprint",
        "-fprint0",
        "-fprintf",
        "-fls",
        "-files0-from",
    ]
)


def allowing_rule(context: Context, arguments: Sequence[Argument]) -> str:
    """The rule that lets this command run without a question.

    Raises Refused, with the rule that asks and a reason, if there is none.
    """
    words = expand(context, arguments)
    name, rest = words[0], words[1:]
    if name in TELL_VERSION and rest in _VERSIONS:
        return "L1"
    if rule := programs_installed.listing_rule(context, name, rest):
        return rule
    special: dict[str, Callable[[Context, list[str]], str]] = {
        "git": programs_git.check,
        "command": _check_command,
        "sed": programs_text.check_sed,
        "awk": programs_text.check_awk,
        "gawk": programs_text.check_awk,
        "mawk": programs_text.check_awk,
        **programs_change.CHECKS,
        **programs_pieces.CHECKS,
        **programs_archives.CHECKS,
        **programs_net.CHECKS,
        **programs_build.CHECKS,
        "less": _check_less,
        "sort": _check_sort,
        "yq": _check_yq,
        "env": _check_env,
        "printenv": _check_printenv,
        **programs_test.CHECKS,
        **programs_run.CHECKS,
        **programs_languages.CHECKS,
        **programs_build_more.CHECKS,
    }
    if name in special:
        return special[name](context, rest)
    if name in READERS:
        if name == "find" and (action := _FIND_ACTIONS.intersection(rest)):
            raise Refused("A3", f"`find {min(action)}` deletes, writes or starts programs")
        _check_reader(context, name, rest)
        return "L1"
    raise Refused("A9", f"`{name}` is not on the list of commands that run without asking")


def _check_reader(context: Context, name: str, arguments: list[str]) -> None:
    reader = READERS[name]
    plain, options = split(_without_values(arguments, reader.value_letters))
    for option in options:
        if is_dangerous(option, reader.dangerous_letters, reader.dangerous_words):
            raise Refused("A9", f"`{name} {option}` may write files or start programs")
    if name in _MORE_CHECKS:
        _MORE_CHECKS[name](plain, options)
    if reader.most_arguments is not None and len(plain) > reader.most_arguments:
        raise Refused("A9", f"`{name}` with so many arguments may write a file")
    has_text = any(
        is_dangerous(option, reader.text_letters, reader.text_words) for option in options
    )
    texts = 0 if has_text else reader.text_arguments
    for argument in [*plain[texts:], *values(options)]:
        check_read(context, argument, metadata_only=reader.metadata_only)
    if name.endswith("grep") and is_dangerous("".join(options), "rR", ("--recursive",)):
        _check_recursive(context, plain[texts:] or ["."], options)


def _without_values(arguments: Sequence[str], letters: str) -> list[str]:
    """Without the words that are values of the options before them."""
    found: list[str] = []
    rest = list(arguments)
    while rest:
        found.append(rest.pop(0))
        is_option = re.fullmatch(rf"-[A-Za-z]*[{letters}]", found[-1]) if letters else None
        if is_option is not None and rest:
            rest.pop(0)
    return found


def _check_recursive(context: Context, folders: list[str], options: list[str]) -> None:
    """A search through a folder also reads the secrets in it, unless only some names are read."""
    patterns = [
        value for key, _, value in (o.partition("=") for o in options) if key == "--include"
    ]
    for folder in folders:
        place = files.real(context, folder)
        for pattern in patterns or [".env*"]:  # that they look for secrets has been checked
            for found in context.files.matches(pattern, folder=place, limit=_MOST_DOT_ENV):
                if files.is_secret(found):
                    raise Refused("A12", f"Searches a file that may hold secrets ({found})")


def _check_date(plain: list[str], options: list[str]) -> None:
    """`date 0101` sets the clock; `date +FORMAT` and `date -d TEXT` show it."""
    is_shown = any(option.startswith(("-d", "--date", "-r", "--ref")) for option in options)
    if plain and not plain[0].startswith("+") and not is_shown:
        raise Refused("A6", "`date` with a time sets the clock")


def _check_getent(plain: list[str], _options: list[str]) -> None:
    if not _LISTS_OF_USERS.issuperset(plain[:1]):
        raise Refused("A1", "Looks up a name, which may ask another machine (getent)")


def _check_jq(plain: list[str], _options: list[str]) -> None:
    if any(re.search(r"\b(?:import|include)\b", text) for text in plain):
        raise Refused("A8", "`jq` loads a file that was not looked at")


def _check_yq_text(plain: list[str], _options: list[str]) -> None:
    if any(re.search(r"\b(?:load\w*|env|strenv|envsubst|eval|system)\b", text) for text in plain):
        raise Refused("A8", "`yq` loads a file or a variable that was not looked at")


def _check_history(_plain: list[str], _options: list[str]) -> None:
    raise Refused("A12", "Reads what has been typed before (history)")


_MORE_CHECKS = {
    "date": _check_date,
    "getent": _check_getent,
    "jq": _check_jq,
    "yq": _check_yq_text,
    "history": _check_history,
}


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Plain arguments and options; a value of an option counts as a plain argument."""
    plain: list[str] = []
    options: list[str] = []
    ended = False
    for argument in arguments:
        if argument == "--" and not ended:
            ended = True
        elif argument.startswith("-") and argument != "-" and not ended:
            options.append(argument)
        elif argument != "-":
            plain.append(argument)
    return plain, options


def values(options: Sequence[str]) -> list[str]:
    """The parts of options that may be paths: behind `=`, or glued to a letter."""
    found: list[str] = []
    for option in options:
        _, equals, value = option.partition("=")
        if equals and value:
            found.append(value)
        elif not option.startswith("--"):
            # Which of its letters takes the rest as a value is not known here.
            found += [option[start:] for start in range(2, len(option))]
    return [value for value in found if value != "/"]  # `cut -d/`


def is_dangerous(option: str, letters: str, words: Sequence[str]) -> bool:
    """Whether an option is one of `words` (also abbreviated) or has one of `letters` in it."""
    name = option.partition("=")[0]
    if name.startswith("--"):
        shortest = 3  # of an abbreviation: `--o` for `--output`
        return len(name) >= shortest and any(word.startswith(name) for word in words)
    if name in words:
        return True
    return any(letter in name[1:] for letter in letters)


def _check_less(context: Context, arguments: list[str]) -> str:
    """Printing is all that it does here; `+` and most options start something."""
    for argument in arguments:
        if argument.startswith("+") or (argument.startswith("-") and argument not in _LESS):
            raise Refused("A8", f"`less {argument}` may start programs")
        if not argument.startswith("-"):
            check_read(context, argument)
    return "L1"


def _check_sort(context: Context, arguments: list[str]) -> str:
    """It reads; `-o` writes its result into a file."""
    rest: list[str] = []
    target = ""
    words = list(arguments)
    while words:
        word = words.pop(0)
        long = re.fullmatch(r"--o(?:u(?:t(?:p(?:u(?:t)?)?)?)?)?(?:=(.*))?", word)
        short = re.fullmatch(r"-([bdfghinMRVrsuzcCm]*)o(.*)", word)
        if long is None and short is None:
            rest.append(word)
            continue
        glued = (long[1] if long is not None else short[2] if short is not None else "") or ""
        if not glued and not words:
            raise Refused("A9", "`sort -o` without a file is not known")
        target = glued or words.pop(0)
    _check_reader(context, "sort", rest)
    if target:
        check_change(context, target)
    return "L2" if target else "L1"


def _check_yq(context: Context, arguments: list[str]) -> str:
    in_place = {"-i", "--inplace", "--in-place"}
    rest = [argument for argument in arguments if argument not in in_place]
    if any(re.match(r"-\w*i|--in-?place", argument) for argument in rest):
        raise Refused("A9", "`yq` with an option that is not known")
    _check_reader(context, "yq", rest)
    if len(rest) == len(arguments):
        return "L1"
    for path in split(rest)[0][1:]:
        check_change(context, path)
    return "L2"


def _check_command(_context: Context, arguments: list[str]) -> str:
    if arguments[:1] not in (["-v"], ["-V"]):
        raise Refused("A9", "`command` starts another program")
    return "L1"


def _check_env(_context: Context, arguments: list[str]) -> str:
    if arguments:
        raise Refused("A9", "`env` with arguments starts another program")
    return "L1"


def _check_printenv(_context: Context, arguments: list[str]) -> str:
    if not all(argument.isidentifier() for argument in arguments):
        raise Refused("A9", "only names of variables are known here")
    return "L1"
