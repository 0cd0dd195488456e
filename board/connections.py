"""What each connection to PostgreSQL is told first: nobody keeps locks while silent.

A process that is frozen, or whose machine is gone without a word, may hold the row of a run. Everybody
else would skip that row, or wait for it, for as long as the connection seems alive: hours.
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

# Our transactions take milliseconds and wait for nothing but the database.
SILENCE_SECONDS = 15


def limit_silence(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    """Let the server end a session that is silent in the middle of a transaction. SQLite has no server."""
    del kwargs
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET idle_in_transaction_session_timeout = '{SILENCE_SECONDS}s'")


def was_ended_for_silence(error: BaseException) -> bool:
    """Whether the server has ended the session for that; Django calls it an internal error."""
    return getattr(error.__cause__, "sqlstate", "") == "25P03"
