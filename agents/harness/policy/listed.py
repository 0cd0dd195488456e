"""Where names may go of which only this is known: they are files of the workspace, and no secrets."""

import re
from collections.abc import Sequence

from agents.harness.policy.programs_change import is_regenerable_name
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.values import Field

_READ_LISTED = frozenset(
    ["cat", "head", "tail", "wc", "nl", "ls", "stat", "md5sum", "sha1sum", "sha256sum", "sha512sum",
     "cksum", "basename", "dirname", "grep", "egrep", "fgrep", "echo", "printf", "test", "[", "du",
     "cmp", "diff", "file", "ruff", "black", "mypy", "flake8", "isort", "pylint", "pytest", "python",
     "python3", "node", "eslint", "prettier", "npx", "shellcheck", "git", "sed", "rm", "touch",
     "realpath", "readlink", "awk", "gawk", "jq", "yq", "cut", "sort", "uniq", "tac", "rev", "fold",
     "fmt", "expand", "strings", "xxd", "od", "hexdump", "tr", "comm", "paste", "column", "base64", "rg",
     "zcat", "javac", "gcc", "g++", "clang", "go", "gofmt", "rustfmt", "bash", "tsc", "perl", "ruby",
     "php", "chmod", "dos2unix", "clang-format"]
)  # fmt: skip
_GIT_LISTED = frozenset({"add", "diff", "log", "blame", "show"})
_ONLY_CODE = re.compile(
    r"\./(?!node_modules/|venv/)[A-Za-z]\w*/(?:[\w-]+/)*[\w-]*listed[\w.]*"
    r"|\./[\w*?.-]*\.(?:py|js|ts|tsx|jsx|css|html|md|rst|txt|go|rs|java|c|h|cpp|rb|php)"
)
_LONG_FLAGS = re.compile(
    r"--(?:fix|write|check|quiet|diff|no-[\w-]+|colou?r|list-different|verbose|strict|silent|staged|cached|stat|null|count"
    r"|with-filename|files-with(?:out)?-match(?:es)?|line-number|recursive|word-regexp|ignore-case|fixed-strings|brief"
    r"|extended-regexp|oneline|no-edit|max-warnings|ci|coverage|all|intent-to-add|lines|bytes|words|)"
)
_TAKES_TEXT = frozenset(
    {"awk", "gawk", "sed", "jq", "yq", "perl", "ruby", "php", "rg", "grep", "egrep", "fgrep"}
)
_WRITES_SECOND = frozenset({"uniq", "xxd"})
# Letters of options that take the next word as their value.
_VALUE_LETTERS = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg"), "efgtmABC"),
    **dict.fromkeys(("awk", "gawk"), "fFv"),
    **dict.fromkeys(("gcc", "g++", "clang"), "oILDxe"),
    **dict.fromkeys(("perl", "ruby", "php"), "eEIMmFxrdfC"),
    "sed": "ef", "jq": "fL", "sort": "oTktS", "javac": "d", "go": "o", "tsc": "p", "npx": "copf", "eslint": "cof",
    "mypy": "pmc", "pytest": "copkmnW", "bash": "cO", "git": "mFCcS", "node": "erpC", "python": "cm", "python3": "cm",
}  # fmt: skip


def check_listed(name: str, fields: Sequence[Field], at: int) -> None:
    """Raise Refused unless the program may have such a name as its word number `at`."""
    verb = next((one.text for one in fields[1:at] if not one.text.startswith("-")), "")
    is_known = name in _READ_LISTED and (name != "git" or verb in _GIT_LISTED)
    if not is_known or _is_no_file_there(name, fields, at):
        raise Refused("A9", f"`{name}` gets names of files that are not known")
    text = fields[at].text
    if name == "rm" and not is_regenerable_name(text.removeprefix("./")):
        raise Refused("A3", "Deletes files whose names are not known")
    if _changes(name, fields) and not _ONLY_CODE.fullmatch(text):
        raise Refused("A5", "Changes files whose names are not known")


def _changes(name: str, fields: Sequence[Field]) -> bool:
    in_place = any(re.match(r"-\w*i|--i", one.text) for one in fields)
    return name in ("chmod", "dos2unix") or (
        in_place and name in ("sed", "perl", "ruby", "yq", "clang-format")
    )


def _is_no_file_there(name: str, fields: Sequence[Field], at: int) -> bool:
    """Whether the word would be a text to run, a setting or a result."""
    before = fields[at - 1].text
    if before.startswith("--"):
        takes_value = _LONG_FLAGS.fullmatch(before) is None and "=" not in before
    else:
        letters = _VALUE_LETTERS.get(name, "")
        takes_value = bool(letters) and re.fullmatch(rf"-\w*[{letters}]", before) is not None
    texts = [one for one in fields[1:at] if one.is_constant and not one.text.startswith("-")]
    lacks_text = name in _TAKES_TEXT and not texts
    return takes_value or lacks_text or name in _WRITES_SECOND or (name == "go" and before == "run")
