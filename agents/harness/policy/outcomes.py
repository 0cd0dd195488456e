"""What a program leaves behind, for what comes later in the same text: files, links, odd names."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from agents.harness.policy import content, files
from agents.harness.policy.commands import Command
from agents.harness.policy.commands import Word as LooseWord
from agents.harness.policy.context import Context, Linked
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.targets import written
from agents.harness.policy.values import UNKNOWN, Field, Kind, Value
from agents.harness.policy.walk import Walker

_KEEPS_CONTENT = frozenset({"chmod", "mkdir", "touch"})
# They change files that they do not name.
_MOVES = frozenset(
    ["tar", "unzip", "patch", "gunzip", "gzip", "xz", "unxz", "bzip2", "zstd", "split", "csplit", "rsync"]
)  # fmt: skip
_GIT_MOVES = frozenset(
    ["checkout", "switch", "restore", "merge", "stash", "cherry-pick", "revert", "apply", "mv"]
)
_COMPILERS = frozenset({"gcc", "g++", "clang", "clang++", "cc", "c++", "rustc", "go"})
_MAKES_NO_PROGRAM = re.compile(r"-(?:[ESc]|M\w*|fsyntax-only|-?emit.*|-?crate-type.*|shared)")


def note(walker: Walker, context: Context, fields: Sequence[Field], stdin: Value | None) -> None:
    """Note what an allowed program does; `context.noted` has what its check came across."""
    name = fields[0].text
    noted = context.noted
    if walker.context.noted is not None and noted is not None:
        walker.context.noted.changed |= noted.changed
        walker.context.noted.read |= noted.read
    _note_odd_names(walker, fields)
    if name not in _KEEPS_CONTENT:
        _note_written(walker, context, fields, stdin)
        for path in sorted(noted.changed) if noted is not None else ():
            if path not in walker.written:
                walker.note_written(path, UNKNOWN)
    if name == "ln":
        _note_link(walker, context, fields)
    if name in _COMPILERS:
        _note_built(walker, context, fields)


def _note_built(walker: Walker, context: Context, fields: Sequence[Field]) -> None:
    """A compiler makes a program of the project's code, which may be run like its tests."""
    texts = [one.text for one in fields[1:]]
    glued = [text[2:] for text in texts if text.startswith("-o") and text != "-o"]
    behind = [after for before, after in itertools.pairwise(texts) if before == "-o"]
    if fields[0].text == "go" and texts[:1] != ["build"]:
        return
    makes = not any(_MAKES_NO_PROGRAM.fullmatch(text) for text in texts)
    for name in [*glued, *behind] or ["a.out"]:
        place = files.real(context, name)
        if makes and not content.will_run(place):
            walker.built.add(place)
        elif glued or behind:
            walker.note_written(place, UNKNOWN)


def _note_odd_names(walker: Walker, fields: Sequence[Field]) -> None:
    """`touch -- -rf` and `cp a ./-rf`: a later `*` puts such a name among the options."""
    texts = [one.text for one in fields[1:]]
    behind = texts[texts.index("--") :] if "--" in texts else []
    names = [text.rpartition("/")[2] for text in texts if "/" in text] + behind[1:]
    walker.makes_odd_names |= any(name.startswith("-") for name in names)


def _note_link(walker: Walker, context: Context, fields: Sequence[Field]) -> None:
    """What comes later in the text goes through a link that is not there yet."""
    plain = [one.text for one in fields[1:] if not one.text.startswith("-")]
    link = files.real(context, plain[-1])
    if context.files.is_folder(link) and context.files.real(f"{link}/.") == link:
        link = f"{link}/{plain[0].rstrip('/').rpartition('/')[2]}"
    target = files.real(context, plain[0], cwd=link.rpartition("/")[0])
    linked = Linked(walker.context.files, {link: target})
    walker.context = replace(walker.context, files=linked)


def _note_written(
    walker: Walker, context: Context, fields: Sequence[Field], stdin: Value | None
) -> None:
    """Files that a program writes are not known any more: they may be run later in the text."""
    name = fields[0].text
    verb = next((one.text for one in fields[1:] if not one.text.startswith("-")), "")
    if name in _MOVES or (name == "git" and verb in _GIT_MOVES):
        walker.has_moved = True
    words = [LooseWord(one.text, one.kind is Kind.KNOWN) for one in fields]
    gives = Value(_given(context, name, fields, stdin), Kind.TEXT)
    for path in written(context, Command(words, cwd=context.cwd)):
        if name == "tee":
            for finding in content.denied(context, path, gives.text):
                raise Refused(finding.rule, finding.reason)
        walker.note_written(path, gives)


def _given(context: Context, name: str, fields: Sequence[Field], stdin: Value | None) -> str:
    """What `cp`, `mv` and `tee` write, as far as that can be said."""
    if name == "tee":
        return stdin.text if stdin is not None and stdin.kind is Kind.KNOWN else ""
    plain = [one.text for one in fields[1:] if not one.text.startswith("-")]
    two = 2
    if name not in ("cp", "mv", "install", "ln") or len(plain) != two:
        return ""
    found = context.files.read(files.real(context, plain[0])) or b""
    return found.decode("utf-8", "replace")
