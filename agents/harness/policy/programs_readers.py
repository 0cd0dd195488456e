"""The programs that only read (rule L1), and which of their options do more than that."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reader:
    """A program that reads. `text_arguments` of its first plain arguments are no paths."""

    dangerous_letters: str = ""
    dangerous_words: tuple[str, ...] = ()
    text_arguments: int = 0
    most_arguments: int | None = None
    metadata_only: bool = False  # it shows nothing of the content
    # Options that give what the first argument gives otherwise: letters, and long names.
    text_letters: str = ""
    text_words: tuple[str, ...] = ()


_ANY_FILE_LIST = ("--files0-from",)

_GREP = Reader(
    dangerous_words=("--exclude-from",),
    text_arguments=1,
    text_letters="ef",
    text_words=("--regexp", "--file"),
)

READERS: dict[str, Reader] = {
    **dict.fromkeys(
        [
            "cat",
            "head",
            "tail",
            "nl",
            "cut",
            "tr",
            "paste",
            "column",
            "fold",
            "cmp",
            "comm",
            "od",
            "strings",
            "md5sum",
            "sha1sum",
            "sha256sum",
            "sha512sum",
            "cksum",
            "b2sum",
            "expand",
            "unexpand",
            "tac",
            "rev",
            "base64",
            "base32",
            "zcat",
            "bzcat",
            "xzcat",
            "nm",
            "readelf",
            "size",
            "join",
            "fmt",
            "pr",
            "tsort",
        ],
        Reader(),
    ),
    **dict.fromkeys(
        ["ls", "stat", "realpath", "readlink", "basename", "dirname", "test", "[", "du", "df"],
        Reader(metadata_only=True, dangerous_words=_ANY_FILE_LIST),
    ),
    **dict.fromkeys(
        [
            "pwd",
            "true",
            "false",
            "echo",
            "printf",
            "seq",
            "expr",
            "sleep",
            "which",
            "type",
            "id",
            "whoami",
            "uname",
            "nproc",
            "free",
            "uptime",
            "ps",
            "pgrep",
            "yes",
            "groups",
            "arch",
            "lscpu",
            "history",
            "dirs",
            "factor",
            "numfmt",
        ],
        Reader(text_arguments=1_000),
    ),
    "wc": Reader(dangerous_words=_ANY_FILE_LIST),
    "diff": Reader(dangerous_letters="l", dangerous_words=("--paginate",)),
    "file": Reader(
        dangerous_letters="CzZmf",
        dangerous_words=("--compile", "--uncompress", "--magic-file", "--files-from"),
    ),
    "sort": Reader(
        dangerous_letters="oT",
        dangerous_words=(
            "--output",
            "--compress-program",
            "--temporary-directory",
            *_ANY_FILE_LIST,
        ),
    ),
    "uniq": Reader(most_arguments=1),  # the second is a file to write
    "xxd": Reader(dangerous_letters="r", most_arguments=1),
    "tree": Reader(dangerous_letters="oR", metadata_only=True, dangerous_words=("--fromfile",)),
    "find": Reader(metadata_only=True),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": Reader(
        dangerous_letters="zu.",  # -u and -. also search what is hidden, and secrets are
        dangerous_words=(
            "--pre",
            "--hostname-bin",
            "--search-zip",
            "--ignore-file",
            "--hidden",
            "--no-ignore",
            "--unrestricted",
        ),
        text_arguments=1,
        text_letters="ef",
        text_words=("--regexp", "--file", "--files", "--type-list"),
    ),
    "jq": Reader(
        dangerous_letters="L", text_arguments=1, text_letters="f", text_words=("--from-file",)
    ),
    "ag": Reader(
        dangerous_letters="uU",
        dangerous_words=("--pager", "--hidden", "--unrestricted"),
        text_arguments=1,
    ),
    "yq": Reader(
        dangerous_letters="is",
        dangerous_words=("--inplace", "--split-exp", "--in-place", "--from-file"),
        text_arguments=1,
    ),
    "shuf": Reader(dangerous_letters="o", dangerous_words=("--output",)),
    "hostname": Reader(most_arguments=0, dangerous_letters="Fb", dangerous_words=("--file",)),
    "date": Reader(text_arguments=1, dangerous_letters="sf", dangerous_words=("--set", "--file")),
    "cd": Reader(metadata_only=True, most_arguments=1),
}
