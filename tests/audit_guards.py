"""Holds every test to the audit's two rules: it is written last, and nobody rewrites it.

Emptying the tables between tests rewrites it, so that alone is done with the triggers off.
"""

import importlib
import re
from collections.abc import Callable, Iterable
from typing import Any

from django.db import connection as default_connection
from django.db.backends.base.operations import BaseDatabaseOperations
from django.db.backends.signals import connection_created

migration = importlib.import_module("board.migrations._audit_guards")

WRITES = re.compile(
    r"\s*(INSERT|UPDATE|DELETE)\b|.*\bFOR (NO KEY )?UPDATE", re.IGNORECASE | re.DOTALL
)
OF_AUDIT = re.compile(
    r'\s*(INSERT INTO|UPDATE|SELECT .* FROM) "?board_audit', re.IGNORECASE | re.DOTALL
)
# Django notes the migration with which the audit begins, and nobody else is at work then.
OF_MIGRATIONS = re.compile(r'\s*INSERT INTO "?django_migrations')


def install() -> None:
    """Watch every connection of this process from now on, and let tables be emptied."""
    connection_created.connect(_watch)
    empty: Callable[..., None] = BaseDatabaseOperations.execute_sql_flush

    def execute_sql_flush(self: BaseDatabaseOperations, sql_list: Iterable[str]) -> None:
        migration.unguard(self.connection)
        empty(self, sql_list)
        with self.connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO board_audithead (id, number, hash) VALUES (1, 0, %s)",
                [migration.EMPTY],
            )
        migration.guard(self.connection)

    BaseDatabaseOperations.execute_sql_flush = execute_sql_flush  # type: ignore[method-assign]


def _watch(connection: Any, **_: object) -> None:
    if _nothing_after not in connection.execute_wrappers:
        connection.execute_wrappers.append(_nothing_after)


def _nothing_after(execute: Callable[..., Any], sql: Any, params: Any, *rest: Any) -> Any:
    """Refuse a write behind the audit's in the same transaction: it could wait for a lock, and deadlock."""
    connection = rest[-1]["connection"]
    text = str(sql)
    transaction = getattr(connection, "audited_in", None)
    is_audit = OF_AUDIT.match(text) is not None
    if transaction and any(block is transaction for block in connection.atomic_blocks):
        is_fine = is_audit or OF_MIGRATIONS.match(text) or not WRITES.match(text)
        assert is_fine, f"written after the audit: {text[:300]}"
    answer = execute(sql, params, *rest)
    if is_audit and text.lstrip().upper().startswith("INSERT"):
        # What pytest wraps around a test is no transaction of ours.
        ours = (b for b in connection.atomic_blocks if not getattr(b, "_from_testcase", False))
        connection.audited_in = next(ours, None)
    return answer


def rewrite(statement: str, values: list[Any]) -> None:
    """Do to the audit what an attacker with the database's own rights would do."""
    migration.unguard(default_connection)
    with default_connection.cursor() as cursor:
        cursor.execute(statement, values)
    migration.guard(default_connection)
