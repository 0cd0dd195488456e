"""What a command prints, as far as that is known before it runs."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise, takewhile

from agents.harness.policy import files
from agents.harness.policy.context import Context
from agents.harness.policy.secrets import is_secret_name, may_match_secret
from agents.harness.policy.values import LISTED, NUMBER, UNKNOWN, Field, Kind, State, Value

_FILTERS = frozenset({"sort", "uniq", "head", "tail", "tac", "grep", "egrep", "fgrep"})
_HINTS_AT_SECRETS = re.compile(r"(?i)env|key|pem|secret|cred|id_|netrc|token|history|tfstate|ssh")
_USUAL_SECRETS = (
    ".env",
    ".env.production",
    "id_rsa",
    "x.pem",
    "x.key",
    ".netrc",
    "terraform.tfstate",
)
_UNTRACKED = re.compile(r"-\w*[oiz]|--(?:o|i)\w*")
_ANY_NAME = re.compile(r"-o|-or|,|!|-not|-[LH]|-follow|-files0-from|-i?lname|-printf|-ls|-i?name")


def printed(context: Context, fields: Sequence[Field], state: State) -> Value:
    """The output of a command that is allowed."""
    name = fields[0].text.rpartition("/")[2]
    rest = list(fields[1:])
    if name in ("echo", "printf"):
        return _echoed(rest) if name == "echo" else _formatted(rest)
    if name == "cat" and not rest and state.stdin is not None:
        return state.stdin
    if name in _FILTERS:
        return _filtered(name, rest, state)
    texts = [one.text for one in rest if one.is_constant]
    if len(texts) < len(rest):
        return UNKNOWN
    if name in ("nproc", "date") and all(text in ("+%s", "+%Y%m%d", "+%F") for text in texts):
        return NUMBER if name == "nproc" or texts else UNKNOWN
    return _places(context, name, texts, state) or _listed(name, texts, fields)


def _echoed(rest: list[Field]) -> Value:
    if any(one.kind is Kind.LISTED for one in rest) and len(rest) == 1:
        return LISTED
    if not all(one.is_constant for one in rest):
        return UNKNOWN
    texts = [one.text for one in rest]
    ended = "\n"
    while texts and re.fullmatch(r"-n?", texts[0]) and texts[0] != "-":
        texts.pop(0)
        ended = ""
    if texts and re.fullmatch(r"-[neE]+", texts[0]):
        return UNKNOWN
    return Value(" ".join(texts) + ended, Kind.KNOWN)


def _formatted(rest: list[Field]) -> Value:
    """`printf` with nothing but `%s` and line ends, once over its values."""
    if not rest or not all(one.is_constant for one in rest):
        return UNKNOWN
    template, values = rest[0].text, [one.text for one in rest[1:]]
    pieces = re.split(r"%s", template.replace("\\n", "\n").replace("\\t", "\t"))
    if any("%" in piece or "\\" in piece for piece in pieces) or template.startswith("-"):
        return UNKNOWN
    places = len(pieces) - 1
    if not places:
        return Value(pieces[0], Kind.KNOWN)
    text = ""
    for start in range(0, max(len(values), 1), places):
        row = [*values[start : start + places], *[""] * places][:places]
        text += pieces[0] + "".join(
            value + piece for value, piece in zip(row, pieces[1:], strict=True)
        )
    return Value(text, Kind.KNOWN)


def _filtered(name: str, rest: list[Field], state: State) -> Value:
    """A filter lets through some of the paths that it gets."""
    if state.stdin != LISTED or not all(one.is_constant for one in rest):
        return UNKNOWN
    plain = [one.text for one in rest if not one.text.startswith("-")]
    options = [one.text for one in rest if one.text.startswith("-")]
    if name.endswith("grep"):
        is_choice = all(re.fullmatch(r"-[vEFiPx]+", option) for option in options)
        harmless = "v" in "".join(options) or not _HINTS_AT_SECRETS.search("".join(plain))
        return LISTED if len(plain) == 1 and is_choice and harmless else UNKNOWN
    is_plain = all(re.fullmatch(r"-(?:[ru]+|n?\d*)", option) for option in options)
    return LISTED if is_plain and all(text.isdigit() for text in plain) else UNKNOWN


def _places(context: Context, name: str, texts: list[str], state: State) -> Value | None:
    if len(state.folders) != 1:
        return None
    folder = next(iter(state.folders))
    if name == "pwd" and not texts:
        return Value(folder + "\n", Kind.KNOWN)
    is_top = name == "git" and texts == ["rev-parse", "--show-toplevel"]
    if is_top and files.is_below(folder, context.workspace):
        return Value(f"{context.workspace}\n", Kind.KNOWN)
    return None


def _listed(name: str, texts: list[str], fields: Sequence[Field]) -> Value:
    plain = [text for text in texts if not text.startswith("-")]
    harmless = not any(_finds_secret(text.rpartition("/")[2]) for text in plain)
    if any(text.startswith("/") or ".." in text.split("/") for text in plain):
        return UNKNOWN
    if name == "git" and plain and harmless:
        is_list = plain[0] == "ls-files" or (plain[0] == "diff" and "--name-only" in texts)
        return LISTED if is_list and not any(_UNTRACKED.fullmatch(t) for t in texts) else UNKNOWN
    if name == "rg" and harmless and "--files" in texts:
        is_known = all(
            re.fullmatch(r"--files|-g|-t|--glob|--type", t) for t in texts if t[:1] == "-"
        )
        return LISTED if is_known else UNKNOWN
    if name == "find" and found_by(fields).kind is Kind.LISTED:
        return LISTED
    return UNKNOWN


def _finds_secret(pattern: str) -> bool:
    return may_match_secret(pattern) or is_secret_name(pattern)


def found_by(fields: Sequence[Field]) -> Field:
    """A path that `find` gives out, by the place where it starts and the name that it looks for."""
    unknown = Field("", Kind.TEXT, quoted=True)
    if not all(one.kind is Kind.KNOWN for one in fields):
        return unknown
    texts = [one.text for one in fields[1:]]
    starts = list(takewhile(lambda text: not text.startswith(("-", "(", "!")), texts))
    if not starts or any(start.startswith("/") or ".." in start for start in starts):
        return unknown
    names = [after for before, after in pairwise(texts) if before in ("-name", "-iname")]
    odd = [
        text
        for text, after in pairwise([*texts, ""])
        if _ANY_NAME.fullmatch(text) and text not in ("-name", "-iname")
        and not (text in ("!", "-not") and after in ("-path", "-wholename"))
    ]  # fmt: skip
    if (
        len(names) != 1
        or odd
        or _finds_secret(names[0])
        or any(fnmatchcase(one, names[0].casefold()) for one in _USUAL_SECRETS)
    ):
        return unknown
    return Field(f"./{names[0]}", Kind.LISTED, quoted=True)
