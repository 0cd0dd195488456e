"""An open page without a browser: the client's rules in Python, on the product's own sockets."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

from board import fragments
from board.asgi import application
from board.models import Project, User

ORIGIN = settings.PUBLIC_URL
DEADLINE = 8.0  # seconds until a test that waits gives up

R = TypeVar("R")


async def run(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Call what reads or writes the database, in a thread."""
    call: Callable[..., Awaitable[R]] = database_sync_to_async(function)
    return await call(*args, **kwargs)


async def until(condition: Callable[[], Any], *, seconds: float = DEADLINE) -> None:
    """Wait until `condition` is true, or fail."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  the condition is anything
            await asyncio.sleep(0.01)


def sign_in(user: User) -> str:
    """Return the key of a new session of `user`."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return str(session.session_key)


def open_socket(
    key: str, *, session: str = "", origin: str | None = ORIGIN
) -> WebsocketCommunicator:
    """Return a socket that is not connected yet."""
    headers = [(b"origin", origin.encode())] if origin is not None else []
    if session:
        headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={session}".encode()))
    return WebsocketCommunicator(application, f"/ws/projects/{key}/", headers=headers)


Cards = dict[int, tuple[int, int, str, str]]  # rev, column, rank, html


def fresh_cards(project: Project) -> tuple[int, int, Cards]:
    """Return the seq, the epoch and the cards of a page that is rendered now."""
    now = Project.objects.get(pk=project.pk)
    cards = {
        card.pk: (card.rev, card.column_id, card.rank, still(fragments.render_card(card)))
        for card in fragments.board_cards(now)
    }
    return now.seq, now.epoch, cards


def still(html: str) -> str:
    """Return the card without what a tick changes between two events."""
    return re.sub(r"(data-(?:activity|step)=\"\d+\">)[^<]*", r"\1", html)


def span(frame: dict[str, Any]) -> tuple[int, int]:
    """Return the first and the last seq that a frame brings."""
    if frame["type"] == "ev":
        return frame["seq"], frame["seq"]
    return frame["from"], frame["to"]


class Browser:
    """One tab. Applies frames as static/js/live.js does, to a dictionary instead of a page."""

    def __init__(self, user: User, project: Project) -> None:
        self.user, self.project = user, project
        self.session = ""
        self.applied = self.epoch = 0
        self.cards: Cards = {}
        self.early: list[dict[str, Any]] = []
        self.frames: list[dict[str, Any]] = []
        self.cord: str | None = None
        self.closed: int | None = None  # the code
        self.reloads = 0
        self._socket: WebsocketCommunicator | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stale = asyncio.Event()

    async def load(self) -> None:
        """Open the page: its seq is read before its cards."""
        self.applied, self.epoch, self.cards = await run(fresh_cards, self.project)
        self.early = []
        self.reloads += 1

    async def connect(self) -> None:
        """Open the socket and say what the page shows."""
        self.session = self.session or await run(sign_in, self.user)
        self.closed = None
        self._socket = open_socket(self.project.key, session=self.session)
        accepted, _ = await self._socket.connect(timeout=DEADLINE)
        assert accepted
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._reload())]

    async def open(self) -> "Browser":
        """Open the page and its socket."""
        await self.load()
        await self.connect()
        await until(lambda: self.closed is not None or self.of("batch", "resync"))
        return self

    async def sleep(self) -> None:
        """Lose the socket, as a laptop does."""
        for task in self._tasks:
            task.cancel()
        if self._socket is not None:
            await self._socket.disconnect(timeout=DEADLINE)
        self._socket = None

    async def send(self, kind: str, **fields: Any) -> None:
        """Send one command."""
        await self.send_text(json.dumps({"type": kind, **fields}))

    async def send_text(self, text: str) -> None:
        """Send anything at all."""
        assert self._socket is not None
        await self._socket.send_to(text_data=text)

    async def resume(self) -> None:
        """Ask for everything after what the page shows."""
        if self.is_connected:
            await self.send("resume", epoch=self.epoch, seq=self.applied)

    @property
    def is_connected(self) -> bool:
        """Whether the page has a socket that was not closed."""
        return self._socket is not None and self.closed is None

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the frames of these kinds, in order."""
        return [frame for frame in self.frames if frame["type"] in kinds]

    async def _listen(self) -> None:
        assert self._socket is not None
        while True:
            message = await self._socket.output_queue.get()
            if message["type"] == "websocket.close":
                self.closed = message["code"]
                return
            frame = json.loads(message["text"])
            self.frames.append(frame)
            await self.take(frame)

    async def _reload(self) -> None:
        while True:
            await self._stale.wait()
            await self.load()
            # As in live.js, nothing asks for a second reading during the first; who resumes misses nothing.
            self._stale.clear()
            await self.resume()

    async def take(self, frame: dict[str, Any]) -> None:
        """Do what a frame asks for."""
        match frame["type"]:
            case "hello":
                await self.resume()
            case "ev" | "batch":
                await self._apply(frame)
            case "now":
                self._change(frame["ops"])
            case "hb" if frame["epoch"] != self.epoch:
                self._stale.set()
            case "hb" if frame["seq"] > self.applied:
                await self.resume()
            case "lag":
                await self.resume()
            case "resync":
                self._stale.set()
            case _:
                pass

    async def _apply(self, frame: dict[str, Any]) -> None:
        first, last = span(frame)
        if last <= self.applied:
            return
        if first > self.applied + 1:
            await self.resume()
            return
        self.applied = last
        self._change(frame["ops"])

    def _change(self, ops: list[dict[str, Any]]) -> None:
        for op in ops:
            known = self.cards.get(op.get("id", 0), (0, 0, "", ""))
            match op["op"]:
                case "put" if op["rev"] >= known[0]:
                    self.cards[op["id"]] = op["rev"], op["column"], op["rank"], still(op["html"])
                case "del" if op["rev"] >= known[0]:
                    self.cards.pop(op["id"], None)
                case "cord":
                    self.cord = op["html"]
                case "col":
                    self._stale.set()
                case _:
                    pass

    async def is_fresh(self) -> bool:
        """Return whether the page equals one that is rendered now."""
        seq, _, cards = await run(fresh_cards, self.project)
        return seq == self.applied and cards == self.cards

    async def settle(self, *, seconds: float = DEADLINE) -> None:
        """Wait until the page equals one that is rendered now, or fail with the difference."""
        try:
            async with asyncio.timeout(seconds):
                while not await self.is_fresh():  # noqa: ASYNC110  a database cannot call us
                    await asyncio.sleep(0.05)
        except TimeoutError:
            seq, _, cards = await run(fresh_cards, self.project)
            assert (self.applied, self.cards) == (seq, cards)
