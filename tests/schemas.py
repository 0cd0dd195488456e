"""What a database holds besides rows, in words that can be compared: `describe(connection)`.

As a program it migrates the database of DATABASE_URL by the single migrations, with what one of them has
to move, and prints what came of it as JSON.
"""

import json
import re
from typing import Any

# Each asks for a name and what is behind it, of our tables alone.
POSTGRES = (
    """SELECT 'column ' || table_name || '.' || column_name, concat_ws(' ', data_type,
        character_maximum_length, is_nullable, column_default, collation_name, is_identity)
        FROM information_schema.columns WHERE table_name LIKE 'board%'""",
    "SELECT 'index ' || indexname, indexdef FROM pg_indexes WHERE tablename LIKE 'board%'",
    """SELECT 'constraint ' || conrelid::regclass || ' ' || conname, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE conrelid::regclass::text LIKE 'board%' AND contype <> 'n'""",
    """SELECT 'trigger ' || tgname, pg_get_triggerdef(oid) FROM pg_trigger
        WHERE tgrelid::regclass::text LIKE 'board%' AND NOT tgisinternal""",
)
SQLITE = (
    "SELECT type || ' ' || name, sql FROM sqlite_master WHERE tbl_name LIKE 'board%' AND sql <> ''"
)


def describe(connection: Any) -> dict[str, Any]:
    """Return the definition of each column, index, constraint and trigger by its name."""
    with connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            cursor.execute(SQLITE)
            return {name: _parts(sql) if name.startswith("table") else sql for name, sql in cursor}
        found: dict[str, Any] = {}
        for question in POSTGRES:
            cursor.execute(question)
            found.update(cursor.fetchall())
        return found


def _parts(sql: str) -> list[str]:
    """Return the columns and constraints of a CREATE TABLE, in an order of their own."""
    parts, depth = [""], 0
    for sign in re.sub(r"^[^(]*\((.*)\)[^)]*$", r"\1", sql, flags=re.DOTALL):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return sorted(part.strip() for part in parts)


def main() -> None:
    """Migrate to before the one that moves rows, give it one to move, and go on."""
    import django

    django.setup()
    from django.db import connection
    from django.utils.timezone import now

    apps = _migrate(connection, "0006_grants")
    user = apps.get_model("board", "User").objects.create(email="a@example.org", name="A")
    project = apps.get_model("board", "Project").objects.create(
        key="BIL", name="Billing", repository="/nowhere", created_by=user
    )
    rule = {"tier": "allow", "tool": "bash", "input": {"command": "make"}}
    apps.get_model("board", "PolicyVersion").objects.create(
        project=project, version=1, rules=[rule], author=user, created_at=now()
    )
    apps = _migrate(connection, "0011_containers")
    print(  # noqa: T201
        json.dumps(
            {
                "schema": describe(connection),
                "grants": list(apps.get_model("board", "Grant").objects.values("tool", "input")),
                "head": list(
                    apps.get_model("board", "AuditHead").objects.values("pk", "number", "hash")
                ),
            }
        )
    )


def _migrate(connection: Any, name: str) -> Any:
    from django.db.migrations.executor import MigrationExecutor
    from django.db.migrations.loader import MigrationLoader

    executor = MigrationExecutor(connection)
    executor.loader = MigrationLoader(connection, replace_migrations=False)
    state = executor.migrate([("board", name)])
    return state.apps


if __name__ == "__main__":
    main()
