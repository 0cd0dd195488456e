"""Decides about one simple command of a strictly read text: allowed by a rule, or refused."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from agents.harness.policy import files, interpreters, outcomes, project_tools
from agents.harness.policy.builtins import BUILTINS, UNCHANGING
from agents.harness.policy.commands import Command
from agents.harness.policy.commands import Word as LooseWord
from agents.harness.policy.context import Context, Noted
from agents.harness.policy.denies import broken_rules
from agents.harness.policy.listed import check_listed
from agents.harness.policy.outputs import NO_SECRETS, printed
from agents.harness.policy.programs import allowing_rule
from agents.harness.policy.programs_paths import Denied, Refused, check_folder, check_values
from agents.harness.policy.simple import NotUnderstoodError
from agents.harness.policy.values import UNKNOWN, Field, Kind, State
from agents.harness.policy.variables import check_variable
from agents.harness.policy.walk import Run, Walker, as_arguments
from agents.harness.policy.walk_words import End
from agents.harness.policy.wrapping import started

_MOST_WRAPPERS = 12
_PROGRAM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin")
_TOOL_FOLDERS = re.compile(r"(?:\./)?(?:\.?venv/bin|node_modules/\.bin)/([\w.-]+)")
_SHELLS = frozenset({"sh", "bash", "dash"})
# Programs to which any text may be given, because they only print or compare it.
_TEXT_IS_HARMLESS = frozenset({"echo", "basename", "dirname", "printf", "test", "["})
_ONLY_COUNTS = frozenset({"ls", "stat", "du", "basename", "dirname", "realpath", "readlink", "wc"})
_SEARCHES = frozenset({"grep", "egrep", "fgrep"})
_SET_OPTION = re.compile(r"pipefail|errexit|nounset|xtrace|verbose|noglob|noclobber")
_GIT_TEXTS = re.compile(r"--(?:author|committer|grep|since|until|after|before|date|message)=")
_TEXT_OPTIONS = frozenset({"-m", "--message"})
_COUNTS = re.compile(r"%[^A-Za-z%]*[hlLjzt]*n")  # in the format of `printf`: sets a variable
# Programs to which a file whose name begins with `-` can do no harm.
_NO_HARM_BY_OPTIONS = _ONLY_COUNTS | {"cat", "head", "tail", "echo", "grep", "md5sum", "sha256sum"}


def judge(walker: Walker, run: Run) -> End:
    """How a simple command ends. Raises Refused or NotUnderstoodError."""
    if not run.fields:
        return _assign(walker, run)
    head = run.fields[0]
    _check_head(head)
    for name, value in run.assignments:
        check_variable(walker.context, name, value, reads=head.text == "read")
    if head.text in run.state.functions:
        return walker.call(run.state.functions[head.text], run)
    if head.text in BUILTINS:
        end = BUILTINS[head.text](walker, run)
        walker.rules.append("L7" if head.text == "kill" else "L1")
        return end
    return _external(walker, run, 0)


def _check_head(head: Field) -> None:
    if (not head.is_constant and head.text != "[") or head.kind is not Kind.KNOWN or not head.text:
        raise Refused("A9", "Runs a program whose name is not known beforehand")


def _assign(walker: Walker, run: Run) -> End:
    variables = dict(run.state.variables)
    for name, value in run.assignments:
        check_variable(walker.context, name, value)
        variables[name] = value
    after = replace(run.state, variables=variables)
    return End(after, after)


def _external(walker: Walker, run: Run, depth: int) -> End:
    """A program, or what it starts."""
    if depth > _MOST_WRAPPERS:
        raise NotUnderstoodError("it starts programs through too many others")
    head = run.fields[0] if run.fields else Field("", Kind.TEXT)
    _check_head(head)
    _check_denied(walker, run)
    for variable, value in run.assignments:
        check_variable(walker.context, variable, value)
    if depth and head.text in BUILTINS and head.text not in UNCHANGING | {"kill"}:
        raise Refused("A9", f"`{head.text}` behind another program is not known")
    name = _program(walker.context, head.text, run.state)
    inner = started(walker, name, run) if name else None
    if inner is not None:
        return _wrapper(walker, name, run, [_external(walker, one, depth + 1) for one in inner])
    return _alone(walker, name, run)


def _check_denied(walker: Walker, run: Run) -> None:
    """With the words of a function or a loop a command may be one that the loose reading misses."""
    words = [LooseWord(one.text, one.kind is Kind.KNOWN, glob=one.glob) for one in run.fields]
    for folder in run.state.folders:
        for finding in broken_rules(walker.context, Command(words, cwd=folder)):
            raise Denied(finding.rule, finding.reason)


def _wrapper(walker: Walker, name: str, run: Run, ends: list[End]) -> End:
    """`find` also has words of its own; what the others print comes from what they start."""
    if name == "find":
        _allow(walker, name, run)
        return End(run.state, run.state)
    return End(run.state, run.state, ends[0].output if len(ends) == 1 else UNKNOWN)


def _alone(walker: Walker, name: str, run: Run) -> End:
    """A program that starts no other that is named, or a file that is started by its path."""
    if name in _SHELLS:
        return _shell(walker, name, run)
    if not name:
        return _script(walker, run.fields[0].text, run)
    if interpreters.takes(name):
        rule = interpreters.check(walker, name, run)
        walker.rules.append(rule)
        if rule == "L5" or "-m" not in [one.text for one in run.fields]:
            walker.has_run_text = True
    else:
        _allow(walker, name, run)
    return End(run.state, run.state, printed(walker.context, run.fields, run.state))


def _program(context: Context, text: str, state: State) -> str:
    """The name of a program that is installed; empty for a file that is started by its path."""
    folder, slash, name = text.rpartition("/")
    if not slash or folder in _PROGRAM_FOLDERS:
        return name
    match = _TOOL_FOLDERS.fullmatch(text)
    if match is not None and state.folders == {str(context.workspace)}:
        return match[1]  # nobody may write there without a question
    return ""


def _allow(walker: Walker, name: str, run: Run) -> None:
    """Raise Refused, or note the rule that allows a program with these words."""
    fields = [Field(name), *run.fields[1:], *_read_from(name, run)]
    _check_words(name, fields)
    _check_unknown(name, fields)
    _check_made(walker, name, fields)
    for folder in run.state.folders:
        here = replace(walker.context, cwd=folder, noted=Noted())
        rule = allowing_rule(here, as_arguments(fields))
        check_folder(here, rule)
        walker.rules.append(rule)
        outcomes.note(walker, here, fields, run.state.stdin)


def _read_from(name: str, run: Run) -> list[Field]:
    """`patch < FILE` and `git apply < FILE` do what `patch -i FILE` and `git apply FILE` do."""
    path = run.state.stdin.path if run.state.stdin is not None else ""
    texts = [one.text for one in run.fields[1:]]
    if not path or any(text in ("-i", "--input") for text in texts):
        return []
    if name == "patch":
        return [Field("-i"), Field(path)]
    plain = [text for text in texts if not text.startswith("-")]
    return [Field(path)] if name == "git" and plain == ["apply"] and "-" not in texts else []


def _check_words(name: str, fields: Sequence[Field]) -> None:
    """`printf -v` and `test -v` work out what is in brackets behind a name."""
    texts = [one.text for one in fields[1:]]
    if name == "printf" and texts[:1] and texts[0].startswith("-v"):
        raise Refused("A9", "`printf -v` sets a variable")
    if (
        name == "printf"
        and len(fields) > 1
        and (fields[1].kind is not Kind.KNOWN or _COUNTS.search(fields[1].text.replace("%%", "")))
    ):
        raise Refused("A9", "`printf` may set a variable (%n)")
    if name in ("test", "[") and any(before in ("-v", "-R") and not after.isidentifier()
                                     for before, after in pairwise(texts)):  # fmt: skip
        raise Refused("A9", f"`{name} -v` with something that is not plain")


def _check_unknown(name: str, fields: Sequence[Field]) -> None:
    """What is not known may only go where it does no harm."""
    for at, one in enumerate(fields):
        if one.kind is Kind.LISTED:
            check_listed(name, fields, at)
        elif one.kind is Kind.FOUND and (
            name in _ONLY_COUNTS or (name in _SEARCHES and one.text == NO_SECRETS and at > 1)
        ):
            continue
        elif one.kind in (Kind.FOUND, Kind.TEXT) and not _is_harmless_text(name, fields, at):
            raise Refused(_RULES.get(name, "A9"), f"`{name}` gets something that is not known")


def _check_made(walker: Walker, name: str, fields: Sequence[Field]) -> None:
    """A pattern also finds what the same call makes, and a file may be named like an option."""
    open_patterns = [f.text for f in fields[1:] if f.glob and f.text[:1] in ("*", "?", "[", "-")]
    if not open_patterns or name in _NO_HARM_BY_OPTIONS:
        return
    is_named = walker.makes_odd_names or any(
        path.rpartition("/")[2].startswith("-") for path in walker.written
    )
    has_run = bool({"L3", "L5"} & set(walker.rules)) and any(
        "." not in one for one in open_patterns
    )
    if is_named or walker.has_moved or has_run:
        raise Refused("A9", f"`{name}` gets names of files that the same call may make")


_RULES = {
    "rm": "A3",
    "rmdir": "A3",
    "cat": "A13",
    "head": "A13",
    "tail": "A13",
    "cp": "A4",
    "mv": "A4",
}


def _is_harmless_text(name: str, fields: Sequence[Field], at: int) -> bool:
    if name == "git" and fields[at].quoted and _GIT_TEXTS.match(fields[at].text):
        return True
    if name == "git" and fields[1].text in ("commit", "tag", "stash"):
        return fields[at].quoted and fields[at - 1].text in _TEXT_OPTIONS
    if name in ("test", "["):
        return fields[at].quoted and not any(one.text in ("-v", "-R") for one in fields)
    if name == "printf":
        return at > 1 and not fields[1].text.startswith("-")
    return name in _TEXT_IS_HARMLESS


def _shell(walker: Walker, name: str, run: Run) -> End:
    """`sh -c TEXT`, `sh SCRIPT`, or a shell that reads a known text."""
    rest = list(run.fields[1:])
    inner = replace(run.state, variables={}, functions={}, arguments=())
    if [one.text for one in rest[:1]] in (["-n"], ["--version"]):
        _allow(walker, name, run)
        return End(run.state, run.state)
    while rest and re.fullmatch(r"-[lexuv]+|-[lexuv]*c[lexuv]*|-[lexuv]*o|--norc|--noprofile",
                                rest[0].text):  # fmt: skip
        option = rest.pop(0).text
        if option.endswith("o") and (not rest or not _SET_OPTION.fullmatch(rest.pop(0).text)):
            raise Refused("A9", "Starts a shell with an option that is not known")
        if "c" in option and re.fullmatch(r"-\w+", option):
            if not rest or not rest[0].is_constant:
                raise Refused("A9", "Runs a text that is not known beforehand in another shell")
            inner = replace(inner, arguments=tuple(rest[2:]))
            return _ended(run, walker.shell(rest[0].text, inner))
    if rest and rest[0].is_constant and not rest[0].text.startswith("-"):
        text = walker.script_text(rest[0].text, run.state)
        inner = replace(inner, arguments=tuple(rest[1:]))
        return _ended(run, walker.shell(text, inner))
    stdin = run.state.stdin
    if rest or stdin is None or stdin.kind is not Kind.KNOWN:
        raise Refused("A9", "Runs a text that is not known beforehand in another shell")
    return _ended(run, walker.shell(stdin.text, replace(inner, stdin=UNKNOWN)))


def _ended(run: Run, end: End) -> End:
    return End(run.state, run.state, end.output)


def _script(walker: Walker, path: str, run: Run) -> End:
    """A program that is started by its path is judged by its content (rule C2)."""
    if all(_is_binary(walker, path, folder) for folder in run.state.folders):
        check_given = [one.text for one in run.fields[1:] if one.kind is Kind.KNOWN]
        for folder in run.state.folders:
            check_values(replace(walker.context, cwd=folder), check_given)
        walker.rules.append("L3")
        return End(run.state, run.state)
    if project_tools.is_one(walker, path, run.state):
        return _alone(walker, project_tools.NAMES[path.rpartition("/")[2]], run)
    text = walker.script_text(path, run.state)
    first, _, _ = text.partition("\n")
    match = re.fullmatch(
        r"#! ?(?:/usr/bin/env |/bin/|/usr/bin/|/usr/local/bin/)([\w.-]+)( -[eux]+)?", first
    )
    language = match[1] if match is not None else "" if first.startswith("#!") else "sh"
    if language in _SHELLS:
        inner = replace(run.state, variables={}, functions={}, arguments=tuple(run.fields[1:]))
        return _ended(run, walker.shell(text, inner))
    if language and interpreters.takes(language):
        walker.rules.append(interpreters.check_text(walker, language, text, run.state))
        return End(run.state, run.state)
    raise Refused("C2", f"Runs a script that cannot be looked at ({path})")


def _is_binary(walker: Walker, path: str, folder: str) -> bool:
    """Whether it is a program that was built in the workspace, and the text does not change it."""
    place = files.real(walker.context, path, cwd=folder)
    content = walker.context.files.read(place)
    if place in walker.built and not walker.has_moved and files.is_inside(walker.context, place):
        return True
    is_changed = walker.has_moved or any(files.is_below(place, one) for one in walker.written)
    return (
        content is not None
        and content.startswith(b"\x7fELF")
        and files.is_inside(walker.context, place)
        and not is_changed
    )
