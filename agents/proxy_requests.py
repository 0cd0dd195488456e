"""What the proxy reads of a request: one strict reading, and everything else is refused."""

import re
from dataclasses import dataclass

from board.hosts import HostError, normal

MAX_HEAD = 16_384  # bytes of a request's line and headers
MAX_SHOWN = 120  # characters of what a request wanted
_LINE = re.compile(r"([A-Z]{1,20}) ([\x21-\x7e]+) HTTP/1\.[01]")
_HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*)")
_URL = re.compile(r"(?i:http)://([^/?#]+)(/[^#]*|\?[^#]*)?")
# Of the connection to us, and not of the one that we make.
_OWN_HEADERS = frozenset(
    ["host", "connection", "keep-alive", "te", "trailer", "upgrade", "expect", "content-length"]
)


class RefusedError(Exception):
    """A request that goes nowhere: why, for the agent and the log. `what` is what it wanted."""

    def __init__(self, why: str, *, what: str = "A request", status: int = 403) -> None:
        super().__init__(why)
        self.what = what
        self.status = status


@dataclass(frozen=True)
class Request:
    """A request that may be let through. `host` is normal; `head` is what is sent to it, if no tunnel."""

    method: str
    host: str
    port: int
    head: bytes = b""

    @property
    def is_tunnel(self) -> bool:
        """Whether bytes go both ways, unread."""
        return self.method == "CONNECT"

    @property
    def what(self) -> str:
        """What was wanted, in short."""
        return f"{self.method} {self.host}"


def read_request(head: bytes) -> Request:
    """Read a head that ends with an empty line. Raises RefusedError for all but the three methods."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    match = _LINE.fullmatch(first)
    if match is None:
        raise RefusedError("it is not a request to a proxy")
    method, target = match.groups()
    what = f"{method} {target}"[:MAX_SHOWN]
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        if port != "443":
            raise RefusedError("only port 443 can be connected to", what=what)
        return Request(method, _host(host, what), 443)
    if method not in ("GET", "HEAD"):
        raise RefusedError("only CONNECT, GET and HEAD are let through", what=what)
    url = _URL.fullmatch(target)
    if url is None:
        raise RefusedError("only whole http:// addresses are let through", what=what)
    host = _host(url[1].removesuffix(":80"), what)
    path = url[2] or "/"
    path = path if path.startswith("/") else f"/{path}"
    kept = _headers(lines, f"{method} {host}")
    text = "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *kept, "Connection: close"])
    return Request(method, host, 80, f"{text}\r\n\r\n".encode("latin-1"))


def _host(text: str, what: str) -> str:
    try:
        return normal(text)
    except HostError:
        raise RefusedError("it names no host as the allow-list does", what=what) from None


def _headers(lines: list[str], what: str) -> list[str]:
    """Return the headers to pass on. A body would send something, so none is let through."""
    kept = []
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise RefusedError("a header is not well formed", what=what)
        name, value = match[1].lower(), match[2].strip()
        if name == "transfer-encoding" or (name == "content-length" and value != "0"):
            raise RefusedError("a reading request has no body", what=what)
        if name not in _OWN_HEADERS and not name.startswith("proxy-"):
            kept.append(f"{match[1]}: {value}")
    return kept
