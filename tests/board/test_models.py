"""Rules that hold in the database itself, whoever writes: constraints, and the order of ranks."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from board.models import Approval, Card, Dependency, Event, Run, Step, User
from board.states import LIVE, RunStatus

pytestmark = pytest.mark.django_db


def refused(write):
    """Whether the database refuses what `write` writes."""
    try:
        with transaction.atomic():
            write()
    except IntegrityError:
        return True
    return False


def test_a_card_has_at_most_one_live_run(running):
    def add(status, attempt):
        Run.objects.create(
            project=running.project, card=running.card, attempt=attempt, status=status,
            worker=running.worker, lease_until=Now(),
        )  # fmt: skip

    for status in RunStatus:
        assert refused(lambda status=status: add(status, 2)) == (status in LIVE)
        Run.objects.filter(attempt=2).delete()


def test_an_attempt_has_one_number(running):
    copy = {"project": running.project, "card": running.card, "status": RunStatus.FAILED}
    assert refused(lambda: Run.objects.create(attempt=1, **copy))
    assert not refused(lambda: Run.objects.create(attempt=2, **copy))


def test_a_run_at_work_has_a_worker_and_a_lease(running):
    for missing in ("worker", "lease_until"):
        assert refused(lambda missing=missing: Run.objects.update(**{missing: None}))
    Run.objects.update(status=RunStatus.WAITING, worker=None, lease_until=None)


def test_a_number_and_a_place_belong_to_one_card(new_card):
    a, b = new_card("a"), new_card("b")
    assert refused(lambda: Card.objects.filter(pk=b.pk).update(number=a.number))
    assert refused(lambda: Card.objects.filter(pk=b.pk).update(rank=a.rank))


def test_a_card_cannot_need_itself_nor_one_twice(new_card):
    a, b = new_card("a"), new_card("b")
    assert refused(lambda: Dependency.objects.create(card=a, needs=a))
    Dependency.objects.create(card=a, needs=b)
    assert refused(lambda: Dependency.objects.create(card=a, needs=b))


def test_fewer_than_no_cards_cannot_be_waited_for(new_card):
    new_card("a")
    assert refused(lambda: Card.objects.update(unmet=-1))


def test_a_step_has_one_open_question(running):
    step = Step.objects.create(run=running, seq=1, kind="tool", status="pending", fence=1)

    def ask(status="pending"):
        Approval.objects.create(
            project=running.project, run=running, step=step, tool="bash", rule="D1",
            digest="0" * 64, status=status,
        )  # fmt: skip

    ask()
    assert refused(ask)
    assert not refused(lambda: ask("denied"))


def test_an_events_number_is_given_once(project):
    def add():
        Event.objects.create(project=project, seq=1, kind="CardMoved", actor="Alice")

    assert refused(add)


def test_an_address_is_one_persons_in_any_letter_case(alice):
    assert refused(lambda: User.objects.create(email="ALICE@example.org", name="Alice"))


def test_ranks_are_ordered_by_their_bytes_in_every_database(new_card):
    ranks = ["Zz", "a0", "a00", "a1", "aA", "aZ", "aa", "az", "b00"]
    cards = [new_card(rank) for rank in ranks]
    for card, rank in zip(cards, reversed(ranks), strict=True):
        Card.objects.filter(pk=card.pk).update(rank=rank)
    assert list(Card.objects.order_by("rank").values_list("rank", flat=True)) == ranks
    above = Card.objects.filter(rank__gt="aZ").values_list("rank", flat=True)
    assert set(above) == {"aa", "az", "b00"}
