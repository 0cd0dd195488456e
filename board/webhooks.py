"""Sends a signed message to an address that people gave, and to no place that they did not mean. Plain Python.

The name is resolved once, every address of it is judged, and the connection goes to exactly that
address: a name that answers differently the second time (DNS rebinding) gains nothing.
"""

import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

SECONDS = 7.0  # for the connection and for each read
MOST_SECONDS = 15.0  # for all of it, however slowly the other side speaks
MAX_URL = 2_000  # characters
OK, REDIRECTS, REFUSALS = 200, 300, 400  # where these kinds of status begin
NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Not public, whatever the tables of this Python say: the IETF's own and, of Azure, the host of the
# virtual machine, which hands out its secrets.
NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "3fff::/20", "168.63.129.16/32"),
    )
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class WebhookError(Exception):
    """The message was not taken; the text says why, for the person who set the address."""


@dataclass(frozen=True)
class Target:
    """An address that was looked at: where to connect, and whom to expect there."""

    host: str
    port: int
    path: str
    is_tls: bool
    addresses: tuple[str, ...]


def check_url(url: str, *, allows_private: bool) -> SplitResult:
    """Return the parts of an address that can be sent to, or raise WebhookError."""
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise WebhookError("An address in plain letters, without spaces.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise WebhookError("This is not an address.") from error
    if parts.scheme not in {"https", "http"} or not parts.hostname:
        raise WebhookError("An address that begins with https://.")
    if parts.scheme == "http" and not allows_private:
        raise WebhookError("Only https://, so that nobody on the way can read it.")
    if parts.username is not None or parts.password is not None:
        raise WebhookError("An address without a user name; the signature says who sends it.")
    if parts.fragment or port == 0:
        raise WebhookError("An address without a # part, and with a port that exists.")
    return parts


def resolve(url: str, *, allows_private: bool) -> Target:
    """Look the name up, once. Raises WebhookError if one of its addresses is not on the public internet."""
    parts = check_url(url, allows_private=allows_private)
    host = str(parts.hostname)
    is_tls = parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise WebhookError(f"The name {host} is not known.") from error
    addresses = tuple(dict.fromkeys(str(row[4][0]) for row in found))
    if not allows_private and not all(is_public(address) for address in addresses):
        raise WebhookError(
            f"{host} is not on the public internet. An owner of this installation can allow that."
        )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(host, port, path, is_tls, addresses)


def is_public(text: str) -> bool:
    """Return whether an address is on the public internet, also one that is wrapped in another."""
    address: Address = ipaddress.ip_address(text.partition("%")[0])
    inner = wrapped(address)
    if inner is not None:
        return is_public(str(inner))
    if any(address in network for network in NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def wrapped(address: Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 address really leads to, if it is of that kind."""
    if not isinstance(address, ipaddress.IPv6Address):
        return None
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo[1] if address.teredo else None
    return address.ipv4_mapped or address.sixtofour or teredo


def sign(secret: str, *, identity: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a message: HMAC-SHA256 over its id, its time and its body."""
    signed = f"{identity}.{timestamp}.".encode() + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def post(url: str, body: bytes, headers: Mapping[str, str], *, allows_private: bool) -> None:
    """Send `body` as JSON. Redirects are not followed. Raises WebhookError unless it was taken."""
    target = resolve(url, allows_private=allows_private)
    connection = _Pinned(target)
    watch = threading.Timer(MOST_SECONDS, connection.cut)
    watch.daemon = True
    watch.start()
    try:
        connection.request(
            "POST", target.path, body, {"Content-Type": "application/json", **headers}
        )
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException, ssl.SSLError) as error:
        raise WebhookError(f"{target.host} did not answer: {error}"[:300]) from error
    finally:
        watch.cancel()
        connection.close()
    if REDIRECTS <= status < REFUSALS:
        raise WebhookError(f"{target.host} answered {status}; redirects are not followed.")
    if not OK <= status < REDIRECTS:
        raise WebhookError(f"{target.host} answered {status}.")


class _Pinned(http.client.HTTPConnection):
    """A connection to an address that was judged, whatever the name resolves to now."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.host, target.port, timeout=SECONDS)
        self._target = target

    def connect(self) -> None:
        """Connect to the first address that answers, and expect the host's certificate there."""
        problem: OSError = OSError("it has no address")
        for address in self._target.addresses:
            try:
                plain = socket.create_connection((address, self._target.port), SECONDS)
            except OSError as error:
                problem = error
                continue
            if self._target.is_tls:
                context = ssl.create_default_context()
                self.sock = context.wrap_socket(plain, server_hostname=self._target.host)
            else:
                self.sock = plain
            return
        raise problem

    def cut(self) -> None:
        """End the connection from another thread: it has taken too long."""
        sock = self.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
