"""Which variables a command line may set without a question (the others make programs run code)."""

import re

from agents.harness.policy import files
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.values import Kind, Value

# What programs, loaders and the shell itself take commands, code or settings from.
_DANGEROUS = re.compile(
    r"LD_\w+|DYLD_\w+|GCONV_PATH|BASH\w*|ENV|PATH|CDPATH|IFS|SHELL\w*|GLOBIGNORE|PS[0-4]"
    r"|PROMPT_COMMAND|HOME|XDG_\w+|TMPDIR|TEMP|TMP|NODE_\w+|PYTHON\w*|PERL\w*|RUBY\w*|GEM_\w+|BUNDLE_\w+"
    r"|GIT_\w+|\w*PAGER|\w*EDITOR|VISUAL|LESS\w*|BROWSER|MAKE\w*|GNUMAKEFLAGS|CC|CXX|LD|AR|CPP"
    r"|\w*FLAGS|CARGO\w*|RUST\w*|GO\w+|CGO\w*|npm_\w+|NPM_\w+|PNPM_\w+|YARN_\w+|PIP_\w+|UV_\w+|POETRY_\w+"
    r"|TAR_OPTIONS|ZIPOPT|UNZIP\w*|GZIP|XZ_\w+|GREP_OPTIONS|RIPGREP_CONFIG_PATH|JAVA_\w+|_JAVA_OPTIONS"
    r"|JDK_\w+|MAVEN_\w+|GRADLE_\w+|DOTNET_\w+|PHP\w*|LUA_\w+|PYTEST_\w+|TOX_\w+|NOX_\w+|COVERAGE_\w+"
    r"|\w*_proxy|\w*_PROXY|SSH_\w+|SSL_\w+|CURL_\w+|WGETRC|MANPATH|MANROFF\w*|FIGNORE|HIST\w*|INPUTRC"
    r"|OPENSSL_\w+|JQ_\w+|LOCPATH|NLSPATH|TERMINFO\w*|DOCKER_\w+|KUBECONFIG|AWS_\w+|PULLCORD_\w*|_"
)
_PLAIN: dict[str, str] = {
    "PATH": r"(?:/usr/local/s?bin|/usr/s?bin|/s?bin)(?::(?:/usr/local/s?bin|/usr/s?bin|/s?bin))*",
    "PAGER": r"cat|",
    "GIT_PAGER": r"cat|",
    "MANPAGER": r"cat",
    "EDITOR": r"true|:",
    "GIT_EDITOR": r"true|:",
    "GIT_SEQUENCE_EDITOR": r"true|:",
    "LESS": r"-?[FRSXNMiejnqQ]+",
    "LESSCHARSET": r"[\w-]+",
    "GREP_COLORS": r"[\w=;,:]*",
    "GIT_TERMINAL_PROMPT": r"0",
    "GIT_OPTIONAL_LOCKS": r"[01]",
    "NODE_ENV": r"\w+",
    "NODE_OPTIONS": r"--max[-_]old[-_]space[-_]size=\d+|--no-warnings|--trace-warnings",
    "NODE_NO_WARNINGS": r"1",
    "PYTHONDONTWRITEBYTECODE": r"\w+",
    "PYTHONUNBUFFERED": r"\w+",
    "PYTHONHASHSEED": r"\w+",
    "PYTHONWARNINGS": r"(?:error|ignore|default|always|module|once)(?:::\w+Warning)?",
    "PYTHONFAULTHANDLER": r"1",
    "PYTHONIOENCODING": r"[\w-]+",
    "PYTHONUTF8": r"[01]",
    "RUST_BACKTRACE": r"\w+",
    "RUST_LOG": r"[\w=,:]+",
    "CARGO_TERM_COLOR": r"\w+",
    "CGO_ENABLED": r"[01]",
    "GOOS": r"\w+",
    "GOARCH": r"\w+",
    "GOFLAGS": r"(?:-v|-count=1|-race|-mod=(?:mod|vendor|readonly)|-short)?",
    "GOMAXPROCS": r"\d+",
    "MAKEFLAGS": r"-j\d*",
    "BASH_SILENCE_DEPRECATION_WARNING": r"1",
}
_PATHS = frozenset({"PYTHONPATH", "NODE_PATH", "TMPDIR", "TMP", "TEMP"})
_AUTHOR = re.compile(r"GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)")


def check_variable(context: Context, name: str, value: Value, *, reads: bool = False) -> None:
    """Raise Refused if setting this variable needs a question. `reads`: only for `read`."""
    if not _DANGEROUS.fullmatch(name) or _AUTHOR.fullmatch(name) or (reads and name == "IFS"):
        return
    if value.kind in (Kind.KNOWN, Kind.NUMBER):
        if name in _PLAIN and re.fullmatch(_PLAIN[name], value.text):
            return
        if name in _PATHS and all(_is_inside(context, part) for part in value.text.split(":")):
            return
    raise Refused("A9", f"Sets {name}, which makes other programs run code")


def _is_inside(context: Context, text: str) -> bool:
    return not text or files.is_inside(context, files.real(context, text))
