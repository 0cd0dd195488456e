"""Workers: who is there, and who leads the housekeeping."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from board.actions.workers import FORGET_AFTER, register_worker, stop_worker, take_lead
from board.models import LeaderLease, Worker
from tests.races import at_once

pytestmark = pytest.mark.django_db


def start():
    worker = Worker(host="here", pid=1, version="0", slots=4, sandbox="none")
    register_worker(worker)
    return worker


def test_a_worker_is_there_until_it_stops():
    worker = start()
    row = Worker.objects.get()
    assert row.heartbeat_at is not None
    assert row.stopped_at is None
    stop_worker(worker.pk)
    assert Worker.objects.get().stopped_at is not None


def test_a_worker_that_stopped_long_ago_is_forgotten():
    old, recent = start(), start()
    Worker.objects.filter(pk=old.pk).update(heartbeat_at=Now() - 2 * FORGET_AFTER)
    new = start()
    assert set(Worker.objects.values_list("pk", flat=True)) == {recent.pk, new.pk}


def test_a_leader_leads_until_its_lease_ends():
    first, second = uuid4(), uuid4()
    assert take_lead("beat", first, seconds=30)
    assert take_lead("beat", first, seconds=30)
    assert not take_lead("beat", second, seconds=30)
    assert take_lead("other", second, seconds=30)
    LeaderLease.objects.filter(name="beat").update(expires_at=Now() - timedelta(seconds=1))
    assert take_lead("beat", second, seconds=30)
    assert not take_lead("beat", first, seconds=30)


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_at_the_same_moment_one_leads():
    assert sum(at_once(*[lambda: take_lead("beat", uuid4(), seconds=30) for _ in range(6)])) == 1
    LeaderLease.objects.update(expires_at=Now() - timedelta(seconds=1))
    assert sum(at_once(*[lambda: take_lead("beat", uuid4(), seconds=30) for _ in range(6)])) == 1
