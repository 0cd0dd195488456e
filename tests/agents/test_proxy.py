"""The proxy of a run: real sockets, and a resolver that answers as the test says."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agents import proxy as proxies
from agents.proxy import Place, Proxy
from agents.proxy_requests import MAX_HEAD
from board.webhooks import is_public

HOST = "host.example"


class Server:
    """A server of this machine that keeps what it is sent, and answers to each line that ends a head."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()


class World:
    """A proxy whose names lead where `places` says; by default all lead to the server."""

    def __init__(self, server: Server, path: Path) -> None:
        self.server = server
        self.path = path
        self.notes: list[str] = []
        self.asked: list[str] = []
        self.answers: list[Sequence[Place]] = []
        self.public = {"127.0.0.1"}

    async def resolve(self, host: str, port: int) -> Sequence[Place]:
        self.asked.append(f"{host}:{port}")
        if self.answers:
            return self.answers.pop(0)
        return [("127.0.0.1", self.server.port)]

    def is_reachable(self, address: str) -> bool:
        return address in self.public or is_public(address)

    async def send(self, text: str | bytes) -> str:
        reader, writer = await asyncio.open_unix_connection(self.path)
        writer.write(text.encode("latin-1") if isinstance(text, str) else text)
        async with asyncio.timeout(20):
            answer = await reader.read()
        writer.close()
        return answer.decode()

    async def get(self, url: str, *, method: str = "GET", more: str = "") -> str:
        return await self.send(f"{method} {url} HTTP/1.1\r\nHost: x\r\n{more}\r\n")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    world = World(server, tmp_path / "proxy.sock")
    proxy = Proxy(
        [HOST],
        say=lambda text, _level: world.notes.append(text),
        resolver=world.resolve,
        is_reachable=world.is_reachable,
    )
    await proxy.start(world.path)
    yield world
    await proxy.close()
    listening.close()


async def test_a_listed_host_answers_and_the_log_says_so(world: World):
    answer = await world.get(
        f"http://{HOST}/a?b=c", more="X-One: 1\r\nProxy-Connection: keep-alive\r\nHost: evil\r\n"
    )
    assert answer.endswith("hello")
    assert world.server.heads == [
        b"GET /a?b=c HTTP/1.1\r\nHost: host.example\r\nX-One: 1\r\nConnection: close\r\n\r\n"
    ]
    assert world.notes == ["Network: GET host.example allowed"]
    assert world.asked == ["host.example:80"]


async def test_a_tunnel_carries_both_ways(world: World):
    answer = await world.send(f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\nany bytes\r\n\r\n")
    assert answer.startswith("HTTP/1.1 200 ")
    assert answer.endswith("hello")
    assert world.server.heads == [b"any bytes\r\n\r\n"]
    assert world.notes == ["Network: CONNECT host.example allowed"]
    assert world.asked == ["host.example:443"]


@pytest.mark.parametrize("spelling", ["HOST.example", "host.example.", "Host.Example.", "host.example:80"])  # fmt: skip
async def test_another_spelling_of_a_listed_host_is_the_same_host(world: World, spelling: str):
    assert (await world.get(f"HTTP://{spelling}")).endswith("hello")
    assert world.asked == ["host.example:80"]


@pytest.mark.parametrize(
    "authority",
    [
        "other.example", "host.example.evil", "host.example.evil.example", "evil-host.example",
        "sub.host.example", "example", "host", "user@host.example", "host.example@other.example",
        "host.example%00.other.example", "host.example%2eother", "host.example:8080",
        "host.example:080", "host.example:80:80", "host.example..", "127.0.0.1", "127.1",
        "2130706433", "0x7f000001", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost",
        "169.254.169.254", "host.example\\.other.example", "h\xf6st.example", "",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "CONNECT"])
async def test_everything_else_is_refused_before_a_name_is_looked_up(
    world: World, authority: str, method: str
):
    target = f"http://{authority}/" if method == "GET" else f"{authority}:443"
    answer = await world.get(target, method=method)
    assert answer.startswith("HTTP/1.1 403 ")
    assert "allow-list" in answer
    assert not world.asked
    assert not world.server.heads
    assert len(world.notes) == 1
    assert "refused" in world.notes[0]


@pytest.mark.parametrize(
    "head",
    [
        f"POST http://{HOST}/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        f"PUT http://{HOST}/ HTTP/1.1\r\n\r\n",
        f"get http://{HOST}/ HTTP/1.1\r\n\r\n",
        f"GET https://{HOST}/ HTTP/1.1\r\n\r\n",
        f"GET ftp://{HOST}/ HTTP/1.1\r\n\r\n",
        f"GET http://{HOST}/#part HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: host.example\r\n\r\n",
        f"CONNECT {HOST}:80 HTTP/1.1\r\n\r\n",
        f"CONNECT {HOST}:22 HTTP/1.1\r\n\r\n",
        f"CONNECT {HOST} HTTP/1.1\r\n\r\n",
        f"CONNECT http://{HOST}:443 HTTP/1.1\r\n\r\n",
        f"GET http://{HOST}/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        f"GET http://{HOST}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        f"GET http://{HOST}/ HTTP/1.1\r\nA: b\nTransfer-Encoding: chunked\r\n\r\n",
        f"GET http://{HOST}/ HTTP/1.1\r\nA: b\r\n continued\r\n\r\n",
        f"GET http://{HOST}/ HTTP/1.1\r\nA : b\r\n\r\n",
        f"GET http://{HOST}/\x00 HTTP/1.1\r\n\r\n",
        f"GET http://{HOST}/a b HTTP/1.1\r\n\r\n",
        f"GET http://{HOST}/ HTTP/2\r\n\r\n",
        b"\x04\x01\x00\x50\x00\x00\x00\x01x\x00host.example\x00\r\n\r\n",
        "\r\n\r\n",
        f"GET http://{HOST}/{'a' * MAX_HEAD} HTTP/1.1\r\n\r\n",
    ],
)
async def test_only_a_reading_request_in_one_strict_form_is_let_through(
    world: World, head: str | bytes
):
    assert (await world.send(head)).startswith("HTTP/1.1 403 ")
    assert not world.asked
    assert not world.server.heads


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1", "169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.8", "0.0.0.1",
        "::1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::", "fd00:ec2::254",
        "fe80::1", "fec0::1", "::7f00:1",
    ],
)  # fmt: skip
async def test_a_listed_host_that_leads_inside_is_refused(world: World, address: str):
    for places in ([(address, 80)], [("127.0.0.1", world.server.port), (address, 80)]):
        world.answers = [places]
        answer = await world.get(f"http://{HOST}/")
        assert answer.startswith("HTTP/1.1 403 ")
        assert "not on the public internet" in answer
    assert not world.server.heads


async def test_a_name_that_answers_differently_the_second_time_gains_nothing(world: World):
    good = [("127.0.0.1", world.server.port)]
    world.answers = [good, [("127.0.0.2", world.server.port)]]
    assert (await world.get(f"http://{HOST}/")).endswith("hello")
    assert world.asked == ["host.example:80"]  # once: the connection went to what was judged
    answer = await world.get(f"http://{HOST}/")
    assert "not on the public internet" in answer
    assert len(world.server.heads) == 1


async def test_the_next_address_is_tried_and_silence_is_said(world: World):
    closed = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = closed.sockets[0].getsockname()[1]
    closed.close()
    await closed.wait_closed()
    world.answers = [[("127.0.0.1", port), ("127.0.0.1", world.server.port)]]
    assert (await world.get(f"http://{HOST}/")).endswith("hello")
    world.answers = [[("127.0.0.1", port)]]
    answer = await world.get(f"http://{HOST}/")
    assert answer.startswith("HTTP/1.1 502 ")
    assert "does not answer" in answer


async def test_a_name_that_nobody_knows_is_said(tmp_path: Path):
    proxy = Proxy([HOST], say=lambda _text, _level: None, resolver=_nobody_knows)
    await proxy.start(tmp_path / "p")
    reader, writer = await asyncio.open_unix_connection(tmp_path / "p")
    writer.write(f"GET http://{HOST}/ HTTP/1.1\r\n\r\n".encode())
    assert b"its name is not known" in await reader.read()
    writer.close()
    await proxy.close()


async def _nobody_knows(_host: str, _port: int) -> Sequence[Place]:
    raise OSError("Name or service not known")


async def test_who_sends_nothing_is_sent_away(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proxies, "HEAD_SECONDS", 0.05)
    assert "no request came" in await world.send("GET http://")


async def test_too_many_connections_at_once_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(proxies, "MAX_CONNECTIONS", 1)
    waiting = await asyncio.open_unix_connection(world.path)
    answer = await world.get(f"http://{HOST}/")
    assert answer.startswith("HTTP/1.1 503 ")
    waiting[1].close()


async def test_the_log_keeps_only_so_many_notes(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proxies, "MAX_NOTES", 1)
    for _ in range(3):
        await world.get(f"http://{HOST}/")
    assert world.notes == [
        "Network: GET host.example allowed",
        "Network: the log keeps no more of this run's requests",
    ]


async def test_closing_ends_the_tunnels_and_the_socket_answers_nobody(tmp_path: Path):
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]

    async def resolve(_host: str, _port: int) -> Sequence[Place]:
        return [("127.0.0.1", port)]

    proxy = Proxy(
        [HOST],
        say=lambda _text, _level: None,
        resolver=resolve,
        is_reachable=lambda _address: True,
    )
    # Longer than an address of a socket may be.
    path = tmp_path / ("a" * 60) / ("b" * 60) / "proxy.sock"
    path.parent.mkdir(parents=True)
    await proxy.start(path)
    await proxy.close()
    await proxy.start(path)  # a socket that was left does not matter
    link = tmp_path / "p"
    link.symlink_to(path.parent)
    reader, writer = await asyncio.open_unix_connection(link / "proxy.sock")
    writer.write(f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode())
    assert b"200" in await reader.readuntil(b"\r\n\r\n")
    await proxy.close()
    async with asyncio.timeout(20):
        assert await reader.read() == b""
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_unix_connection(link / "proxy.sock")
    writer.close()
    listening.close()
