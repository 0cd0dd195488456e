"""`sed` and `awk`: their texts may print and change lines, but start nothing (rules L5 and A8)."""

import re

from agents.harness.policy import files
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused, check_change, check_read

_ADDRESS = re.compile(r"(?:\d+|\$|first~step)(?:~\d+)?")
_SED_LETTERS = frozenset("pdqQ=nNgGhHxDPlz{}")
_SED_FLAGS = re.compile(r"[gpiImM0-9]*")
_SED_OPTIONS = re.compile(
    r"-[nErszu]+|--(?:quiet|silent|regexp-extended|separate|null-data|unbuffered|posix)"
)
_SED_IN_PLACE = re.compile(r"-[nErszu]*i(?:\.?\w+)?|--in-place(?:=\.?\w+)?")
# A plain name behind `>`, and nothing that would make another one of it.
_AWK_WRITES = re.compile(r"\bprintf?\b[^;{}\"\n>]*>>?\s*\"([^\"\n]*)\"\s*(?=[;}\n]|$)")
_AWK_NEVER = re.compile(
    r"system|getline|@|\bPROCINFO\b|\bENVIRON\b|\bARG[VC]\b|/inet|\bfflush\b|\bclose\b"
)


def check_sed(context: Context, arguments: list[str]) -> str:
    """`L1`, `L5`, or `L2` if it changes files in place."""
    plain, scripts, in_place = _sed_words(arguments)
    for script in scripts:
        _Sed(script).check()
    for path in plain:
        (check_change if in_place else check_read)(context, path)
    return "L2" if in_place else "L1"


def _sed_words(arguments: list[str]) -> tuple[list[str], list[str], bool]:
    """Files, texts, and whether the files are changed in place."""
    plain: list[str] = []
    scripts: list[str] = []
    in_place = False
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if re.fullmatch(r"-[nErsz]*e|--expression", word) and rest:
            scripts.append(rest.pop(0))
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif _SED_IN_PLACE.fullmatch(word) and not re.fullmatch(r"-\w*i\w*[ef]", word):
            in_place = True
        elif not word.startswith("-") or word == "-":
            plain.append(word)
        elif not _SED_OPTIONS.fullmatch(word):
            raise Refused("A8", f"`sed {word}` may change files or start programs")
    if not scripts and plain:
        scripts.append(plain.pop(0))
    return plain, scripts, in_place


class _Sed:
    """Reads a sed text strictly; `e`, `w`, `r` and what is not known are refused."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def check(self) -> None:
        while self._at < len(self._text):
            if self._text[self._at] in " \t\n;":
                self._at += 1
                continue
            self._address()
            self._command()

    def _refuse(self) -> Refused:
        return Refused("A8", "This `sed` text may do more than print and change lines")

    def _skip(self, characters: str) -> None:
        while self._text[self._at : self._at + 1] in tuple(characters):
            self._at += 1

    def _address(self) -> None:
        for _ in range(2):
            self._skip(" \t")
            match = _ADDRESS.match(self._text, self._at)
            if match is not None:
                self._at = match.end()
            elif self._text[self._at : self._at + 1] == "/":
                self._delimited("/", 1)
                self._skip("IM")
            elif self._text[self._at : self._at + 1] == "+":
                self._at += 1
                self._skip("0123456789")
            self._skip(" \t")
            if self._text[self._at : self._at + 1] != ",":
                break
            self._at += 1
        self._skip(" \t!")

    def _delimited(self, delimiter: str, times: int) -> None:
        """Skip `times` parts that end with the delimiter, from the place of the first one."""
        if delimiter in "\\\n" or not delimiter:
            raise self._refuse()
        self._at += 1
        for _ in range(times):
            while self._text[self._at : self._at + 1] not in ("", delimiter):
                self._at += 2 if self._text[self._at] == "\\" else 1
            if self._at >= len(self._text):
                raise self._refuse()
            self._at += 1

    def _line(self) -> None:
        """Skip the text of `a`, `i` and `c`: to the end of the line, unless a backslash is before it."""
        while self._text[self._at : self._at + 1] not in ("", "\n"):
            self._at += 2 if self._text[self._at] == "\\" else 1

    def _command(self) -> None:
        letter = self._text[self._at : self._at + 1]
        if letter in ("s", "y"):
            self._at += 1
            self._delimited(self._text[self._at : self._at + 1], 2)
            flags = _SED_FLAGS.match(self._text, self._at)
            self._at = flags.end() if flags is not None else self._at
        elif letter in ("a", "i", "c"):
            self._line()
            return
        elif letter in ("b", "t", "T", ":"):
            match = re.compile(r".\s*\w*").match(self._text, self._at)
            self._at = match.end() if match is not None else len(self._text)
        elif letter and letter in _SED_LETTERS:
            self._at += 1
            if letter in "qQl":
                self._skip("0123456789")
        else:
            raise self._refuse()
        self._skip(" \t")
        if letter in "{" or self._text[self._at : self._at + 1] in ("", ";", "\n", "}", "#"):
            if self._text[self._at : self._at + 1] == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            return
        raise self._refuse()


def check_awk(context: Context, arguments: list[str]) -> str:
    """`L5`: a text without pipes and programs to start, which writes only files that it names."""
    texts, rest = _awk_words(context, arguments)
    if not rest and not texts:
        raise Refused("A9", "`awk` without its text")
    texts = texts or [rest.pop(0)]
    written = [path for text in texts for path in _check_awk_text(text)]
    for path in written:
        check_change(context, path)
    for path in rest:
        if not re.fullmatch(r"[A-Za-z_]\w*=[\w.,: -]*", path):
            check_read(context, path)
    return "L2" if written else "L5"


def _awk_words(context: Context, arguments: list[str]) -> tuple[list[str], list[str]]:
    """The texts from files, and what follows the options."""
    rest = list(arguments)
    texts: list[str] = []
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        if option in ("-F", "-v") and rest:
            rest.pop(0)
        elif option in ("-f", "--file") and rest:
            check_read(context, rest[0])
            texts.append(_content(context, rest.pop(0)))
        elif not re.fullmatch(r"-F.+|-v[A-Za-z_]\w*=.*|--re-interval|--posix", option, re.DOTALL):
            raise Refused("A8", f"`awk {option}` is an option that is not known")
    return texts, rest


def _content(context: Context, path: str) -> str:
    content = context.files.read(files.real(context, path))
    if content is None:
        raise Refused("C2", f"Runs an `awk` text that cannot be looked at ({path})")
    return content.decode("utf-8", "replace")


def _check_awk_text(text: str) -> list[str]:
    """The files that it writes; their names have to stand there. Raises Refused."""
    refused = Refused("A8", "This `awk` text may start programs or write files")
    if _AWK_NEVER.search(text):
        raise refused
    code = _awk_code(text)
    if code is None or re.search(r"(?<!\|)\|(?!\|)|\|&", code):
        raise refused
    written = [match[1] for match in _AWK_WRITES.finditer(text)]
    if len(re.findall(r"\bprintf?\b[^;{}]*>", code)) != len(written):
        raise refused
    if any("\\" in path or path.startswith("/dev/") for path in written):
        raise refused
    if re.search(r"\(\s*\w*\s*\)\s*\(|\bindirect\b|\bfunction\b.*\bfunction\b", code):
        raise refused
    return written


def _awk_code(text: str) -> str | None:
    """The text without its strings, patterns and comments; None if one of them is not closed."""
    found: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        before = "".join(found).rstrip(" \t")[-1:]
        if character == '"' or (character == "/" and before in ("", *"(,{};!~&|\n")):
            end = _end_of(text, at, character)
            if end is None:
                return None
            found.append('"')
            at = end
        elif character == "#":
            stop = text.find("\n", at)
            at = len(text) if stop < 0 else stop
        else:
            found.append(character)
            at += 1
    return "".join(found)


def _end_of(text: str, at: int, delimiter: str) -> int | None:
    """The place behind a string or a pattern that begins at `at`."""
    at += 1
    while at < len(text) and text[at] not in (delimiter, "\n"):
        at += 2 if text[at] == "\\" else 1
    return at + 1 if at < len(text) and text[at] == delimiter else None
