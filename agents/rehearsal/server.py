"""A small Messages API on loopback that speaks the rehearsal's script. Real HTTP, real streaming."""

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from agents.executors import ModelAccess
from agents.rehearsal.script import answer

Json = dict[str, Any]

MODEL = "rehearsal"
PIECE_CHARACTERS = 12  # of text in one event
PIECE_SECONDS = 0.02  # so that a person sees it being written
MAX_REQUEST_BYTES = 8 * 1024 * 1024


class RehearsalServer:
    """Started when the first rehearsal card is claimed; a key of its own keeps others out."""

    def __init__(self) -> None:
        self._key = secrets.token_urlsafe(24)
        self._server: ThreadingHTTPServer | None = None

    async def access(self) -> ModelAccess:
        """Start the server if it is not running, and return how to reach it."""
        if self._server is None:
            self._server = _Server(("127.0.0.1", 0), self._key)
            threading.Thread(
                target=self._server.serve_forever, name="rehearsal", daemon=True
            ).start()
        port = self._server.server_address[1]
        return ModelAccess(MODEL, self._key, f"http://127.0.0.1:{port}", "bearer")

    async def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            await asyncio.to_thread(self._server.shutdown)
            self._server.server_close()
            self._server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], key: str) -> None:
        super().__init__(address, _Handler)
        self.key = key


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer one request of the Messages API."""
        server = cast("_Server", self.server)
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_REQUEST_BYTES:
            self._refuse(413, "request_too_large")
            return
        body = self.rfile.read(length)
        if not secrets.compare_digest(
            self.headers.get("authorization", ""), f"Bearer {server.key}"
        ):
            self._refuse(401, "authentication_error")
            return
        if self.path.partition("?")[0] != "/v1/messages":
            self._refuse(404, "not_found_error")
            return
        self._stream(json.loads(body))

    def _refuse(self, status: int, kind: str) -> None:
        body = json.dumps({"type": "error", "error": {"type": kind, "message": kind}}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, request: Json) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events(request):
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            self.wfile.write(data.encode())
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name that http.server gives it
        """Stay silent: the run's own log tells it all."""


def events(request: Json) -> Iterator[Json]:
    """Yield the events of one streamed turn; sleeps between pieces of text."""
    content = answer(request)
    usage = {"input_tokens": len(json.dumps(request)) // 4, "output_tokens": 1}
    usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message: Json = {
        "id": f"msg_{secrets.token_hex(8)}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(content):
        yield from _block_events(index, block)
    calls = any(block["type"] == "tool_use" for block in content)
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": len(json.dumps(content)) // 4},
    }
    yield {"type": "message_stop"}


def _block_events(index: int, block: Json) -> Iterator[Json]:
    if block["type"] == "text":
        yield _start(index, {"type": "text", "text": ""})
        text = block["text"]
        for place in range(0, len(text), PIECE_CHARACTERS):
            piece = text[place : place + PIECE_CHARACTERS]
            yield _delta(index, {"type": "text_delta", "text": piece})
            time.sleep(PIECE_SECONDS)
    else:
        start = {
            "type": "tool_use",
            "id": f"toolu_{secrets.token_hex(8)}",
            "name": block["name"],
            "input": {},
        }
        yield _start(index, start)
        yield _delta(
            index, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        time.sleep(PIECE_SECONDS * 10)
    yield {"type": "content_block_stop", "index": index}


def _start(index: int, block: Json) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: Json) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": delta}
