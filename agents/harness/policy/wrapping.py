"""Looks strictly through programs that start other programs: what do they start, with which words?

A wrapper with an option that is not in its table is refused. (`wrappers.py` is the loose reading.)
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from agents.harness.policy import wrapping_text
from agents.harness.policy.outputs import found_here
from agents.harness.policy.programs_paths import Refused, check_read
from agents.harness.policy.values import UNKNOWN, Field, Kind, Value
from agents.harness.policy.walk import Run, Walker
from agents.harness.policy.wrapping_options import Options, after_options

_TABLE: dict[str, Options] = {
    "command": Options("p"),
    "builtin": Options(),
    "exec": Options(),
    "nice": Options(values="n", long=("--adjustment=",)),
    "ionice": Options("t", "cn", ("--class=", "--classdata=", "--ignore")),
    "stdbuf": Options(values="ioe", long=("--input=", "--output=", "--error=")),
    "time": Options("pv", "f", ("--portability", "--verbose", "--format=")),
    "timeout": Options("v", "ks", ("--foreground", "--preserve-status", "--verbose",
                                   "--kill-after=", "--signal="), before=1),
    "env": Options("i", "u", ("--ignore-environment", "--unset=")),
    "busybox": Options(),
    "xargs": Options("0rtx", "adEIiLlnPs", ("--null", "--no-run-if-empty", "--verbose", "--exit",
                     "--arg-file=", "--delimiter=", "--replace=", "--max-lines=", "--max-args=",
                     "--max-procs=", "--max-chars=")),
}  # fmt: skip
_PAIRS: dict[tuple[str, str], Options] = {
    ("uv", "run"): Options("q", long=("--no-sync", "--frozen", "--offline", "--locked", "--quiet")),
    ("poetry", "run"): Options(),
    ("pipenv", "run"): Options(),
    ("pdm", "run"): Options(),
    ("rye", "run"): Options(),
    ("bundle", "exec"): Options(),
}
_FIND_STARTS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_STARTS_ELSEWHERE = frozenset({"-execdir", "-okdir"})
# What may be started in folders that are not known: it only reads the file that is found there.
_READS_HERE = frozenset(
    ["grep", "cat", "head", "tail", "wc", "ls", "stat", "file", "bash", "sh", "md5sum", "sha256sum",
     "du", "basename", "dirname", "echo"]
)  # fmt: skip
_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")


def started(walker: Walker, name: str, run: Run) -> list[Run] | None:
    """What a wrapper starts; None if the program is none."""
    if name == "find":
        return _find(walker, run)
    if name == "xargs":
        return _xargs(walker, run)
    if name in wrapping_text.STARTS:
        return wrapping_text.STARTS[name](walker, run)
    words = run.fields[1:]
    only_shows = (name == "command" and words and words[0].text in ("-v", "-V")) or (
        name == "env" and not words
    )
    if name in _TABLE:
        return None if only_shows else [_rest(name, run, words, _TABLE[name])]
    pair = (name, words[0].text) if words and words[0].is_constant else None
    if pair is not None and pair in _PAIRS:
        return [_rest(" ".join(pair), run, words[1:], _PAIRS[pair])]
    return None


def _rest(name: str, run: Run, words: Sequence[Field], options: Options) -> Run:
    """The command behind the options, with the assignments of `env`."""
    rest = after_options(name, words, options)[1]
    for _ in range(options.before):
        if not rest or not (rest[0].kind is Kind.NUMBER or _DURATION.fullmatch(rest[0].text)):
            raise Refused("A9", f"`{name}` is not followed by a duration")
        rest = rest[1:]
    assignments = list(run.assignments)
    while name == "env" and rest and "=" in rest[0].text:
        if not re.match(r"[A-Za-z_]\w*=", rest[0].text) or rest[0].glob:
            raise Refused("A9", "`env` with something that is not plain")
        variable, _, text = rest[0].text.partition("=")
        assignments.append((variable, Value(text, rest[0].kind)))
        rest = rest[1:]
    if not rest:
        raise Refused("A9", f"`{name}` without a command is not known")
    return replace(run, fields=list(rest), assignments=assignments)


def _xargs(walker: Walker, run: Run) -> list[Run]:
    options, rest = after_options("xargs", run.fields[1:], _TABLE["xargs"])
    known = dict(options)
    stdin = run.state.stdin or UNKNOWN
    path = known.get("-a", known.get("--arg-file"))
    if path is not None:
        for folder in run.state.folders:
            check_read(replace(walker.context, cwd=folder), path)
        stdin = UNKNOWN
    command = rest or [Field("echo")]
    marker = known.get("-I", known.get("--replace", "{}" if "-i" in known else ""))
    added = _from_input(stdin, has_delimiter={"-d", "--delimiter", "-0", "--null"} & set(known))
    if not marker:
        return [replace(run, fields=[*command, *added], state=replace(run.state, stdin=UNKNOWN))]
    runs = []
    for one in added or [Field("")]:
        fields = [_replaced(word, marker, one) for word in command]
        runs.append(replace(run, fields=fields, state=replace(run.state, stdin=UNKNOWN)))
    return runs


def _from_input(stdin: Value, *, has_delimiter: set[str]) -> list[Field]:
    if stdin.kind is Kind.KNOWN and not has_delimiter and not set("'\"\\") & set(stdin.text):
        return [Field(word, quoted=True) for word in stdin.text.split()]
    if stdin.kind in (Kind.LISTED, Kind.FOUND, Kind.NAMED):
        return [Field(stdin.text, stdin.kind)]
    if stdin.kind is Kind.KNOWN and has_delimiter and "\0" in stdin.text:
        return [Field(word, quoted=True) for word in stdin.text.split("\0") if word]
    return [Field("", Kind.TEXT)]


def _replaced(word: Field, marker: str, one: Field) -> Field:
    if marker not in word.text:
        return word
    if word.text == marker:
        return one
    kind = Kind.TEXT if one.kind is not Kind.KNOWN else word.kind
    return Field(word.text.replace(marker, one.text), kind, word.glob, quoted=True)


def _check_elsewhere(word: Field, before: Sequence[Field]) -> None:
    """`-execdir` starts it where each file is, so a relative name in it may be any file."""
    if not before:
        is_known = word.text in _READS_HERE
    else:
        takes_text = before[0].text in ("grep", "echo") and all(
            one.text.startswith("-") for one in before[1:]
        )
        is_known = word.text == "{}" or re.fullmatch(r"-[A-Za-z0-9]+", word.text) is not None
        is_known = is_known or takes_text
    if not is_known:
        raise Refused("A9", f"`find -execdir` with `{word.text}` is not known")


def _find(walker: Walker, run: Run) -> list[Run] | None:
    """What `find` starts for each file; its own words are judged by the list of programs."""
    runs = []
    words = run.fields
    for at, word in enumerate(words):
        if word.text not in _FIND_STARTS:
            continue
        rest: list[Field] = []
        for following in words[at + 1 :]:
            if following.text in (";", "+"):
                break
            is_name = following.text == "{}"
            if word.text in _STARTS_ELSEWHERE:
                _check_elsewhere(following, rest)
            if "{}" in following.text and not is_name:
                raise Refused("A9", "`find` puts names of files into a word")
            rest.append(found_here(walker.context, words, run.state) if is_name else following)
        runs.append(replace(run, fields=rest, state=replace(run.state, stdin=UNKNOWN)))
    return runs or None
