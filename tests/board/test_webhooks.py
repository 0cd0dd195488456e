"""Sending to an address that people gave: only to public places, to the address that was judged, never further."""

import hashlib
import hmac
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from board import webhooks
from board.webhooks import WebhookError, check_url, is_public, post, resolve, sign


class Receiver(ThreadingHTTPServer):
    """A server that notes what it gets, and answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.location, self.got = 200, "", []  # type: ignore[var-annotated]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/in?x=1"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1",
        "::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:127.0.0.1",
        "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
        "2001:db8::1", "192.0.0.8", "fec0::1", "3fff::1", "192.88.99.1", "168.63.129.16", "::ffff:168.63.129.16",
    ],
)  # fmt: skip
def test_an_address_that_is_not_on_the_public_internet_is_known_as_such(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_public_addresses_are_known_as_such(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "", "example.org", "ftp://example.org/", "https://", "https:///x", "http://example.org/",
        "https://user@example.org/", "https://user:pw@example.org/", "https://example.org:99999/",
        "https://example.org:0/", "https://example.org/#x", "https://exa mple.org/",
        "https://example.org/\r\nX: y", "https://ex\u00e4mple.org/", "https://[::1", "javascript:x",
        "https://example.org/" + "x" * 2_000,
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(WebhookError):
        check_url(url, allows_private=False)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/", "https://localhost/", "https://127.1/", "https://2130706433/",
        "https://0x7f000001/", "https://017700000001/", "https://[::1]/", "https://[::ffff:7f00:1]/",
        "https://0/", "https://169.254.169.254/latest/meta-data/",
    ],
)  # fmt: skip
def test_no_spelling_of_a_private_address_gets_through(url: str) -> None:
    with pytest.raises(WebhookError):
        resolve(url, allows_private=False)


def test_a_name_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, 1, 6, "", (address, 443)) for address in ("1.1.1.1", "10.0.0.1")]
    monkeypatch.setattr("board.webhooks.socket.getaddrinfo", lambda *_a, **_k: found)
    with pytest.raises(WebhookError, match="not on the public internet"):
        resolve("https://example.org/", allows_private=False)


def test_a_name_is_asked_for_once_and_the_connection_goes_there(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = receiver.server_address[1]
    asked: list[str] = []

    def look_up(host: str, *_args: object, **_options: object) -> list[object]:
        # Rebinding: whoever asked twice would be sent elsewhere.
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "192.0.2.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    real = socket.create_connection
    reached: list[object] = []

    def connect(address: tuple[str, int], *args: object, **options: object) -> socket.socket:
        reached.append(address)
        monkeypatch.undo()  # the real connection of the standard library looks numbers up, too
        return real(address, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("board.webhooks.socket.getaddrinfo", look_up)
    monkeypatch.setattr("board.webhooks.socket.create_connection", connect)
    post(f"http://hooks.test:{port}/in", b"{}", {}, allows_private=True)
    assert asked == ["hooks.test"]
    assert reached == [("127.0.0.1", port)]
    assert receiver.got[0][1]["Host"] == f"hooks.test:{port}"


def test_a_message_arrives_as_it_was_signed(receiver: Receiver) -> None:
    signature = sign("secret", identity="id-1", timestamp="5", body=b'{"a": 1}')
    post(receiver.url, b'{"a": 1}', {"Pullcord-Signature": signature}, allows_private=True)
    ((path, headers, body),) = receiver.got
    assert (path, body) == ("/in?x=1", b'{"a": 1}')
    assert headers["Content-Type"] == "application/json"
    expected = hmac.new(b"secret", b"id-1.5." + body, hashlib.sha256).hexdigest()
    assert headers["Pullcord-Signature"] == f"sha256={expected}"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(receiver: Receiver, status: int) -> None:
    receiver.status, receiver.location = status, receiver.url
    with pytest.raises(WebhookError, match="redirects are not followed"):
        post(receiver.url, b"{}", {}, allows_private=True)
    assert len(receiver.got) == 1


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_refusal_is_no_delivery(receiver: Receiver, status: int) -> None:
    receiver.status = status
    with pytest.raises(WebhookError, match=f"answered {status}"):
        post(receiver.url, b"{}", {}, allows_private=True)


def test_nobody_there_is_said(receiver: Receiver) -> None:
    url = receiver.url
    receiver.shutdown()
    receiver.server_close()
    with pytest.raises(WebhookError, match="did not answer"):
        post(url, b"{}", {}, allows_private=True)


def test_a_server_that_never_comes_to_an_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "MOST_SECONDS", 0.5)
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                while not stop.wait(0.05):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(WebhookError, match="did not answer"):
            post(url, b"{}", {}, allows_private=True)
        stop.set()
        thread.join(5)
