"""Doorbells to other processes: `ring("project.7")` wakes everyone who watches it. Best effort.

One background thread with one event loop sends them all, over one connection. A doorbell carries no
content, so that losing, doubling or reordering it changes nothing: whoever hears it reads the database.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from channels.layers import get_channel_layer

log = logging.getLogger(__name__)

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pending: set[str] = set()  # groups with a doorbell under way; a second ring adds nothing
_errands = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bus-errands")
_waiting: set[Callable[[], None]] = set()


def ring(group: str) -> None:
    """Wake everyone in `group`. Never blocks, never raises."""
    with _lock:
        if group in _pending:
            return
        _pending.add(group)
        loop = _running_loop()
    future = asyncio.run_coroutine_threadsafe(_send(group), loop)
    future.add_done_callback(_note_failure)


def project_group(project_id: int) -> str:
    """Return the group that hears of a project's events."""
    return f"project.{project_id}"


def run_group(run_id: int) -> str:
    """Return the group that hears of a run's log."""
    return f"run.{run_id}"


def user_group(user_id: int) -> str:
    """Return the group that hears when a person's rights change."""
    return f"user.{user_id}"


def run_soon(work: Callable[[], None]) -> None:
    """Call `work` soon, in a thread of its own that runs one such call after another."""
    with _lock:
        if work in _waiting:
            return
        _waiting.add(work)
    _errands.submit(_run, work)


def _run(work: Callable[[], None]) -> None:
    with _lock:
        _waiting.discard(work)
    work()


async def _send(group: str) -> None:
    # What is written from here on rings again.
    with _lock:
        _pending.discard(group)
    layer = get_channel_layer()
    if layer is not None:
        await layer.group_send(group, {"type": "ring", "group": group})


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603  one loop for the process, started when first needed
    if _loop is None:
        _loop = asyncio.new_event_loop()
        threading.Thread(target=_loop.run_forever, name="bus", daemon=True).start()
    return _loop


_complained = False


def _note_failure(future: "Future[Any]") -> None:
    global _complained  # noqa: PLW0603  a dead Redis is worth one line, not one for each doorbell
    error = future.exception()
    if error is None:
        _complained = False
    elif not _complained:
        _complained = True
        log.warning("Doorbells are not heard (%s); everyone polls until they are again", error)
