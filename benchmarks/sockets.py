"""A WebSocket client of a few lines, so that a benchmark's own work stays small beside what it measures."""

import asyncio
import base64
import json
import os
import struct
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

# https://www.rfc-editor.org/rfc/rfc6455#section-5.2
TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
FINAL, MASKED, TWO_BYTES, EIGHT_BYTES = 0x80, 0x80, 126, 127


class Socket:
    """An open socket: `async for frame in socket` gives what the server says, as JSON."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, url: str, path: str, headers: Mapping[str, str]) -> "Socket":
        """Connect to a path of a server. Raises RuntimeError if it does not become a socket."""
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = {
            "Host": address.netloc,
            "Origin": url,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Version": "13",
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in answer.split(b"\r\n", 1)[0]:
            raise RuntimeError(answer.decode(errors="replace"))
        return cls(reader, writer)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while True:
            kind, content = await self._read()
            if kind == CLOSE:
                return
            if kind == PING:
                self._write(PONG, content)
            elif kind == TEXT:
                yield json.loads(content)

    async def _read(self) -> tuple[int, bytes]:
        """The server masks nothing and, in one message, sends one frame."""
        first, second = await self._reader.readexactly(2)
        length = second & ~MASKED
        if length == TWO_BYTES:
            (length,) = struct.unpack("!H", await self._reader.readexactly(2))
        elif length == EIGHT_BYTES:
            (length,) = struct.unpack("!Q", await self._reader.readexactly(8))
        if not first & FINAL:
            raise RuntimeError("a message in pieces")
        return first & 0x0F, await self._reader.readexactly(length)

    def send(self, **command: Any) -> None:
        """Send a command; ours are short."""
        self._write(TEXT, json.dumps(command).encode())

    def _write(self, kind: int, content: bytes) -> None:
        if len(content) >= TWO_BYTES:
            raise ValueError("too long for this client")
        mask = os.urandom(4)
        hidden = bytes(byte ^ mask[place % 4] for place, byte in enumerate(content))
        self._writer.write(bytes([FINAL | kind, MASKED | len(content)]) + mask + hidden)

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
