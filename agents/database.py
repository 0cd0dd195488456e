"""Database calls from the worker's event loop: a few threads of their own, each with its connection.

asgiref's single thread would serialise all runs of a worker (django/asgiref#348).
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, connection

P = ParamSpec("P")
T = TypeVar("T")

DATABASE_IS_AWAY = (OperationalError, InterfaceError)

THREADS = 4  # so many connections a worker has; fifty waiting runs share them


class Database:
    """Call it with a function of `board.actions`: `await db(runs.give_back, run_id, fence)`."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="agents-db")

    async def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` in one of the threads and return what it returns."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, function, *args, **kwargs))

    def close(self) -> None:
        """Wait for what is under way and close the connections."""
        for _ in range(THREADS):
            self._threads.submit(connection.close)
        self._threads.shutdown(wait=True)


def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function`; a connection that broke is closed, so that the next call gets a new one."""
    try:
        return function(*args, **kwargs)
    except (DatabaseError, InterfaceError):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
        raise
