"""The HTTP side of the stand-in of the Messages API: routes, streams, and ways to fail in them."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from tests.messages_rules import Json, Refused, invalid
from tests.messages_script import Request, Turn

PATIENCE_SECONDS = 120.0  # how long a silent answer stays silent


class Api(Protocol):
    """What answers; see `tests.messages_api.MessagesApi`."""

    stopping: threading.Event

    def answer(self, request: Request) -> tuple[Turn, Json]:
        """The turn for a request and its message as JSON. Raises Refused."""

    def check(self, request: Request) -> Json:
        """Check a request and count its tokens. Raises Refused."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], api: Api) -> None:
        super().__init__(address, _Handler)
        self.api = api
        self._open: set[socket.socket] = set()
        self._workers: list[threading.Thread] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), daemon=True
        )
        self._workers.append(thread)
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._open.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no news."""

    def hang_up(self) -> None:
        self.server_close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._workers:
            thread.join(timeout=5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: Server
    ROUTES: ClassVar = {"/v1/messages": "_messages", "/v1/messages/count_tokens": "_count"}

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/v1/models":
            model = {"type": "model", "id": "claude-sonnet-5-5", "display_name": "Scripted"}
            self._send(200, {"data": [model], "has_more": False})
        else:
            self._send(404, _error("not_found_error", self.path))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        route = self.ROUTES.get(urlsplit(self.path).path)
        if route is None:
            self._send(404, _error("not_found_error", self.path))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            try:
                body = json.loads(raw)
            except ValueError as error:
                raise invalid("The request body is not valid JSON") from error
            getattr(self, route)(Request(self.path, headers, body, raw))
        except Refused as refusal:
            self._send(refusal.status, _error(refusal.kind, str(refusal)))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name in http.server
        """Say nothing: the requests are in `MessagesApi.requests`."""

    def _count(self, request: Request) -> None:
        body = {"max_tokens": 1, **request.body}
        usage = self.server.api.check(Request(request.path, request.headers, body, request.raw))
        self._send(200, {"input_tokens": sum(usage.values())})

    def _messages(self, request: Request) -> None:
        turn, message = self.server.api.answer(request)
        self._wait(turn.seconds)
        if turn.status != 200:
            error = {"type": "error", "error": turn.error, "request_id": "req_0001"}
            self._send(turn.status, error, turn.headers)
        elif not request.body.get("stream"):
            self._send(200, message)
        else:
            self._stream(turn, message)

    def _send(self, status: int, body: Json, headers: Any = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, turn: Turn, message: Json) -> None:
        frames = [_frame(event) for event in _events(turn, message)]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        if turn.ending == "whole" and not turn.delta_seconds:
            whole = b"".join(frames)
            self.send_header("content-length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole)
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if turn.ending != "whole":
            frames = frames[: _middle(frames)]
        for frame in frames:
            self._chunk(frame)
            if b"content_block_delta" in frame:
                self._wait(turn.delta_seconds)
        self._end(turn)

    def _end(self, turn: Turn) -> None:
        match turn.ending:
            case "cut":
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            case "silence":
                self.wfile.flush()
                self.server.api.stopping.wait(PATIENCE_SECONDS)
                self.close_connection = True
                return
            case "error":
                self._chunk(_frame({"type": "error", "error": turn.error}))
            case "broken":
                self._chunk(b'event: content_block_delta\ndata: {"type": "content_bl\n\n')
            case _:
                pass
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, frame: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
        self.wfile.flush()

    def _wait(self, seconds: float) -> None:
        if seconds:
            self.server.api.stopping.wait(seconds)


def _events(turn: Turn, message: Json) -> Iterator[Json]:
    start = {**message, "content": [], "stop_reason": None}
    start["usage"] = {**message["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        raw = turn.raw_inputs.get(index)
        yield from _block_events(index, block, raw, turn.delta_characters)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    if "stop_details" in message:
        delta["stop_details"] = message["stop_details"]
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": delta, "usage": usage}
    yield {"type": "message_stop"}


def _block_events(index: int, block: Json, raw: str | None, size: int) -> Iterator[Json]:
    empty: Json
    match block["type"]:
        case "text":
            empty, kind, name, value = {"text": ""}, "text_delta", "text", block["text"]
        case "thinking":
            empty = {"thinking": "", "signature": ""}
            kind, name, value = "thinking_delta", "thinking", block["thinking"]
        case _:
            empty, kind, name = {"input": {}}, "input_json_delta", "partial_json"
            value = raw if raw is not None else json.dumps(block["input"], ensure_ascii=False)
    yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
    for at in range(0, len(value), size):
        delta = {"type": kind, name: value[at : at + size]}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    if block["type"] == "thinking":
        delta = {"type": "signature_delta", "signature": block["signature"]}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    if raw is None or block["type"] != "tool_use":
        yield {"type": "content_block_stop", "index": index}


def _middle(frames: Sequence[bytes]) -> int:
    """Behind the first delta, or behind the first events where there is none."""
    deltas = [at for at, frame in enumerate(frames) if b"content_block_delta" in frame]
    return deltas[0] + 1 if deltas else 2


def _frame(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _error(kind: str, message: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}}
