"""Lets things happen at the same moment, each in a thread with a database connection of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections

SECONDS = 30.0


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Make all calls at the same moment and return what each returned, or raised if a BoardError."""
    from board.errors import BoardError

    start = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            start.wait(SECONDS)
            return call()
        except BoardError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result(SECONDS) for future in [threads.submit(run, call) for call in calls]]
