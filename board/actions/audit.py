"""The audit: entries are added to one chain of hashes, in the transaction of what they record.

Lock order: the head of the chain is the last lock of a transaction, behind cards, runs and the
project's row (`events.publish`). So `record` is called last, and nothing is written after it; a
fixture of the tests holds every action to that.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from board.actions.texts import clean
from board.events import Actor
from board.models import AuditEntry, Project
from board.redaction import redact

EMPTY = "0" * 64  # the hash before the first entry
HASHED = (
    "number", "kind", "actor", "user_id", "project_id", "project", "card", "run_id", "step",
    "verdict", "rule", "data", "previous",
)  # fmt: skip
STORED = (*HASHED, "at", "hash")
_LOCK_HEAD = "SELECT number, hash FROM board_audithead WHERE id = 1"
_MOVE_HEAD = "UPDATE board_audithead SET number = %s, hash = %s WHERE id = 1"
_ADD = (
    f"INSERT INTO board_auditentry ({', '.join(STORED)}) VALUES ({', '.join(['%s'] * len(STORED))})"  # noqa: S608
)
MAX_VALUE = 2_000  # characters kept of one value; its hash covers all of it
MAX_DATA = 16_000  # characters of all values together


@dataclass(frozen=True)
class Named:
    """What an entry keeps of a project, where there is no need for more."""

    pk: int
    key: str


@dataclass(frozen=True)
class Act:
    """What is to be recorded. Values of `data` that are long are cut, with the SHA-256 of the whole."""

    kind: str
    by: Actor
    project: Project | Named | None = None
    run_id: int | None = None
    card: str = ""  # KEY-12
    step: int | None = None
    verdict: str = ""
    rule: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


def record(*acts: Act) -> None:
    """Add entries, one for each act, to the end of the chain. The last write of a transaction."""
    # Without a savepoint of its own: what fails here fails the whole act. In plain SQL, because each
    # call of an agent waits for this twice, and building these statements takes longer than running them.
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(_LOCK_HEAD + (" FOR UPDATE" if connection.vendor == "postgresql" else ""))
        number, previous = cursor.fetchone()
        for act in acts:
            number += 1
            at = timezone.now()
            entry = {**_entry(act), "number": number, "previous": previous}
            previous = _hash(entry, at)
            entry |= {"at": connection.ops.adapt_datetimefield_value(at), "hash": previous}
            cursor.execute(_ADD, [entry[name] for name in STORED])
        cursor.execute(_MOVE_HEAD, [number, previous])


def _entry(act: Act) -> dict[str, Any]:
    """All that an entry says of `act`."""
    return {
        "kind": act.kind,
        "actor": clean(act.by.name)[:120],
        "user_id": act.by.user_id,
        "project_id": act.project.pk if act.project else None,
        "project": act.project.key if act.project else "",
        "card": act.card,
        "run_id": act.run_id,
        "step": act.step,
        "verdict": act.verdict,
        "rule": act.rule,
        "data": canonical(bounded(redact(clean(dict(act.data))))),
    }


def hash_of(entry: AuditEntry) -> str:
    """Return the SHA-256 of all of an entry but its `hash`."""
    return _hash({name: getattr(entry, name) for name in HASHED}, entry.at)


def _hash(values: Mapping[str, Any], at: datetime) -> str:
    text = canonical({**values, "at": at.isoformat(timespec="microseconds")})
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: Any) -> str:
    """Return JSON that is the same for equal values: sorted names, no blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def bounded(data: dict[str, Any]) -> dict[str, Any]:
    """Return `data` with long values cut; what was cut is named with its length and SHA-256."""
    kept: dict[str, Any] = {}
    left = MAX_DATA
    for name, value in data.items():
        text = value if isinstance(value, str) else canonical(value)
        if len(text) <= min(MAX_VALUE, left):
            kept[name] = value
        else:
            kept[name] = text[: min(MAX_VALUE, max(left, 0))]
            kept[f"{name}_sha256"] = hashlib.sha256(text.encode()).hexdigest()
            kept[f"{name}_characters"] = len(text)
        left -= min(len(text), MAX_VALUE)
    return kept


GUARDS = frozenset({"audit_no_update", "audit_head_forward", "audit_head_stays"})
GUARDS_OF = {
    "sqlite": GUARDS | {"audit_no_delete"},
    "postgresql": GUARDS | {"audit_no_truncate", "audit_head_no_truncate"},
}


def missing_guards() -> list[str]:
    """Return the names of triggers that should refuse to rewrite the audit and are not there."""
    return sorted(GUARDS_OF[connection.vendor] - _guards())


def _guards() -> set[str]:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D' AND tgname LIKE 'audit\\_%%'"
            )
        else:
            cursor.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'audit\\_%%' ESCAPE '\\'"
            )
        return {row[0] for row in cursor.fetchall()}
