"""Judges the commands of the shell that change the shell itself: cd, export, read, eval."""

import re
from collections.abc import Callable
from dataclasses import replace

from agents.harness.policy import asks, builtins_folders, denies, files
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.values import NUMBER, UNKNOWN, Field, Kind, State, Value
from agents.harness.policy.variables import check_variable
from agents.harness.policy.walk import Run, Walker
from agents.harness.policy.walk_words import End

_NAME = re.compile(r"[A-Za-z_]\w*")
_SETTING = re.compile(r"[-+][eufxvn]+o?|[-+]o|pipefail|errexit|nounset|xtrace|noglob|verbose")


def _same(state: State, output: Value = UNKNOWN) -> End:
    return End(state, state, output)


def _nothing(_walker: Walker, run: Run) -> End:
    """`:`, `true`, `wait`, `break`, `return`: the rest of the way is followed all the same."""
    name = run.fields[0].text
    if name != ":" and any(
        one.kind is not Kind.NUMBER and not re.fullmatch(r"[\d%+]+", one.text)
        for one in run.fields[1:]
    ):
        raise Refused("A9", f"`{run.fields[0].text}` gets something that is not known")
    return _same(run.state)


def _return(walker: Walker, run: Run) -> End:
    """In a sourced text it leaves out what follows, which is not kept account of."""
    if not walker.bodies:
        raise Refused("A9", "`return` outside a function is not known")
    return _nothing(walker, run)


def _exit(_walker: Walker, _run: Run) -> End:
    return End(None, None)


def _shows(pattern: str) -> Callable[[Walker, Run], End]:
    """A command that only shows the shell's own state with such words, and may change it with others."""

    def check(_walker: Walker, run: Run) -> End:
        if not all(one.is_constant and re.fullmatch(pattern, one.text) for one in run.fields[1:]):
            raise Refused("A9", f"`{run.fields[0].text}` like this is not known")
        return _same(run.state)

    return check


def _trap(walker: Walker, run: Run) -> End:
    """Its text runs later, wherever the shell is then; so it may only signal, wait and print."""
    fields = run.fields[1:]
    if not fields or not fields[0].is_constant or not all(one.is_constant for one in fields):
        raise Refused("A9", "`trap` with a text that is not known")
    signals = {one.text.removeprefix("SIG") for one in fields[1:]}
    if not signals <= {"EXIT", "INT", "TERM", "HUP", "ERR", "0", "2", "15"}:
        raise Refused("A9", "`trap` on something that is not a signal")
    if fields[0].text not in ("", "-"):
        anywhere = replace(run.state, folders=frozenset({"/"}), variables={}, functions={})
        if re.fullmatch(r"rm -r?f?r? /[\w./-]+", fields[0].text):  # the same everywhere
            anywhere = replace(run.state, variables={})
        walker.text(fields[0].text, anywhere)
    return _same(run.state)


def _export(walker: Walker, run: Run) -> End:
    """`export`, `declare`, `local`, `readonly` with plain names and values."""
    variables = dict(run.state.variables)
    for one in run.fields[1:]:
        name, equals, text = one.text.partition("=")
        if one.text in ("-x", "-r", "-g", "-a") and not one.quoted:
            continue
        is_plain = _NAME.fullmatch(name) and not one.glob and (one.quoted or one.kind is Kind.KNOWN)
        if not is_plain and not (one.kind is Kind.NUMBER and _NAME.fullmatch(name)):
            raise Refused("A9", f"`{run.fields[0].text}` with something that is not plain")
        value = Value(text, one.kind) if equals else variables.get(name, UNKNOWN)
        if one.kind in (Kind.FOUND, Kind.TEXT) and not equals:
            raise Refused("A9", f"`{run.fields[0].text}` with something that is not plain")
        check_variable(walker.context, name, value)
        if equals:
            variables[name] = value
    return _same(replace(run.state, variables=variables))


def _read(walker: Walker, run: Run) -> End:
    variables = dict(run.state.variables)
    rest = list(run.fields[1:])
    if any(not one.is_constant for one in rest):
        raise Refused("A9", "`read` with something that is not plain")
    if len(rest) > 1 and re.fullmatch(r"-r?a", rest[-2].text):
        return _list(walker, run, rest[-1].text, Field("", Kind.TEXT))
    names = _read_names(rest)
    stdin = run.state.stdin
    is_listed = stdin is not None and stdin.kind is Kind.LISTED and len(names) == 1
    for name in names:
        if not _NAME.fullmatch(name):
            raise Refused("A9", "`read` with a name that is not plain")
        check_variable(walker.context, name, UNKNOWN)
        variables[name] = stdin if is_listed and stdin is not None else UNKNOWN
    return _same(replace(run.state, variables=variables))


def _read_names(words: list[Field]) -> list[str]:
    """The names of variables behind the options of `read`."""
    rest = list(words)
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0).text
        if option in ("-d", "-n", "-N", "-p", "-t", "-u", "-rd") and rest:
            rest.pop(0)
        elif not re.fullmatch(r"-[rs]+|-r?d", option):
            raise Refused("A9", "`read` with an option that is not known")
    return [one.text for one in rest] or ["REPLY"]


def _mapfile(walker: Walker, run: Run) -> End:
    """`mapfile -t NAME`: the lines of the standard input as a list."""
    texts = [one.text for one in run.fields[1:]]
    if not all(one.is_constant for one in run.fields[1:]):
        raise Refused("A9", "`mapfile` with something that is not plain")
    if texts[:1] == ["-t"]:
        texts = texts[1:]
    if texts[:1] == ["-d"] and texts[1:2] in ([""], ["\\0"]):
        texts = texts[2:]
    if len(texts) != 1:
        raise Refused("A9", "`mapfile` with an option that is not known")
    stdin = run.state.stdin or UNKNOWN
    is_listed = stdin.kind in (Kind.LISTED, Kind.FOUND) and run.fields[1].text == "-t"
    item = Field(stdin.text, stdin.kind) if is_listed else Field("", Kind.TEXT)
    return _list(walker, run, texts[0], item)


def _list(walker: Walker, run: Run, name: str, item: Field) -> End:
    """A list of things like `item`, of which it is not known how many there are."""
    if not _NAME.fullmatch(name):
        raise Refused("A9", f"`{run.fields[0].text}` with a name that is not plain")
    check_variable(walker.context, name, UNKNOWN)
    variables = {**run.state.variables, name: Value(items=(item,))}
    return _same(replace(run.state, variables=variables))


def _unset(walker: Walker, run: Run) -> End:
    variables = dict(run.state.variables)
    for one in run.fields[1:]:
        if not one.is_constant or not re.fullmatch(r"-v|[A-Za-z_]\w*", one.text):
            raise Refused("A9", "`unset` with something that is not plain")
        if one.text in run.state.functions:
            raise Refused("A9", f"`unset {one.text}` may remove a function")
        if one.text != "-v":
            check_variable(walker.context, one.text, Value("", Kind.KNOWN))
            variables[one.text] = UNKNOWN
    return _same(replace(run.state, variables=variables))


def _set(_walker: Walker, run: Run) -> End:
    for one in run.fields[1:]:
        if not one.is_constant or not _SETTING.fullmatch(one.text):
            raise Refused("A9", "`set` with something that is not plain")
    return _same(run.state)


def _shift(_walker: Walker, run: Run) -> End:
    return _same(replace(run.state, arguments=None))


def _eval(walker: Walker, run: Run) -> End:
    if not all(one.is_constant for one in run.fields):
        raise Refused("A9", "Runs text that is not known beforehand (eval)")
    return walker.text(" ".join(one.text for one in run.fields[1:]), run.state)


def _source(walker: Walker, run: Run) -> End:
    """Sourced text may change everything, so it is followed as if it stood here."""
    two = 2
    if len(run.fields) != two or not run.fields[1].is_constant or "/" not in run.fields[1].text:
        raise Refused("A9", "Runs text that is not known beforehand (source)")
    path = run.fields[1].text
    if re.search(r"(?:^|/)\.?venv/bin/activate$", path):
        inside = all(
            files.is_inside(walker.context, files.real(walker.context, path, cwd=folder))
            for folder in run.state.folders
        )
        if inside and _is_activation(walker, path, run.state):
            return End(run.state, run.state)
    return walker.text(walker.script_text(path, run.state), run.state)


def _is_activation(walker: Walker, path: str, state: State) -> bool:
    """Whether a file is what tools put there to activate an environment, or is not there at all."""
    for folder in state.folders:
        place = files.real(walker.context, path, cwd=folder)
        content = walker.context.files.read(place)
        if place in walker.written:
            return False
        if content is None:
            continue
        text = content.decode("utf-8", "replace")
        judged = denies.judge(walker.context, text)
        reasons = asks.reasons(walker.context, judged.commands)
        if "VIRTUAL_ENV" not in text or judged.findings or {r.rule for r in reasons} - {"A9"}:
            return False
    return True


def _jobs(_walker: Walker, run: Run) -> End:
    texts = [one.text for one in run.fields[1:]]
    if not all(re.fullmatch(r"-[lpnrs]+|%\d+", text) for text in texts):  # -x runs a command
        raise Refused("A9", "`jobs` like this is not known")
    return _same(run.state, NUMBER if texts == ["-p"] else UNKNOWN)


def _kill(_walker: Walker, run: Run) -> End:
    """Given processes and jobs; the sandbox has a process table of its own."""
    for one in run.fields[1:]:
        is_number = one.kind is Kind.NUMBER
        known = one.is_constant and re.fullmatch(
            r"-?[A-Z]+\d?|-s|-l|-\d{1,2}|%\d+|%%|%\+|\d+", one.text
        )
        if not is_number and not known:
            raise Refused("A9", "Signals a process that is not known")
    texts = [one.text for one in run.fields[1:]]
    if texts[:1] == ["-l"] and all(text.isalnum() for text in texts[1:]):
        return _same(run.state)
    targets = [text for text in texts if not text.startswith("-")]
    if not targets or "0" in targets or "-1" in texts[1:]:
        raise Refused("A9", "Signals a process that is not known")
    return _same(run.state)


Builtin = Callable[[Walker, Run], End]

BUILTINS: dict[str, Builtin] = {
    ":": _nothing,
    "return": _return,
    "break": _nothing,
    "continue": _nothing,
    "wait": _nothing,
    "exit": _exit,
    "cd": builtins_folders.cd,
    "export": _export,
    "local": _export,
    "readonly": _export,
    "declare": _export,
    "typeset": _export,
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "unset": _unset,
    "set": _set,
    "shift": _shift,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "jobs": _jobs,
    "trap": _trap,
    "pushd": builtins_folders.pushd,
    "popd": builtins_folders.popd,
    "hash": _shows(r"-r|-l|[\w-]+"),
    "ulimit": _shows(r"-[SHa]+|-[SH]*[cdfnstuv]"),
    "umask": _shows(r"-[Sp]+|0?(?:022|027|077|002)"),
    "alias": _shows(r"-p"),
    "shopt": _shows(r"-[psq]|nullglob|failglob"),
    "kill": _kill,
}
# What may be called through `command` and `builtin`, because it changes nothing.
UNCHANGING = frozenset({"echo", "printf", "test", "[", "true", "false", "pwd", "type", ":"})
