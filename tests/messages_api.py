"""A stand-in for the Messages API: a real HTTP server that is as strict as the real one.

In tests, with the turns of `tests.messages_script`:

    with MessagesApi() as api:
        api.script("fix the bug", [call("bash", command="pytest"), report("done", "Fixed")])

By hand: python -m tests.messages_api --port 8123 --script turns.yaml
"""

import argparse
import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import yaml

from tests.messages_rules import (
    MOST_BYTES,
    NEW_VERSION,
    Json,
    Refused,
    blocks,
    check_body,
    check_headers,
    check_thinking,
    invalid,
    signature,
)
from tests.messages_script import Answer, Request, Script, Turn, from_file
from tests.messages_server import Server

CACHE_LOOK_BACK = 20  # blocks before a breakpoint
LEAST_CACHED = 1024  # tokens; shorter prefixes are not cached, without a word


class MessagesApi:
    """The server, its scripts, and everything it was asked. A context manager.

    `refusals` are the requests that broke a rule of the API; `unscripted` those that no script
    had an answer for.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        key: str | None = None,
        context_tokens: int = 1_000_000,
        scripts: Iterable[Script] = (),
    ) -> None:
        self.requests: list[Request] = []
        self.refusals: list[tuple[Request, Refused]] = []
        self.unscripted: list[Request] = []
        self.stopping = threading.Event()
        self._key = key
        self._context_tokens = context_tokens
        self._scripts = list(scripts)
        self._cached: set[str] = set()
        self._paused: set[str] = set()
        self._everyone: list[Turn] = []
        self._number = 0
        self._lock = threading.Lock()
        self._server = Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def base_url(self) -> str:
        """Its address, without /v1."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "MessagesApi":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Hang up everywhere and free the port."""
        self.stopping.set()
        self._server.shutdown()
        self._server.hang_up()
        self._thread.join()

    def script(
        self,
        match: str | Callable[[str], bool],
        turns: Sequence[Answer],
        *,
        then: Answer | None = None,
    ) -> None:
        """Answer conversations whose first text contains `match` with these turns, then `then`.

        The script that was added last wins.
        """
        self._scripts.insert(0, Script(match, turns, then=then))

    def disturb(self, *turns: Turn) -> None:
        """Answer the next requests, whoever asks, with these faults."""
        with self._lock:
            self._everyone += turns

    def conversation(self, match: str) -> list[Request]:
        """The requests of conversations whose first text contains `match`, in order."""
        return [request for request in self.requests if match in request.first_text]

    def answer(self, request: Request) -> tuple[Turn, Json]:
        """The turn for a request and its message as JSON. Raises Refused."""
        with self._lock:
            self.requests.append(request)
            try:
                usage = self._check(request)
                turn = self._next_turn(request)
            except Refused as refusal:
                self.refusals.append((request, refusal))
                raise
            self._number += 1
            return turn, self._message(request, turn, usage)

    def check(self, request: Request) -> Json:
        """Check a request and count its tokens, without answering it. Raises Refused."""
        with self._lock:
            return self._check(request)

    def _check(self, request: Request) -> Json:
        check_headers(request.headers, key=self._key)
        if len(request.raw) > MOST_BYTES:
            raise Refused(413, "request_too_large", "Request exceeds the maximum size")
        body = request.body
        ends = json.dumps(body.get("messages", [])[-1:])
        check_body(
            body,
            is_new_version=request.headers.get("anthropic-version") == NEW_VERSION,
            may_end_with_assistant=ends in self._paused,
        )
        check_thinking(body, request.prefixes)
        usage = self._usage(request)
        tokens = sum(usage.values())
        if tokens > self._context_tokens:
            raise invalid(f"prompt is too long: {tokens} tokens > {self._context_tokens} maximum")
        return usage

    def _next_turn(self, request: Request) -> Turn:
        if self._everyone:
            return self._everyone.pop(0)
        for script in self._scripts:
            if script.matches(request.first_text):
                turn = script.next_turn(request)
                if turn is not None:
                    return turn
                break
        self.unscripted.append(request)
        raise invalid(f"no script answers this: {request.first_text[:80]!r}")

    def _message(self, request: Request, turn: Turn, usage: Json) -> Json:
        """The whole answer as the API would give it without streaming."""
        prefix = request.prefixes[-1].digest
        content = []
        for index, block in enumerate(turn.blocks):
            added = {}
            if block["type"] == "tool_use":
                added = {"id": f"toolu_{self._number:04d}_{index}"}
            elif block["type"] == "thinking":
                added = {"signature": signature(prefix, block["thinking"])}
            content.append({**block, **added})
        if turn.reason == "pause_turn":
            self._paused.add(json.dumps([{"role": "assistant", "content": content}]))
        return {
            "id": f"msg_{self._number:06d}",
            "type": "message",
            "role": "assistant",
            "model": request.body["model"],
            "content": content,
            "stop_reason": turn.reason,
            "stop_sequence": None,
            **({"stop_details": turn.stop_details} if turn.stop_details else {}),
            "usage": {**usage, "output_tokens": len(json.dumps(content)) // 4 + 1, **turn.usage},
        }

    def _usage(self, request: Request) -> Json:
        """Count tokens, and what the cache knew of them; remember what is cached from now on."""
        prefixes = request.prefixes
        marks = [
            index
            for index, (_, block) in enumerate(blocks(request.body))
            if block.get("cache_control") and prefixes[index].tokens >= LEAST_CACHED
        ]
        hits = [
            prefix.tokens
            for mark in marks
            for prefix in prefixes[max(mark - CACHE_LOOK_BACK + 1, 0) : mark + 1]
            if prefix.digest in self._cached
        ]
        self._cached.update(prefixes[mark].digest for mark in marks)
        total, cached = prefixes[-1].tokens, max(hits, default=0)
        written = max(prefixes[marks[-1]].tokens - cached, 0) if marks else 0
        return {
            "input_tokens": total - cached - written,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
        }


def is_extension(earlier: Request, later: Request) -> bool:
    """Does `later` repeat `earlier` byte for byte, cache marks aside, before it goes on?"""
    return later.prefixes[: len(earlier.prefixes)] == earlier.prefixes


def assert_append_only(requests: Sequence[Request]) -> None:
    """Fail if a request of this one conversation changed anything of the request before it."""
    for earlier, later in pairwise(requests):
        assert is_extension(earlier, later), f"{later.body['messages']} changes its history"


def main() -> None:
    """Serve a script file until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True, help="see messages_script.from_file")
    parser.add_argument("--key", help="accept this key only")
    arguments = parser.parse_args()
    scripts = from_file(yaml.safe_load(arguments.script.read_text()))
    with MessagesApi(port=arguments.port, key=arguments.key, scripts=scripts) as api:
        print(api.base_url, flush=True)  # noqa: T201  for the person who started it
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
