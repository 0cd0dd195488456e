"""Reading the audit, for owners of the installation: filtered, page by page, exported, verified."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.dateparse import parse_date
from django.utils.timezone import make_aware

from board.actions.audit import EMPTY, hash_of, missing_guards
from board.errors import NotAllowedError
from board.models import AuditEntry, AuditHead, User

PAGE = 100  # entries
CHUNK = 500  # entries that are read at once for an export
COLUMNS = (
    "number", "at", "kind", "actor", "user_id", "project", "card", "run_id", "step", "verdict",
    "rule", "data", "previous", "hash",
)  # fmt: skip
EXACT = ("kind", "project", "card", "verdict", "rule")
# A spreadsheet takes a cell that begins so for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_owner(user: User) -> None:
    """Raise NotAllowedError unless `user` owns the installation."""
    if not user.is_owner:
        raise NotAllowedError("Only an owner of this installation may read its audit.")


def find_entries(user: User, wanted: Mapping[str, str]) -> QuerySet[AuditEntry]:
    """Return the entries that fit, newest first. Raises NotAllowedError for all but owners.

    `wanted`: kind, project (key), card (KEY-12), verdict, rule, actor (a part of the name), run,
    from and to (dates).
    """
    check_owner(user)
    entries = AuditEntry.objects.order_by("-number")
    for name in EXACT:
        if wanted.get(name):
            entries = entries.filter(**{name: wanted[name].strip()})
    if wanted.get("actor"):
        entries = entries.filter(actor__icontains=wanted["actor"].strip())
    if wanted.get("run", "").isdigit():
        entries = entries.filter(run_id=int(wanted["run"][:18]))
    if since := _day(wanted.get("from", "")):
        entries = entries.filter(at__gte=since)
    if until := _day(wanted.get("to", ""), end=True):
        entries = entries.filter(at__lte=until)
    return entries


def _day(text: str, *, end: bool = False) -> datetime | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    if day is None:
        return None
    time = datetime.max.time() if end else datetime.min.time()
    return make_aware(datetime.combine(day, time))


def known_kinds() -> list[str]:
    """Return the kinds of entries that there are."""
    return list(AuditEntry.objects.order_by("kind").values_list("kind", flat=True).distinct())


def chunks(entries: QuerySet[AuditEntry]) -> Iterator[list[AuditEntry]]:
    """Read the entries, oldest first, a few at a time, as far as there are any when each is read."""
    last = 0
    while chunk := list(entries.order_by("number").filter(number__gt=last)[:CHUNK]):
        yield chunk
        last = chunk[-1].number


def as_json_lines(entries: list[AuditEntry]) -> str:
    """Return one line of JSON for each entry, with all that its hash covers."""
    rows = ({name: _plain(entry, name) for name in COLUMNS} for entry in entries)
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_csv(entries: list[AuditEntry], *, with_head: bool) -> str:
    """Return the rows of a table; a cell that a spreadsheet would run begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    if with_head:
        writer.writerow(COLUMNS)
    for entry in entries:
        cells = (_plain(entry, name) for name in COLUMNS)
        writer.writerow(
            [f"'{c}" if isinstance(c, str) and c.startswith(FORMULA) else c for c in cells]
        )
    return out.getvalue()


def _plain(entry: AuditEntry, name: str) -> Any:
    value = getattr(entry, name)
    return value.isoformat(timespec="microseconds") if isinstance(value, datetime) else value


@dataclass(frozen=True)
class Finding:
    """What a look at the whole chain found: `problem` is empty if nothing is wrong."""

    entries: int
    head: str  # `number:hash` of the last entry, to be kept elsewhere and given back
    problem: str = ""


def verify(kept_head: str = "") -> Finding:
    """Compute every hash again. `kept_head` is a head that was printed before, `number:hash`."""
    kept_number, _, kept_hash = kept_head.partition(":")
    previous, count, kept_is_there = EMPTY, 0, not kept_head
    for chunk in chunks(AuditEntry.objects.all()):
        for entry in chunk:
            problem = _problem(entry, count + 1, previous)
            if problem:
                return Finding(count, f"{count}:{previous}", problem)
            previous, count = entry.hash, entry.number
            kept_is_there |= (str(count), previous) == (kept_number, kept_hash)
    problem = _end_problem(count, previous)
    if not problem and not kept_is_there:
        problem = f"the chain was rewritten or cut: it does not hold the head {kept_head}"
    return Finding(count, f"{count}:{previous}", problem)


def _problem(entry: AuditEntry, number: int, previous: str) -> str:
    if entry.number != number:
        missing = (
            f"entry {number}"
            if entry.number == number + 1
            else f"entries {number} to {entry.number - 1}"
        )
        return f"{missing} removed: {entry.number} follows {number - 1}"
    if entry.previous != previous:
        return f"entry {number} does not follow the one before it"
    if hash_of(entry) != entry.hash:
        return f"entry {number} was changed: its hash is another"
    return ""


def _end_problem(count: int, previous: str) -> str:
    head = AuditHead.objects.get()
    if head.number > count:
        return f"the end was removed: entries {count + 1} to {head.number} are missing"
    if head.number == count and head.hash != previous:
        return f"entry {count} is not the one that the head names"
    if missing := missing_guards():
        return f"the database no longer refuses to rewrite it: {', '.join(missing)} missing"
    return ""
