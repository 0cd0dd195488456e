"""The audit: one chain whatever happens at once, never rewritten, and broken visibly if it is."""

import hashlib

import pytest
from django.db import DatabaseError, connection, transaction

from board.actions import audit
from board.actions.audit import Act
from board.events import Actor
from board.models import AuditEntry, AuditHead
from tests.races import at_once

ANN = Actor("Ann", 7)


@pytest.mark.django_db
def test_an_entry_holds_who_what_and_the_hash_of_the_one_before(project):
    audit.record(Act("first", ANN, project=project, data={"a": 1}), Act("second", ANN))
    first, second = AuditEntry.objects.order_by("-number")[:2][::-1]
    assert (first.kind, first.actor, first.user_id, first.project) == ("first", "Ann", 7, "BIL")
    assert first.data == '{"a":1}'
    assert second.previous == first.hash == audit.hash_of(first)
    head = AuditHead.objects.get()
    assert (head.number, head.hash) == (second.number, second.hash)


@pytest.mark.django_db
def test_an_entry_read_back_has_the_hash_it_was_written_with():
    audit.record(Act("a", ANN, data={"text": "ä\u2028\U0001f600", "number": 1.5, "none": None}))
    entry = AuditEntry.objects.latest("number")
    assert audit.hash_of(entry) == entry.hash


@pytest.mark.django_db
def test_a_long_value_is_cut_and_named_by_its_hash():
    audit.record(Act("a", ANN, data={"command": "x" * 5_000}))
    data = audit.bounded({"command": "x" * 5_000})
    assert len(data["command"]) == audit.MAX_VALUE
    assert data["command_characters"] == 5_000
    assert data["command_sha256"] == hashlib.sha256(b"x" * 5_000).hexdigest()


@pytest.mark.django_db
def test_many_long_values_stay_within_bounds():
    data = audit.bounded({f"field{n}": "y" * 1_999 for n in range(1_000)})
    assert sum(len(value) for value in data.values() if "y" in str(value)) <= audit.MAX_DATA


REWRITINGS = (
    "UPDATE board_auditentry SET actor = 'nobody'",
    "DELETE FROM board_auditentry",
    "UPDATE board_audithead SET number = 0",
    "UPDATE board_audithead SET hash = 'x'",
    "DELETE FROM board_audithead",
)
TRUNCATIONS = ("TRUNCATE board_auditentry", "TRUNCATE board_audithead")  # SQLite has none


@pytest.mark.django_db
def test_the_database_refuses_to_rewrite_the_audit():
    audit.record(Act("a", ANN))
    is_postgres = connection.vendor == "postgresql"
    for statement in REWRITINGS + (TRUNCATIONS if is_postgres else ()):
        with (
            pytest.raises(DatabaseError, match="audit"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
    assert AuditEntry.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_eight_writers_at_once_make_one_unbroken_chain():
    each = 25

    def write(name: str):
        def run() -> None:
            for number in range(each):
                audit.record(Act("race", Actor(name), data={"number": number}))

        return run

    at_once(*(write(f"writer {number}") for number in range(8)))
    entries = list(AuditEntry.objects.order_by("number"))
    assert [entry.number for entry in entries] == list(range(1, 8 * each + 1))
    previous = audit.EMPTY
    for entry in entries:
        assert entry.previous == previous
        assert entry.hash == audit.hash_of(entry)
        previous = entry.hash
    assert AuditHead.objects.get().hash == previous


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_leaves_no_entry():
    with transaction.atomic():
        audit.record(Act("a", ANN))
        transaction.set_rollback(True)
    audit.record(Act("b", ANN))
    assert AuditEntry.objects.get().kind == "b"
    assert AuditEntry.objects.get().number == 1
