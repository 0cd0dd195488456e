"""The only way out for a run whose project has an allow-list: a small proxy on a socket with a name.

It lets through CONNECT to port 443, and GET and HEAD to port 80, to the hosts of the list. A name is
resolved once, each of its addresses is judged, and the connection goes to exactly that address.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from agents.proxy_requests import MAX_HEAD, RefusedError, Request, read_request
from board.webhooks import is_public

log = logging.getLogger(__name__)

HEAD_SECONDS = 10.0  # until a request is there
CONNECT_SECONDS = 10.0  # to one address
MOST_SECONDS = 600.0  # for one connection, with all that it carries
LINGER_SECONDS = 1.0  # so that who still sends can read why it was refused
MAX_CONNECTIONS = 64  # at once
MAX_NOTES = 1_000  # in a run's log
_MAX_ADDRESSES = 4  # that are tried
_CHUNK = 65_536  # bytes
_STATUS = {403: "Forbidden", 502: "Bad Gateway", 503: "Service Unavailable"}

Place = tuple[str, int]  # an address, as numbers, and a port
Resolver = Callable[[str, int], Awaitable[Sequence[Place]]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def resolve(host: str, port: int) -> Sequence[Place]:
    """Return where a host is. Raises OSError if its name is not known."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((str(row[4][0]), port) for row in found))


class Proxy:
    """Serves the commands of one run. `hosts` are normal names; `say` takes a sentence and its level."""

    def __init__(
        self,
        hosts: Collection[str],
        *,
        say: Callable[[str, str], None],
        resolver: Resolver = resolve,
        is_reachable: Callable[[str], bool] = is_public,
    ) -> None:
        self._hosts = frozenset(hosts)
        self._say = say
        self._resolver = resolver
        self._is_reachable = is_reachable
        self._notes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, path: Path) -> None:
        """Listen on the socket `path`; one that an earlier stretch of the run has left is replaced.

        Raises OSError if there can be none.
        """
        listener = _bound(path)
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=MAX_HEAD)

    async def close(self) -> None:
        """End every connection, and take no more."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  streams call this in a task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            async with asyncio.timeout(MOST_SECONDS):
                await self._answer(reader, writer)
        except (OSError, TimeoutError) as error:
            log.debug("A connection through the proxy ended: %s", error)
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._tasks) > MAX_CONNECTIONS:
                raise RefusedError("too many connections at once", status=503)
            request = await self._read(reader)
            there = await self._connect(request)
        except RefusedError as error:
            self._note(f"Network: {error.what} refused: {error}", "warning")
            await _refuse((reader, writer), error)
            return
        self._note(f"Network: {request.what} allowed", "info")
        try:
            await _carry(request, (reader, writer), there)
        finally:
            there[1].close()

    async def _read(self, reader: asyncio.StreamReader) -> Request:
        """Read a request to a listed host, or raise RefusedError."""
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            raise RefusedError("no request came") from None
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise RefusedError("the request is not whole, or too long") from None
        request = read_request(head)
        if request.host not in self._hosts:
            raise RefusedError("the host is not on the project's allow-list", what=request.what)
        return request

    async def _connect(self, request: Request) -> Streams:
        """Resolve the name once, judge every address, and connect to one of just these."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                places = await self._resolver(request.host, request.port)
        except (OSError, TimeoutError):
            raise RefusedError("its name is not known", what=request.what, status=502) from None
        if not all(self._is_reachable(address) for address, _ in places):
            raise RefusedError("it is not on the public internet", what=request.what)
        for address, port in places[:_MAX_ADDRESSES]:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await asyncio.open_connection(address, port)
        raise RefusedError("it does not answer", what=request.what, status=502)

    def _note(self, text: str, level: str) -> None:
        self._notes += 1
        if self._notes <= MAX_NOTES:
            self._say(text, level)
        elif self._notes == MAX_NOTES + 1:
            self._say("Network: the log keeps no more of this run's requests", "warning")


def _bound(path: Path) -> socket.socket:
    """Return a socket at `path`, also where that is longer than the 107 bytes of an address."""
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        listener.close()
        raise
    finally:
        os.close(folder)
    path.chmod(0o600)
    return listener


async def _refuse(client: Streams, error: RefusedError) -> None:
    reader, writer = client
    body = f"The network of this sandbox has an allow-list. {error.what}: {error}.\n".encode()
    head = (
        f"HTTP/1.1 {error.status} {_STATUS[error.status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while await reader.read(_CHUNK):
                pass


async def _carry(request: Request, client: Streams, there: Streams) -> None:
    """Carry bytes: both ways through a tunnel, else only the answer."""
    if request.is_tunnel:
        client[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(client[0], there[1]))
            group.create_task(_copy(there[0], client[1]))
        return
    there[1].write(request.head)
    await _copy(there[0], client[1])


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end, and pass the end on; a side that is gone ends only this direction."""
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    with suppress(OSError):
        writer.write_eof()
