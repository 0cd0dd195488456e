"""The socket of one open page: who it is, what it may hear, what it missed, and the log that it follows.

Frames and their order are described in docs/reference/live-frames.md. A socket is accepted before it is
refused, because a browser cannot tell a refusal before that from a broken network, and would try for ever.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from channels.auth import get_user
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.http import Http404
from django.utils.module_loading import import_string

from board import bus
from board.access import get_project, get_role
from board.feeds.boards import BoardFeed
from board.feeds.doorbells import wait_for
from board.feeds.hub import current_hub
from board.feeds.logs import LogFeed, LogFollower
from board.feeds.outbox import Outbox
from board.feeds.readings import catch_up, read_log_before
from board.feeds.threads import in_thread
from board.live import frame
from board.models import Project, Run, User
from board.states import Role

log = logging.getLogger(__name__)

SIGNED_OUT, REVOKED, NOT_FOUND = 4401, 4403, 4404
TOO_LARGE, TOO_MANY = 1009, 4429
MAX_FRAME = 64 * 1024  # bytes of what a browser sends; ours send less than 200
COMMANDS_A_SECOND = 20
MAX_LOGS = 50  # followed by one socket
CHECK_SECONDS = 60.0  # after which rights are looked up again, even if nobody rang
HEARTBEAT = 25  # seconds; told to the browser

Command = Mapping[str, Any]


class ProjectConsumer(AsyncWebsocketConsumer):
    """One browser on one project. Ends by itself when the person may not see the project any more."""

    # The feeds listen for all sockets of the process; none has a channel of its own.
    channel_layer_alias = "none"

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler. Every read of the database is in the feeds' threads, which clean up."""
        handler = getattr(self, message["type"].replace(".", "_"))
        await handler(message)

    async def connect(self) -> None:
        """Accept, then say hello or close with the reason."""
        self._closed = False
        self._user: User
        self._project: Project
        self._feed: BoardFeed | None = None
        self._outbox = Outbox()
        self._tasks: set[asyncio.Task[None]] = set()
        self._logs: dict[int, tuple[LogFeed, LogFollower, asyncio.Task[None]]] = {}
        self._allowance = float(2 * COMMANDS_A_SECOND)
        self._allowance_at = asyncio.get_running_loop().time()
        self.user_id, self.role = 0, Role.VIEWER
        await self.accept()
        user: object = self.scope.get("user")
        key = self.scope["url_route"]["kwargs"].get("key")
        if not isinstance(user, User):
            await self._end(SIGNED_OUT)
            return
        self._user, self.user_id = user, user.pk
        try:
            self._project = await in_thread(get_project)(user, key or "")
            self.role = await in_thread(get_role)(user, self._project.pk)
        except Http404:
            await self._end(NOT_FOUND)
            return
        hub = current_hub()
        self._feed = hub.watch_board(self._project, self)
        hub.people.join(self)
        hello = {"board": self._project.key, "seq": self._project.seq, "epoch": self._project.epoch}
        self.offer(frame("hello", **hello, hb=HEARTBEAT, layer=hub.doorbells.working))
        self._start(self._send_frames())
        self._start(self._guard())

    async def disconnect(self, code: int) -> None:
        """Leave everything and stop every task."""
        self._closed = True
        hub = current_hub()
        for run_id in list(self._logs):
            self._unfollow(run_id)
        if self._feed is not None:
            hub.leave_board(self._feed, self)
            hub.people.leave(self)
        for task in self._tasks:
            task.cancel()

    def offer(self, text: str) -> None:
        """Take a frame from a feed."""
        if not self._closed:
            self._outbox.put(text)

    def revoke(self) -> None:
        """Send nothing more and close: the person left the project."""
        self._outbox.clear()
        self._start(self._end(REVOKED))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Carry out one command of the browser; what makes no sense is answered, not obeyed."""
        if self._closed or self._feed is None:
            return
        if text_data is None or len(text_data.encode()) > MAX_FRAME:
            await self._end(TOO_LARGE)
            return
        if not self._may_send():
            await self._end(TOO_MANY)
            return
        try:
            command = json.loads(text_data)
            handler = self.COMMANDS[command["type"]]
            await handler(self, command)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            self.offer(frame("error", code="bad_command"))

    async def _resume(self, command: Command) -> None:
        epoch, after = int(command["epoch"]), int(command["seq"])
        if not await self._check():
            return
        text, role = await in_thread(catch_up)(
            self._project.pk, epoch=epoch, after=max(after, 0), user_id=self.user_id
        )
        if role is None:
            await self._end(REVOKED)
        else:
            self.offer(text)

    async def _follow(self, command: Command) -> None:
        run_id, after = int(command["run"]), max(int(command["off"]), 0)
        self._unfollow(run_id)
        if len(self._logs) >= MAX_LOGS or not await in_thread(self._has_run)(run_id):
            self.offer(frame("error", code="no_such_log", run=run_id))
            return
        feed = current_hub().watch_log(run_id)

        async def send_gap(first: int) -> None:
            await self._send(frame("log.gap", run=run_id, off=first))

        follower = LogFollower(
            feed, user_id=self.user_id, after=after, send=self._send, send_gap=send_gap
        )
        self._logs[run_id] = feed, follower, self._start(follower.run())

    async def _unsubscribe(self, command: Command) -> None:
        self._unfollow(int(command["run"]))

    async def _acknowledge(self, command: Command) -> None:
        followed = self._logs.get(int(command["run"]))
        if followed is not None:
            followed[1].acknowledge(int(command["off"]))

    async def _page(self, command: Command) -> None:
        run_id, before = int(command["run"]), max(int(command["before"]), 0)
        if not await in_thread(self._has_run)(run_id):
            self.offer(frame("error", code="no_such_log", run=run_id))
            return
        text, members = await in_thread(read_log_before)(run_id, before)
        if self.user_id in members:
            await self._send(text)

    async def _pong(self, command: Command) -> None:
        """The browser is there. The server's own pings find out when it is not."""

    COMMANDS: ClassVar[Mapping[str, Callable[[Any, Command], Awaitable[None]]]] = {
        "resume": _resume,
        "log.sub": _follow,
        "log.unsub": _unsubscribe,
        "log.page": _page,
        "ack": _acknowledge,
        "pong": _pong,
    }

    def _has_run(self, run_id: int) -> bool:
        """Return whether the run is one of this project, of which the person is a member now."""
        try:
            get_role(self._user, self._project.pk)
        except Http404:
            return False
        return Run.objects.filter(pk=run_id, project=self._project).exists()

    def _unfollow(self, run_id: int) -> None:
        followed = self._logs.pop(run_id, None)
        if followed is not None:
            feed, _, task = followed
            task.cancel()
            current_hub().leave_log(feed)

    def _may_send(self) -> bool:
        """Take one command from the allowance, which fills up by COMMANDS_A_SECOND."""
        now = asyncio.get_running_loop().time()
        gained = (now - self._allowance_at) * COMMANDS_A_SECOND
        self._allowance_at = now
        self._allowance = min(self._allowance + gained, 2.0 * COMMANDS_A_SECOND) - 1
        return self._allowance >= 0

    async def _send_frames(self) -> None:
        while not self._closed:
            await self._send(await self._outbox.get())

    async def _guard(self) -> None:
        """Look up the person's rights when somebody rings, and each minute."""
        doorbells, group = current_hub().doorbells, bus.user_group(self.user_id)
        bell = doorbells.listen(group)
        try:
            while await self._check():
                await wait_for(bell, CHECK_SECONDS)
        finally:
            doorbells.unlisten(group, bell)

    async def _check(self) -> bool:
        """Return whether the person is still signed in and a member; close if not."""
        if not await self._is_signed_in():
            await self._end(SIGNED_OUT)
            return False
        try:
            await in_thread(get_role)(self._user, self._project.pk)
        except Http404:
            await self._end(REVOKED)
            return False
        return True

    async def _is_signed_in(self) -> bool:
        """Return whether the session still exists and is this person's: not what it was at the start."""
        store = import_string(f"{settings.SESSION_ENGINE}.SessionStore")
        session = store(self.scope["session"].session_key)
        user = await get_user({"session": session})  # type: ignore[typeddict-item]  # all it reads
        return isinstance(user, User) and user.pk == self.user_id and user.is_active

    async def _send(self, text: str) -> None:
        if not self._closed:
            await self.send(text_data=text)

    async def _end(self, code: int) -> None:
        """Close with `code`; nothing is sent after it."""
        if self._closed:
            return
        await self._send(frame("bye", code=code))
        self._closed = True
        await self.close(code)

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None and not self._closed:
            log.error("A socket was closed by an error", exc_info=task.exception())
            self._closed = True
            self._start(self.close(1011))
