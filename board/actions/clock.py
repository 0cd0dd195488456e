"""The database's clock for statements in plain SQL; elsewhere `Now()` says the same."""

from django.db import connection

# Doubled because parameters are written with one: as `Now()` has it.
_SQLITE = "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')"
_POSTGRES = "STATEMENT_TIMESTAMP()"


def now_in_sql() -> str:
    """Return the expression for this moment, to be put into a statement with parameters."""
    return _POSTGRES if connection.vendor == "postgresql" else _SQLITE
