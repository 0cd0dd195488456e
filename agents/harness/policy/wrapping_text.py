"""Looks strictly through programs that give a text to a shell, or keep what a program prints."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from agents.harness.policy import files
from agents.harness.policy.programs_paths import Refused, check_change
from agents.harness.policy.values import UNKNOWN, Field, Kind
from agents.harness.policy.walk import Run, Walker
from agents.harness.policy.wrapping_options import Options, after_options

_PLAIN = re.compile(r"[\w./:@%+,=-]+")


def _options(
    run: Run, options: Options, patterns: dict[str, str]
) -> tuple[dict[str, str], list[Field]]:
    """Options with their values, which have to match their patterns, and the words behind them."""
    name = run.fields[0].text
    pairs, rest = after_options(name, run.fields[1:], options)
    found: dict[str, str] = {}
    for option, value in pairs:
        found[option] = value
        if value and not re.fullmatch(patterns.get(option, r"[\w.=%,]+"), value):
            raise Refused("A8", f"`{name} {option} {value}` is not known")
    return found, rest


def _change(walker: Walker, run: Run, path: str) -> None:
    for folder in run.state.folders:
        check_change(replace(walker.context, cwd=folder), path)
        walker.note_written(files.real(walker.context, path, cwd=folder), UNKNOWN)


def _shell(run: Run, text: str) -> Run:
    return replace(run, fields=[Field("sh"), Field("-c"), Field(text)])


def _joined(run: Run, words: Sequence[Field]) -> Run:
    """The words as one text for a shell, which reads them again."""
    if not words or not all(word.is_constant for word in words):
        raise Refused("A9", f"`{run.fields[0].text}` starts something that is not known")
    return _shell(run, " ".join(word.text for word in words))


def _watch(_walker: Walker, run: Run) -> list[Run]:
    options = Options("tgdebcpx", "n", ("--no-title", "--chgexit", "--differences", "--errexit", "--beep", "--color",
                                        "--precise", "--interval="))  # fmt: skip
    found, rest = _options(run, options, {"-n": r"[\d.]+"})
    if any("x" in option for option in found if not option.startswith("--")) or not rest:
        raise Refused("A9", "`watch` like this is not known")
    return [_joined(run, rest)]


def _flock(walker: Walker, run: Run) -> list[Run]:
    options = Options("nsxeuFov", "wE", ("--nonblock", "--nb", "--shared", "--exclusive", "--wait=", "--timeout=",
                                         "--close", "--no-fork", "--verbose"))  # fmt: skip
    _, rest = _options(run, options, {})
    if len(rest) < len(("FILE", "COMMAND")) or not rest[0].is_constant:
        raise Refused("A9", "`flock` like this is not known")
    _change(walker, run, rest[0].text)
    if rest[1].text in ("-c", "--command"):
        return [_joined(run, rest[2:3])]
    return [replace(run, fields=rest[1:])]


def _script(walker: Walker, run: Run) -> list[Run]:
    options = Options("qefa", "c", ("--quiet", "--return", "--flush", "--append"))
    found, rest = _options(run, options, {"-c": r"(?s).+"})
    if "-c" not in found or len(rest) > 1 or not all(one.is_constant for one in rest):
        raise Refused("A9", "`script` like this is not known")
    path = rest[0].text if rest else "typescript"
    if path != "/dev/null":
        _change(walker, run, path)
    return [_shell(run, found["-c"])]


def _strace(walker: Walker, run: Run) -> list[Run]:
    options = Options("cCfqrtTvwxyiYnkz", "oesS", ("--follow-forks",))
    found, rest = _options(run, options, {"-o": r"[\w./-]+", "-e": r"[\w=!,%/-]+"})
    if "inject" in found.get("-e", ""):
        raise Refused("A9", "`strace` changes what the program sees")
    if "-o" in found:
        _change(walker, run, found["-o"])
    return [replace(run, fields=rest)]


def _parallel(_walker: Walker, run: Run) -> list[Run]:
    """`parallel COMMAND ::: WORDS`: a shell reads the command with each of the words in it."""
    options = Options("ku", "jP", ("--jobs=", "--keep-order", "--halt=", "--ungroup"))
    _, rest = _options(run, options, {})
    texts = [one.text for one in rest]
    if ":::" not in texts or not all(one.is_constant or ":::" in texts[:at]
                                     for at, one in enumerate(rest)):  # fmt: skip
        raise Refused("A9", "`parallel` like this is not known")
    at = texts.index(":::")
    command, words = " ".join(texts[:at]), rest[at + 1 :]
    if not command or re.search(r"\{(?!\})|(?<!\{)\}", command):
        raise Refused("A9", "`parallel` like this is not known")
    runs = []
    for word in words:
        if word.kind is not Kind.KNOWN or word.glob or not _PLAIN.fullmatch(word.text):
            raise Refused("A9", "`parallel` gets something that is not known")
        text = command.replace("{}", word.text)
        runs.append(_shell(run, text if "{}" in command else f"{command} {word.text}"))
    return runs


def _zsh(_walker: Walker, run: Run) -> list[Run] | None:
    """zsh reads patterns and `=name` in ways of its own; without them it reads like the others."""
    texts = [one.text for one in run.fields[1:]]
    if texts in (["--version"], ["-n"]):
        return None
    plain = re.fullmatch(r"[\w ./:@%+,'\"&|;-]+", texts[1]) if texts[1:] else None
    if texts[:1] not in (["-c"], ["-fc"]) or plain is None or not run.fields[2].is_constant:
        raise Refused("A9", "Runs a text in another shell (zsh)")
    return [_shell(run, texts[1])]


STARTS: dict[str, Callable[[Walker, Run], list[Run] | None]] = {
    "watch": _watch,
    "flock": _flock,
    "script": _script,
    "strace": _strace,
    "parallel": _parallel,
    "zsh": _zsh,
}
