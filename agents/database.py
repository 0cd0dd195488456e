"""Database calls from the worker's event loop: a few threads of their own, each with its connection.

asgiref's single thread would serialise all runs of a worker (django/asgiref#348).
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from agents.harness.redaction import Redactor
from board.connections import was_ended_for_silence

P = ParamSpec("P")
T = TypeVar("T")

DATABASE_IS_AWAY = (OperationalError, InterfaceError)

THREADS = 4  # so many connections a worker has; fifty waiting runs share them


class Database:
    """Call it with a function of `board.actions`: `await db(runs.give_back, run_id, fence)`."""

    def __init__(self) -> None:
        self._connections: list[BaseDatabaseWrapper] = []
        self._threads = ThreadPoolExecutor(
            THREADS, thread_name_prefix="agents-db", initializer=self._note_connection
        )

    def _note_connection(self) -> None:
        """Remember this thread's connection, to be closed when the thread is over."""
        mine = connections[DEFAULT_DB_ALIAS]
        mine.inc_thread_sharing()
        self._connections.append(mine)

    async def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` in one of the threads and return what it returns."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, function, *args, **kwargs))

    async def close(self) -> None:
        """Wait for what is under way and close the connections."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._threads.shutdown(wait=True)
        for each in self._connections:
            each.close()


class RedactedDatabase(Database):
    """The same, for all that a run writes: no argument of an action holds a secret of the run."""

    def __init__(self, db: Database, redactor: Redactor) -> None:
        self._db = db
        self._redactor = redactor

    async def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` with redacted arguments and return what it returns."""
        clean = partial(
            function,
            *(self._clean(value) for value in args),
            **{name: self._clean(value) for name, value in kwargs.items()},
        )
        return await self._db(clean)

    def _clean(self, value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            parts = {field.name: self._clean(getattr(value, field.name)) for field in fields(value)}
            return replace(value, **parts)
        return self._redactor.json(value)


def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function`; a connection that broke is closed, so that the next call gets a new one.

    One that the server has ended is away like any other: DATABASE_IS_AWAY.
    """
    try:
        return function(*args, **kwargs)
    except (DatabaseError, InterfaceError) as error:
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
        if was_ended_for_silence(error):
            raise OperationalError(*error.args) from error
        raise
