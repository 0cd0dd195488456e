"""A session that is silent in a transaction gives its locks back. SQLite has no server that could see to it."""

import threading

import pytest
from django.db import connection, connections, transaction
from django.db.models.functions import Now

from agents.database import DATABASE_IS_AWAY, call
from board import connections as limits
from board.actions.housekeeping import keep_house
from board.models import Run
from board.states import RunStatus

WAIT_SECONDS = 20.0

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


def test_every_connection_has_the_limit() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == (f"{limits.SILENCE_SECONDS}s",)


def test_a_run_whose_worker_froze_while_it_held_the_row_goes_on(
    running: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SILENCE_SECONDS", 1)
    Run.objects.update(lease_until=Now())
    holds, thawed = threading.Event(), threading.Event()
    lost: list[BaseException] = []

    def write() -> None:
        with transaction.atomic():
            Run.objects.select_for_update(of=("self",)).get(pk=running.pk)
            holds.set()
            thawed.wait(WAIT_SECONDS)
            Run.objects.filter(pk=running.pk).update(branch="written by the frozen one")

    def frozen() -> None:
        try:
            call(write)
        except DATABASE_IS_AWAY as error:
            lost.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=frozen)
    thread.start()
    try:
        assert holds.wait(WAIT_SECONDS)
        assert keep_house() == 1  # waits for the lock until the server gives it back
        assert Run.objects.get().status == RunStatus.READY
    finally:
        thawed.set()
        thread.join(WAIT_SECONDS)
    assert lost
    assert Run.objects.get().branch != "written by the frozen one"
