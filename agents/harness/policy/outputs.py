"""What a command prints, as far as that is known before it runs."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise, takewhile

from agents.harness.policy import files
from agents.harness.policy.context import Context
from agents.harness.policy.secrets import SECRET_GLOBS, is_secret_name, may_match_secret
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
_UNTRACKED = re.compile(r"-\w*[oi]|--(?:o|i)\w*")
_COMMITS = re.compile(r"(?:rev-list|rev-parse|merge-base|log)(?: (?:-n|-n?\d+|--short(?:=\d+)?|--no-merges|--reverse"
                      r"|--format=%[hH]|--pretty=format:%[hH]|[\w./~^]+|--since=[\w .-]+))*")  # fmt: skip
_CHOOSES = re.compile(
    r"(?:-type f|-[mac]?(?:min|time) [-+]?\d+|-size [-+]?\d+\w?|-(?:max|min)depth \d+|-print0?|-empty"
    r"|-newer \S+|(?:! |-not )-path \S+| )*"
)
_COUNTING_GREP = re.compile(r"-[ciEFvwxP]*c[ciEFvwxP]* \S+(?: [^\s*?-]\S*)?")
_MOST_NAMES = 500
_FOUND = Value("./found", Kind.FOUND)
NO_SECRETS = "./found-no-secret"  # stands for files of a folder in which no secret has been seen
_FOLLOWS_NOTHING = frozenset({"-L", "-H", "-follow", "-files0-from", "-printf", "-fprintf", "-ls"})
_ANY_NAME = re.compile(r"-o|-or|,|!|-not|-[LH]|-follow|-files0-from|-i?lname|-printf|-ls|-i?name")


def printed(context: Context, fields: Sequence[Field], state: State) -> Value:
    """The output of a command that is allowed."""
    name = fields[0].text.rpartition("/")[2]
    rest = list(fields[1:])
    if name in ("echo", "printf"):
        return _echoed(rest) if name == "echo" else _formatted(rest)
    if name == "cat" and not rest:
        return state.stdin or UNKNOWN
    if name in _FILTERS and state.stdin is not None and state.stdin.kind is Kind.LISTED:
        return _filtered(name, rest, state)
    if name == "ls":
        return _names(context, rest, state)
    texts = [one.text for one in rest if one.is_constant]
    if len(texts) < len(rest):
        return UNKNOWN
    return (
        _numbers(context, name, texts)
        or _places(context, name, texts, state)
        or _listed(context, name, texts, fields, state)
    )


def _numbers(context: Context, name: str, texts: list[str]) -> Value | None:
    """What is made of digits, or of a known text with digits in it."""
    words = " ".join(texts)
    is_count = (name in ("grep", "egrep", "fgrep") and _COUNTING_GREP.fullmatch(words)) or (
        name == "git" and re.fullmatch(r"rev-list --count(?: [\w./~^-]+)+", words)
    )  # of one file: with several, grep prints the names
    if is_count or name == "nproc" or (name == "date" and words in ("+%s", "+%Y%m%d", "+%F")):
        return NUMBER
    if name == "wc" and re.fullmatch(r"-[lwcm]", words):  # with a file it prints the name, too
        return NUMBER
    if name == "mktemp":
        return Value(f"{context.scratch}/made.0000000000\n", Kind.NAMED)
    if name == "git" and _COMMITS.fullmatch(words):
        return Value("0000000", Kind.NAMED)
    return None


def _names(context: Context, rest: list[Field], state: State) -> Value:
    """What `ls` prints: names of files here, if none of them is odd, and none a secret."""
    patterns = [one.text for one in rest if not one.text.startswith("-")] or ["*"]
    options = [one.text for one in rest if one.text.startswith("-")]
    if any(not re.fullmatch(r"-[1trS]+", option) for option in options) or len(patterns) > 1:
        return UNKNOWN
    is_plain = patterns[0] == "*" or re.search(r"\*\.\w+$", patterns[0]) is not None
    if not is_plain or not all(one.kind is Kind.KNOWN for one in rest):
        return UNKNOWN
    for folder in state.folders:
        found = context.files.matches(patterns[0], folder=folder, limit=_MOST_NAMES)
        names = [path.rpartition("/")[2] for path in found]
        is_odd = any(name.startswith("-") or set(" \t\n'\"\\") & set(name) for name in names)
        if is_odd or len(found) >= _MOST_NAMES or any(map(files.is_secret, found)):
            return UNKNOWN
    return Value(f"./{patterns[0].removeprefix('./').replace('*', 'listed')}", Kind.LISTED)


def _echoed(rest: list[Field]) -> Value:
    if len(rest) == 1 and rest[0].kind is Kind.LISTED:
        return Value(rest[0].text, Kind.LISTED)
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
    template = re.sub(r"\\0(?!\d)", "\0", template.replace("\\n", "\n").replace("\\t", "\t"))
    pieces = re.split(r"%s", template)
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
    stdin = state.stdin
    if stdin is None or stdin.kind is not Kind.LISTED or not all(one.is_constant for one in rest):
        return UNKNOWN
    plain = [one.text for one in rest if not one.text.startswith("-")]
    options = [one.text for one in rest if one.text.startswith("-")]
    if name.endswith("grep"):
        is_choice = all(re.fullmatch(r"-[vEFiPx]+", option) for option in options)
        harmless = "v" in "".join(options) or not _HINTS_AT_SECRETS.search("".join(plain))
        return stdin if len(plain) == 1 and is_choice and harmless else UNKNOWN
    is_plain = all(re.fullmatch(r"-(?:[ruz]+|n?\d*)", option) for option in options)
    return stdin if is_plain and all(text.isdigit() for text in plain) else UNKNOWN


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


def _listed(
    context: Context, name: str, texts: list[str], fields: Sequence[Field], state: State
) -> Value:
    plain = [text for text in texts if not text.startswith("-")]
    harmless = not any(_finds_secret(text.rpartition("/")[2]) for text in plain)
    if any(text.startswith("/") or ".." in text.split("/") for text in plain):
        return UNKNOWN
    if name == "git" and plain and harmless:
        return _by_git(plain, texts)
    if name in ("grep", "rg", "fd") and harmless:
        listed = _by_fd(texts) if name == "fd" else _by_search(name, texts, plain)
        is_open = listed.kind is Kind.LISTED and not re.fullmatch(r".*\.\w+", listed.text)
        if is_open and (
            _HINTS_AT_SECRETS.search("".join(plain)) or _holds_secrets(context, plain[1:], state)
        ):
            return Value(listed.text, Kind.FOUND)
        return listed
    if name == "find":
        found = found_here(context, fields, state)
        return Value(found.text, found.kind) if found.kind < Kind.TEXT else UNKNOWN
    return UNKNOWN


def _by_git(plain: list[str], texts: list[str]) -> Value:
    """`git ls-files`, `git diff --name-only` and `git grep -l`."""
    is_list = plain[0] == "ls-files" or (plain[0] == "diff" and "--name-only" in texts)
    if plain[0] == "grep" and re.search(r" -\w*l| --name-only| --files-with", " ".join(texts)):
        return LISTED
    if not is_list:
        return UNKNOWN
    if any(_UNTRACKED.fullmatch(text) for text in texts):
        return Value(LISTED.text, Kind.FOUND)
    only = plain[1:] if plain[0] == "ls-files" else []
    if len(only) == 1 and re.fullmatch(r"[\w*./-]+", only[0]):
        return Value(f"./{only[0].removeprefix('./').replace('*', 'listed')}", Kind.LISTED)
    return LISTED


def _by_search(name: str, texts: list[str], plain: list[str]) -> Value:
    """`grep -rl TEXT FOLDER`: files below folders that are named; `rg --files`."""
    if name == "rg" and "--files" in texts:
        known = (re.fullmatch(r"--files|-g|-t|--glob|--type", t) for t in texts if t[:1] == "-")
        return (LISTED if len(texts) > 1 else _FOUND) if all(known) else UNKNOWN
    options = "".join(text for text in texts if text.startswith("-"))
    folders = [text.removeprefix("./").rstrip("/.") for text in plain[1:]]
    is_list = re.search(r"(?:^|-)\w*l|--files-with-matches", options) is not None
    gives_text = any(re.match(r"-(?!-)\w*[fe]|--(?:file|regexp)\b", text) for text in texts)
    if not is_list or gives_text:
        return UNKNOWN
    includes = [text.partition("=")[2] for text in texts if text.startswith("--include=")]
    if name == "grep" and not all(folders):
        text = "".join(includes).replace("*", "listed")
        return Value(f"./{text}", Kind.LISTED) if len(includes) == 1 else UNKNOWN
    end = includes[0].replace("*", "listed") if len(includes) == 1 else "listed"
    return Value(f"./{folders[0]}/{end}" if len(folders) == 1 else LISTED.text, Kind.LISTED)


def _by_fd(texts: list[str]) -> Value:
    """`fd -e py`: files whose names end in something that is no secret."""
    if any(re.match(r"-\w*[HIuL]|--(?:hid|no-i|unr|fol)", text) for text in texts):
        return UNKNOWN
    ends = [after for before, after in pairwise(texts) if before in ("-e", "--extension")]
    is_code = len(ends) == 1 and not _HINTS_AT_SECRETS.search(ends[0]) and ends[0].isalnum()
    return Value(f"./listed.{ends[0]}", Kind.LISTED) if is_code else _FOUND


def _holds_secrets(context: Context, folders: list[str], state: State) -> bool:
    """Whether there is a secret in one of the folders, not far down."""
    return any(
        files.is_secret(path)
        for place in state.folders
        for folder in folders or [""]
        for below in ("", "*/", "*/*/")
        for glob in SECRET_GLOBS
        for path in context.files.matches(_below(folder, f"{below}{glob}"), folder=place, limit=9)
    )


def _below(folder: str, pattern: str) -> str:
    folder = folder.removeprefix("./").strip("/")
    return pattern if folder in ("", ".") else f"{folder}/{pattern}"


def _finds_secret(pattern: str) -> bool:
    return may_match_secret(pattern) or is_secret_name(pattern)


def found_here(context: Context, fields: Sequence[Field], state: State) -> Field:
    """See `found_by`; a kind of file that secrets are of, too, may be one where there are some."""
    found = found_by(fields)
    if (
        found.kind is Kind.FOUND
        and _finds_all(fields)
        and not _holds_secrets(context, _starts(fields), state)
    ):
        return Field(NO_SECRETS, Kind.FOUND, quoted=True)
    is_mixed = found.kind is Kind.LISTED and found.text.endswith((".json", ".yml", ".yaml"))
    if is_mixed and _holds_secrets(context, [], state):
        return Field(found.text, Kind.FOUND, quoted=True)
    return found


def _finds_all(fields: Sequence[Field]) -> bool:
    """Whether `find` only chooses by kind, age and size."""
    rest = [one.text for one in fields[1:]][len(_starts(fields)) :]
    tests = rest[: rest.index("-exec")] if "-exec" in rest else rest
    return _CHOOSES.fullmatch(" ".join(tests)) is not None


def _starts(fields: Sequence[Field]) -> list[str]:
    return list(
        takewhile(
            lambda text: not text.startswith(("-", "(", "!")), [one.text for one in fields[1:]]
        )
    )


def found_by(fields: Sequence[Field]) -> Field:
    """A path that `find` gives out, by the place where it starts and the name that it looks for."""
    if not all(one.kind is Kind.KNOWN for one in fields):
        return Field("", Kind.TEXT, quoted=True)
    texts = [one.text for one in fields[1:]]
    starts = list(takewhile(lambda text: not text.startswith(("-", "(", "!")), texts))
    is_outside = any(start.startswith("/") or ".." in start for start in starts)
    if is_outside or not _FOLLOWS_NOTHING.isdisjoint(texts):
        return Field("", Kind.TEXT, quoted=True)
    unknown = Field("./found", Kind.FOUND, quoted=True)
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
