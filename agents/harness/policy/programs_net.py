"""Programs that talk to this machine only, to databases in files, and to processes (L1, L3, L7)."""

import re
from collections.abc import Callable

from agents.harness.policy import network
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused, check_change, check_read

_CURL_FLAGS = frozenset("sSfLIikvgN#")
_CURL_VALUES = frozenset("XHdowAmub")
_CURL_LONG = frozenset(
    ["--silent", "--show-error", "--fail", "--location", "--head", "--include", "--insecure",
     "--verbose", "--retry-connrefused", "--retry-all-errors", "--http1.1",
     "--fail-with-body", "--compressed", "--no-progress-meter", "--get"]
)  # fmt: skip
_CURL_LONG_VALUES = frozenset(
    ["--request", "--header", "--data", "--output", "--write-out", "--user-agent", "--max-time",
     "--data-raw", "--json", "--retry", "--retry-delay", "--connect-timeout", "--data-urlencode",
     "--data-binary", "--user", "--cookie"]
)  # fmt: skip
# What a request to a listed host may have: nothing that is sent along.
_READING = frozenset(
    ["--silent", "--show-error", "--fail", "--location", "--head", "--include", "--verbose",
     "--http1.1", "--fail-with-body", "--compressed", "--no-progress-meter", "-o", "--output",
     "-m", "--max-time", "--retry", "--retry-delay", "--connect-timeout"]
)  # fmt: skip
_READING_FLAGS = re.compile(r"-[sSfLIivgN#]+")
_LOCAL_URL = re.compile(
    r"(?:https?://)?(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?(?:[/?#][^\s]*)?"
)
_READS_DATABASE = re.compile(
    r"(?is)\s*(?:select|explain|with)\b(?!.*\b(?:insert|update|delete|drop|alter|create|attach|replace"
    r"|load_extension|writefile|edit|readfile|pragma)\b).*"
)
_OPEN_FILES = re.compile(
    r"-[tinppl]+|-[np]*i(?:tcp|udp|[46])*(?:@localhost|@127\.0\.0\.1)?(?::\d+)?|\d+|(?:tcp|udp)?:\d+|-stcp:listen",
    re.IGNORECASE,
)
_DATABASE_FACT = re.compile(
    r"\.(?:tables|schema|indexes|databases|fullschema)(?: [\w%]+)?|pragma table_info\(\w+\);?"
)


def check_curl(context: Context, arguments: list[str]) -> str:
    """`L7`: requests to this machine, but not to the product. `L9`: reading from a listed host."""
    urls: list[str] = []
    options: list[tuple[str, str]] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            urls.append(word)
            continue
        options.append(_curl_option(word, rest))
        _check_curl_value(context, *options[-1])
    if not urls:
        raise Refused("A1", "Connects to another machine (curl)")
    return _check_urls(context, urls, reads=_only_reads(arguments, options))


def _only_reads(arguments: list[str], options: list[tuple[str, str]]) -> bool:
    """Whether curl sends nothing but the request for an address, and looks whom it has reached."""
    is_unsafe = any(re.match(r"-[sSfLIivgN#]*k|--insecure", word) for word in arguments)
    return not is_unsafe and all(
        option in _READING or (option in ("-X", "--request") and value in ("GET", "HEAD"))
        or (option.startswith("-") and _READING_FLAGS.fullmatch(option) is not None and not value)
        for option, value in options
    )  # fmt: skip


def _check_urls(context: Context, urls: list[str], *, reads: bool) -> str:
    """Return the rule that allows requests to all of `urls`; `reads`: they send nothing."""
    is_listed = [reads and network.is_listed(context, url) for url in urls]
    for url, listed in zip(urls, is_listed, strict=True):
        if not listed:
            _check_url(context, url)
    return "L9" if any(is_listed) else "L7"


def _check_url(context: Context, url: str) -> None:
    plain = url.replace("[::1]", "", 1)
    if not _LOCAL_URL.fullmatch(url) or any(mark in plain for mark in "{}[]@\\"):
        raise Refused("A1", "Connects to another machine (curl)")
    address = url if "://" in url else f"http://{url}"
    for host, port in network.addresses_in(address):
        if network.is_product(context, host, port):
            raise Refused("D4", "Calls this product's own address")


def _check_curl_value(context: Context, option: str, value: str) -> None:
    if option in ("-o", "--output") and value != "-":
        if value != "/dev/null":
            check_change(context, value)
    elif option in (
        "-d",
        "--data",
        "--data-binary",
        "--json",
        "--data-urlencode",
        "-b",
        "--cookie",
    ) or (option in ("-w", "--write-out") and value.startswith("@")):
        sends = value.startswith("@") and option in ("-d", "--data", "--json", "--data-binary")
        if sends and value != "@-":
            check_read(context, value[1:])
        elif not sends and ("@" in value or (option in ("-b", "--cookie") and "=" not in value)):
            raise Refused("A12", "Sends a file that was not looked at (curl)")
    elif option in ("-w", "--write-out") and "%output{" in value:
        raise Refused("A4", "Writes a file (curl --write-out)")
    elif option in ("-H", "--header") and value.startswith("@"):
        raise Refused("A12", "Sends a file that was not looked at (curl)")


def _curl_option(word: str, rest: list[str]) -> tuple[str, str]:
    if word.startswith("--"):
        key, equals, value = word.partition("=")
        if key in _CURL_LONG and not equals:
            return key, ""
        if key in _CURL_LONG_VALUES and (equals or rest):
            return key, value if equals else rest.pop(0)
        raise Refused("A8", f"`curl {word}` is an option that is not known")
    letters = word[1:]
    while letters and letters[0] in _CURL_FLAGS:
        letters = letters[1:]
    if not letters:
        return word, ""
    if letters[0] in _CURL_VALUES and (len(letters) > 1 or rest):
        return f"-{letters[0]}", letters[1:] or rest.pop(0)
    raise Refused("A8", f"`curl {word}` is an option that is not known")


def check_sqlite(context: Context, arguments: list[str]) -> str:
    """`L3`: reading a database in a file."""
    rest = list(arguments)
    while rest and rest[0] in (
        "-header",
        "-csv",
        "-column",
        "-json",
        "-line",
        "-readonly",
        "-batch",
        "-list",
    ):
        rest.pop(0)
    if not rest or rest[0].startswith("-"):
        raise Refused("A11", "`sqlite3` like this may change data")
    check_read(context, rest[0])
    if not rest[1:]:
        raise Refused("A9", "`sqlite3` reads commands that are not known beforehand")
    for text in rest[1:]:
        if not _READS_DATABASE.fullmatch(text) and not _DATABASE_FACT.fullmatch(text.strip()):
            raise Refused("A11", "Changes the data of a database (sqlite3), or may do so")
        if ";" in text.strip().rstrip(";"):
            raise Refused("A11", "Changes the data of a database (sqlite3), or may do so")
    return "L3"


def check_lsof(_context: Context, arguments: list[str]) -> str:
    """`L1`: open files and ports of the processes here."""
    if not all(_OPEN_FILES.fullmatch(a) for a in arguments):
        raise Refused("A9", "`lsof` like this is not known")
    return "L1"


def check_wget(context: Context, arguments: list[str]) -> str:
    """`L7` and `L9`: like curl."""
    rest = list(arguments)
    urls = []
    if not any(re.match(r"-[qvS]*O|--output-document|--spider", word) for word in arguments):
        raise Refused("A4", "Writes a file whose name comes from elsewhere (wget)")
    while rest:
        word = rest.pop(0)
        match = re.fullmatch(r"-[qvS]*(?:O(.*)|P(.*))|--output-document=(.*)", word)
        if match is not None:
            target = next((group for group in match.groups() if group), "") or (
                rest.pop(0) if rest else ""
            )
            if target not in ("-", "/dev/null"):
                check_change(context, target)
        elif not word.startswith("-"):
            urls.append(word)
        elif not re.fullmatch(
            r"-[qvS]+|--(?:quiet|spider|tries=\d+|timeout=\d+|server-response)", word
        ):
            raise Refused("A8", f"`wget {word}` is an option that is not known")
    return _check_urls(context, urls or ["none"], reads=True)


def check_httpie(context: Context, arguments: list[str]) -> str:
    """`L7`: `http GET localhost:8000/x`, with nothing from a file."""
    plain = [word for word in arguments if not word.startswith("-")]
    if not all(re.fullmatch(r"-[vhbjf]+|--(?:json|form|ignore-stdin|check-status|headers|body|verbose)", word)
               for word in arguments if word.startswith("-")):  # fmt: skip
        raise Refused("A8", "`http` with an option that is not known")
    if plain[:1] and re.fullmatch(r"[A-Z]+", plain[0]):
        plain = plain[1:]
    if not plain or any("@" in word or ":=" in word for word in plain[1:]):
        raise Refused("A1", "Connects to another machine (http)")
    url = re.sub(r"^:(?=\d|/|$)", "localhost:", plain[0]).replace("localhost:/", "localhost/")
    return _check_urls(context, [url], reads=False)


def check_nc(context: Context, arguments: list[str]) -> str:
    """`L7`: whether somebody listens on a port of this machine."""
    options = [argument for argument in arguments if argument.startswith("-")]
    plain = [argument for argument in arguments if not argument.startswith("-")]
    if plain[:1] and "w" in "".join(options)[-1:] and plain[0].isdigit():
        plain = plain[1:]
    local = (
        len(plain) == len(("host", "port")) and network.is_loopback(plain[0]) and plain[1].isdigit()
    )
    if (
        not local
        or not re.fullmatch(r"(?:-[zvnw\d]+)+", "".join(options))
        or "z" not in "".join(options)
    ):
        raise Refused("A1", "Connects to another machine (nc)")
    if network.is_product(context, plain[0], int(plain[1])):
        raise Refused("D4", "Calls this product's own address")
    return "L7"


CHECKS: dict[str, Callable[[Context, list[str]], str]] = {
    "curl": check_curl,
    "wget": check_wget,
    "http": check_httpie,
    "nc": check_nc,
    "ncat": check_nc,
    "sqlite3": check_sqlite,
    "lsof": check_lsof,
}
