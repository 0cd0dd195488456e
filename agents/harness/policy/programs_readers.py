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
    value_letters: str = ""  # options with a value behind them that is no path
    text_words: tuple[str, ...] = ()


_ANY_FILE_LIST = ("--files0-from",)

_GREP = Reader(
    dangerous_words=("--exclude-from",),
    text_arguments=1,
    text_letters="ef",
    text_words=("--regexp", "--file"),
)

_PLAIN = (
    ["cat", "head", "tail", "nl", "cut", "tr", "paste", "column", "fold", "cmp", "comm", "od", "strings",
     "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "cksum", "b2sum", "sum",
     "expand", "unexpand", "tac", "rev", "base64", "base32", "zcat", "bzcat", "readelf", "size", "join",
     "fmt", "pr", "tsort", "hexdump", "zipinfo", "look", "diffstat", "hexyl"]
)  # fmt: skip
_METADATA = ["ls", "stat", "realpath", "readlink", "basename", "dirname", "test", "[", "du", "exa",
             "eza", "lsd"]  # fmt: skip
_NO_FILES = (
    ["pwd", "true", "false", "echo", "printf", "seq", "expr", "sleep", "which", "type", "id", "whoami",
     "uname", "nproc", "free", "uptime", "ps", "pgrep", "yes", "groups", "arch", "lscpu", "dirs",
     "factor", "numfmt", "df", "cal", "ncal", "tput", "locale", "getconf", "lsblk", "tty", "logname",
     "users", "who", "w", "lsmod", "findmnt", "uuidgen", "pidof", "vmstat", "iostat", "lsns", "jot"]
)  # fmt: skip
READERS: dict[str, Reader] = {
    **dict.fromkeys(_PLAIN, Reader()),
    **dict.fromkeys(_METADATA, Reader(metadata_only=True, dangerous_words=_ANY_FILE_LIST)),
    **dict.fromkeys(_NO_FILES, Reader(text_arguments=1_000)),
    "wc": Reader(dangerous_words=_ANY_FILE_LIST),
    **dict.fromkeys(("nm", "objdump"), Reader(dangerous_words=("--plugin",))),
    **dict.fromkeys(("xzcat", "zstdcat"), Reader(dangerous_words=("--files", "--files0", "--filelist"))),
    "history": Reader(most_arguments=0, dangerous_letters="awrncdps"),
    "ss": Reader(text_arguments=1_000, dangerous_letters="KDNF",
                 dangerous_words=("--kill", "--diag", "--net", "--filter")),
    "getent": Reader(text_arguments=1_000),
    "fd": Reader(metadata_only=True, text_arguments=1, dangerous_letters="xX",
                 dangerous_words=("--exec", "--exec-batch", "--ignore-file")),
    "diff": Reader(dangerous_letters="l", dangerous_words=("--paginate",)),
    "file": Reader(dangerous_letters="CzZmf", dangerous_words=("--compile", "--uncompress",
                   "--magic-file", "--files-from")),
    "sort": Reader(dangerous_letters="T", dangerous_words=("--compress-program",
                   "--temporary-directory", *_ANY_FILE_LIST)),
    "uniq": Reader(most_arguments=1, value_letters="fsw"),  # the second is a file to write
    "xxd": Reader(most_arguments=1, value_letters="clsgo"),
    "tree": Reader(dangerous_letters="oR", metadata_only=True, dangerous_words=("--fromfile",)),
    "find": Reader(metadata_only=True),
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "zegrep", "zfgrep", "bzgrep", "xzgrep"), _GREP),
    "rg": Reader(
        dangerous_letters="zu.",  # -u and -. also search what is hidden, and secrets are
        dangerous_words=("--pre", "--hostname-bin", "--search-zip", "--ignore-file", "--hidden",
                         "--no-ignore", "--unrestricted"),
        text_arguments=1, text_letters="ef",
        text_words=("--regexp", "--file", "--files", "--type-list"),
    ),
    "jq": Reader(dangerous_letters="L", text_arguments=1, text_letters="f", text_words=("--from-file",)),
    "ag": Reader(dangerous_letters="uU", dangerous_words=("--pager", "--hidden", "--unrestricted"),
                 text_arguments=1),
    "yq": Reader(dangerous_letters="s", dangerous_words=("--split-exp", "--from-file"), text_arguments=1),
    "shuf": Reader(dangerous_letters="o", dangerous_words=("--output",)),
    "hostname": Reader(most_arguments=0, dangerous_letters="Fb", dangerous_words=("--file",)),
    "date": Reader(text_arguments=1, dangerous_letters="sf", dangerous_words=("--set", "--file")),
    "cd": Reader(metadata_only=True, most_arguments=1),
}  # fmt: skip
# `NAME --version` only says which one is installed.
TELL_VERSION = frozenset(
    ["vim", "nvim", "emacs", "nano", "ruby", "php", "java", "javac", "perl", "lua", "luajit", "gcc",
     "g++", "clang", "clang++", "make", "cmake", "bazel", "npm", "pnpm", "yarn", "bun", "deno", "rustc",
     "rustup", "cargo", "swift", "kotlinc", "scala", "ghc", "elixir", "erl", "psql", "mysql", "mariadb",
     "redis-server", "redis-cli", "valkey-server", "nginx", "postgres", "pip", "pip3", "uv", "uvx",
     "poetry", "hatch", "pdm", "pipenv", "tox", "nox", "docker", "podman", "kubectl", "helm",
     "terraform", "aws", "gcloud", "az", "git", "gh", "hg", "svn", "ssh", "openssl", "curl", "wget",
     "tmux", "screen", "zsh", "bash", "sh", "dash", "fish", "sqlite3", "ffmpeg", "convert", "magick",
     "pandoc", "latex", "xelatex", "gradle", "mvn", "ant", "sbt", "dotnet", "go", "gofmt", "node",
     "nodejs", "python", "python3", "ruff", "black", "mypy", "flake8", "pylint", "isort", "pytest",
     "coverage", "eslint", "prettier", "tsc", "jest", "vitest", "mocha", "rspec", "rake", "bundle",
     "gem", "composer", "phpunit", "mix", "rebar3", "zig", "nim", "julia", "R", "shellcheck", "shfmt",
     "hadolint", "yamllint", "jq", "yq", "rg", "fd", "fzf", "bat", "tree", "ninja", "meson", "ctest",
     "gdb", "lldb", "valgrind", "strace", "ldd", "patch", "tar", "gzip", "zip", "unzip", "xz", "zstd",
     "rsync", "find", "grep", "sed", "awk", "gawk", "protoc", "buf", "pre-commit", "just", "task",
     "direnv", "act", "ansible"]
)  # fmt: skip
