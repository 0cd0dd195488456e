"""Where a command connects to: hosts and ports, compared after parsing, never as text."""

import ipaddress
import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from agents.harness.policy.commands import Command
from agents.harness.policy.context import Context

CLIENTS = frozenset(
    [
        "curl",
        "wget",
        "http",
        "https",
        "xh",
        "aria2c",
        "nc",
        "ncat",
        "netcat",
        "socat",
        "openssl",
        "telnet",
        "ftp",
        "sftp",
        "lftp",
        "tftp",
        "scp",
        "rsync",
        "ssh",
        "dig",
        "nslookup",
        "host",
        "ping",
        "ping6",
        "traceroute",
        "whois",
        "gh",
        "glab",
    ]
)
_TAKES_HOST_FIRST = frozenset(
    [
        "nc",
        "ncat",
        "netcat",
        "telnet",
        "ftp",
        "dig",
        "nslookup",
        "host",
        "ping",
        "ping6",
        "traceroute",
        "whois",
    ]
)
_GIT_NETWORK = frozenset({"push", "fetch", "pull", "clone", "ls-remote"})
_OPENSSL_NETWORK = frozenset({"s_client", "s_time", "ocsp", "cmp"})
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>`;|)]+")
_LOCAL_FILE = re.compile(r"(?i)file:")
_DEVICE = re.compile(r"/dev/(?:tcp|udp)/([^/\s]+)/(\d+)")
_HOST_PORT = re.compile(
    r"['\"]([\w.:-]+)['\"]\s*(?:,|:)\s*['\"]?(?:port['\"]?\s*[:=]\s*)?(\d{2,5})\b"
)
_PORT_HOST = re.compile(
    r"(?<![\w.])(\d{2,5})['\"]?\s*,\s*(?:host(?:name)?\s*[:=]\s*)?['\"]([\w.:-]+)['\"]"
)
# Without user names, escapes in the host, and the marks that curl takes for patterns.
_PLAIN_URL = re.compile(r"(?i:(https?))://([a-zA-Z0-9.-]+)(?::(\d{1,5}))?(?:[/?][!#-Z^-z|~_]*)?")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_LOCAL_NAMES = frozenset({"localhost", "ip6-localhost", "localhost.localdomain"})


def is_client(command: Command) -> bool:
    """Whether the program exists to connect to other machines."""
    if command.name == "git":
        return bool(_GIT_NETWORK.intersection(command.arguments))
    if command.name == "openssl":  # most of its commands only work on files
        return bool(_OPENSSL_NETWORK.intersection(command.arguments[:1]))
    return command.name in CLIENTS


def addresses(command: Command) -> Iterator[tuple[str, int | None]]:
    """Host and port of each connection that the command names."""
    texts = [word.text for word in command.words]
    texts += [redirection.target.text for redirection in command.redirections]
    for text in texts:
        yield from addresses_in(text)
    if command.name in _TAKES_HOST_FIRST:
        yield from _host_and_port(command)
    elif is_client(command):
        yield from _bare_hosts(command)


def addresses_in(text: str) -> Iterator[tuple[str, int | None]]:
    """Host and port of each URL and each /dev/tcp path in a text."""
    for match in _URL.finditer(text):
        yield from _of_url(match[0])
    for match in _DEVICE.finditer(text):
        yield match[1], int(match[2])


def addresses_in_code(text: str) -> Iterator[tuple[str, int | None]]:
    """Host and port where a program text names them beside each other, as its libraries take them."""
    for match in _HOST_PORT.finditer(text):
        yield match[1], int(match[2])
    for match in _PORT_HOST.finditer(text):
        yield match[2], int(match[1])


def _of_url(text: str) -> Iterator[tuple[str, int | None]]:
    try:
        url = urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError:
        return
    if host:
        yield host, port or _DEFAULT_PORTS.get(url.scheme.lower())


def _host_and_port(command: Command) -> Iterator[tuple[str, int | None]]:
    plain = [text for text in command.arguments if text and not text.startswith("-")]
    for host, port in zip(plain, [*plain[1:], ""], strict=False):
        yield host, int(port) if port.isdigit() else None


def _bare_hosts(command: Command) -> Iterator[tuple[str, int | None]]:
    """`curl localhost:8400/x`, `openssl s_client -connect host:443`, `scp a host:b`."""
    for text in command.arguments:
        if text.startswith("-") or "://" in text:
            continue
        if command.name in ("http", "https", "xh") and text.startswith(":"):
            text = f"localhost{text}"  # noqa: PLW2901  as these programs read it
        yield from _of_url(f"http://{text.removeprefix('TCP:').removeprefix('tcp:')}")


def is_loopback(host: str) -> bool:
    """Whether a host, however it is spelled, is this machine."""
    host = host.strip("[]").rstrip(".").casefold()
    if host in _LOCAL_NAMES or host.endswith(".localhost"):
        return True
    address = _address(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address is not None and (address.is_loopback or address.is_unspecified)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if re.fullmatch(r"[0-9a-fx.]+", host) is None:
        return None
    try:  # 127.1, 2130706433, 0x7f000001
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


_WITH_PROXY = ("bubblewrap", "podman", "docker")  # whose commands have a network of their own


def is_product(context: Context, host: str, port: int | None) -> bool:
    """Whether an address is the product's own."""
    for text in context.product_urls:
        for own_host, own_port in _of_url(text):
            same_host = host.rstrip(".").casefold() == own_host.rstrip(".").casefold()
            if own_port == port and (same_host or (is_loopback(host) and is_loopback(own_host))):
                return True
    return False


def is_listed(context: Context, url: str) -> bool:
    """Whether a plain address, with its scheme, is of a host from which reading is allowed."""
    match = _PLAIN_URL.fullmatch(url)
    if match is None or context.sandbox not in _WITH_PROXY:
        return False
    scheme, host, port = match.groups()
    is_usual = port is None or int(port) == _DEFAULT_PORTS[scheme.lower()]
    return is_usual and host.removesuffix(".").lower() in context.hosts


def is_outside(command: Command) -> bool:
    """Whether the command may connect to another machine."""
    if is_client(command):
        named = [word.text for word in command.words[1:] if "://" in word.text]
        if named and all(_LOCAL_FILE.match(text) for text in named):
            return False
        # Beside a URL a bare word is more likely a value than a host.
        urls = [found for word in command.words for found in addresses_in(word.text)]
        found = urls or list(addresses(command))
        return not found or not all(is_loopback(host) for host, _ in found)
    return any(_DEVICE.search(one.target.text) and not is_loopback(host)
               for one in command.redirections for host, _ in addresses_in(one.target.text))  # fmt: skip
