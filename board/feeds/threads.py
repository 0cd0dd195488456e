"""The few threads in which the feeds read the database, each call with a connection of its own."""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
R = TypeVar("R")

# Few, because SQLite has one writer and a page waits for the same database.
THREADS = 4
pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="feeds")


def in_thread(function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return `function` as a coroutine function that runs in one of these threads."""
    made: Any = database_sync_to_async(function, thread_sensitive=False, executor=pool)
    return made  # type: ignore[no-any-return]
