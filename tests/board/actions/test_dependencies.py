"""What cards need: counting, cycles, the diamond, failures that spread and are taken back."""

from functools import partial
from typing import Any

import pytest

from board.actions import cards
from board.actions.cancels import cancel_card
from board.actions.claims import claim_next
from board.actions.dependencies import count_unmet, set_dependencies
from board.actions.errands import claim_errand
from board.actions.merges import finish_merge, request_merge
from board.actions.projects import create_project
from board.actions.runs import begin_work, fail_run, finish_run
from board.errors import TransitionError, ValidationError
from board.events import Actor
from board.models import Card, Dependency, Event, Project, Run
from board.states import CardStatus, FailureKind
from tests.races import at_once

pytestmark = pytest.mark.django_db


def statuses():
    return list(Card.objects.order_by("number").values_list("status", "unmet"))


def claim(worker) -> Any:
    return claim_next(worker.pk, agent="agent-1", with_credential=True)


def work(worker, claimed, alice):
    """Let the claimed run succeed and its card be merged."""
    begin_work(claimed.run_id, claimed.fence)
    finish_run(
        claimed.run_id, claimed.fence,
        head_sha="a" * 40, summary="Done.", evidence=[], changes={}, active_seconds=1,
    )  # fmt: skip
    card = Run.objects.get(pk=claimed.run_id).card
    request_merge(card, by=alice)
    errand: Any = claim_errand(worker.pk)
    finish_merge(errand, fence=errand.fence, sha="b" * 40, delivery="Merged.", by=Actor.PULLCORD)
    return card


def test_a_card_counts_the_cards_it_needs(new_card, alice):
    a, b = new_card("a"), new_card("b")
    c = new_card("c", depends_on=[a, b])
    assert (c.unmet, c.is_blocked) == (2, True)
    set_dependencies(c, [b], by=alice)
    assert c.unmet == 1
    event = Event.objects.filter(card=c).latest("seq")
    assert (event.kind, event.payload, event.actor) == ("CardBlocked", {"unmet": 1}, "Alice")
    set_dependencies(c, [b], by=alice)
    assert Event.objects.filter(card=c, kind="CardBlocked").count() == 1


def test_what_is_done_is_not_waited_for(new_card, alice):
    a = new_card("a")
    cards.finish_by_hand(a, by=alice, to=CardStatus.DONE)
    assert new_card("b", depends_on=[a]).unmet == 0


def test_a_circle_is_refused_and_its_path_named(new_card, alice):
    a = new_card("a")
    b = new_card("b", depends_on=[a])
    c = new_card("c", depends_on=[b])
    with pytest.raises(ValidationError, match="BIL-1 → BIL-3 → BIL-2 → BIL-1") as caught:
        set_dependencies(a, [c], by=alice)
    assert set(caught.value.fields) == {"depends_on"}
    with pytest.raises(ValidationError, match="BIL-1 → BIL-1"):
        set_dependencies(a, [a], by=alice)
    assert Dependency.objects.count() == 2
    assert statuses() == [("backlog", 0), ("backlog", 1), ("backlog", 1)]


def test_a_card_of_another_project_cannot_be_needed(new_card, alice):
    other = create_project(by=alice, key="OTHER", name="Other", repository="/nowhere")
    foreign = cards.create_card(other, by=alice, title="Foreign")
    with pytest.raises(ValidationError, match="its own project"):
        new_card("a", depends_on=[foreign])
    assert not Card.objects.filter(title="a").exists()


def test_what_a_card_needs_is_settled_once_an_agent_has_begun(running, new_card, alice):
    with pytest.raises(TransitionError, match="can no longer change"):
        set_dependencies(running.card, [new_card()], by=alice)


def test_a_diamond_runs_in_order_and_its_sides_together(new_card, alice, worker):
    a = new_card("a")
    b, c = new_card("b", depends_on=[a]), new_card("c", depends_on=[a])
    d = new_card("d", depends_on=[b, c])
    for card in (d, c, b, a):
        cards.queue_card(card, by=alice)
    first = claim(worker)
    assert claim(worker) is None
    assert work(worker, first, alice) == a
    second, third = claim(worker), claim(worker)
    assert claim(worker) is None
    assert {work(worker, second, alice), work(worker, third, alice)} == {b, c}
    unblocked = Event.objects.filter(kind="CardUnblocked").values_list("card__title", flat=True)
    assert list(unblocked) == ["b", "c", "d"]
    last = claim(worker)
    assert work(worker, last, alice) == d
    assert statuses() == [("done", 0)] * 4
    assert Run.objects.count() == 4


def test_a_failure_spreads_to_queued_cards_and_a_retry_takes_it_back(new_card, alice, worker):
    a = new_card("a")
    b = new_card("b", depends_on=[a])
    c = new_card("c", depends_on=[b])
    new_card("d", depends_on=[a])  # stays in the backlog: nobody asked for it yet
    for card in (a, b, c):
        cards.queue_card(card, by=alice)
    claimed = claim(worker)
    fail_run(
        claimed.run_id, claimed.fence,
        kind=FailureKind.VERIFICATION, message="The check failed.", active_seconds=0,
    )  # fmt: skip
    assert statuses() == [("failed", 0), ("failed", 1), ("failed", 1), ("backlog", 1)]
    for card in (b, c):
        card.refresh_from_db()
        assert (card.failure_kind, card.failed_by) == (FailureKind.UPSTREAM, a)
        assert "Retry BIL-1" in card.failure
    assert Event.objects.filter(kind="CardFailed").count() == 3

    a.refresh_from_db()
    cards.retry_card(a, by=alice)
    assert statuses() == [("queued", 0), ("queued", 1), ("queued", 1), ("backlog", 1)]
    assert not Card.objects.exclude(failure="", failure_kind="", failed_by=None).exists()
    assert Event.objects.filter(kind="CardRestored").count() == 2
    assert work(worker, claim(worker), alice) == a
    assert work(worker, claim(worker), alice) == b


@pytest.mark.parametrize("way", ["queued", "done by hand", "cancelled first"])
def test_a_failed_card_that_goes_on_from_the_backlog_takes_its_dependents_along(
    new_card, alice, worker, way
):
    a = new_card("a")
    b = new_card("b", depends_on=[a])
    cards.queue_card(a, by=alice)
    cards.queue_card(b, by=alice)
    claimed = claim(worker)
    fail_run(
        claimed.run_id, claimed.fence,
        kind=FailureKind.VERIFICATION, message="The check failed.", active_seconds=0,
    )  # fmt: skip
    a.refresh_from_db()
    if way == "cancelled first":
        cancel_card(a, by=alice)
    cards.unqueue_card(a, by=alice)
    assert statuses() == [("backlog", 0), ("failed", 1)]
    if way == "done by hand":
        cards.finish_by_hand(a, by=alice, to=CardStatus.DONE)
        assert statuses() == [("done", 0), ("queued", 0)]
    else:
        cards.queue_card(a, by=alice)
        assert statuses() == [("queued", 0), ("queued", 1)]
    b.refresh_from_db()
    assert (b.failure, b.failed_by) == ("", None)


@pytest.mark.django_db(transaction=True)
def test_two_links_that_close_a_circle_together_are_not_both_made(new_card, alice):
    a, b, c, d = (new_card(title) for title in "abcd")
    set_dependencies(b, [c], by=alice)
    set_dependencies(d, [a], by=alice)
    answers = at_once(
        lambda: set_dependencies(Card.objects.get(pk=a.pk), [b], by=alice),
        lambda: set_dependencies(Card.objects.get(pk=c.pk), [d], by=alice),
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", "ValidationError"]
    assert Dependency.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_link_made_while_what_it_needs_becomes_done_is_counted_right(new_card, alice):
    for _ in range(5):
        a, b = new_card("a"), new_card("b")
        at_once(partial(finish, a.pk, alice), partial(link, b.pk, [a], alice))
        b.refresh_from_db()
        assert (b.unmet, count_unmet(b)) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_failures_and_links_against_the_order_of_ids_do_not_lock_each_other_out(
    new_card, alice, worker
):
    Project.objects.update(max_parallel=50)
    for _ in range(4):
        early, late, other = new_card("early"), new_card("late"), new_card("other")
        set_dependencies(early, [late], by=alice)
        cards.queue_card(late, by=alice)
        cards.queue_card(early, by=alice)
        answers = at_once(
            partial(fail, claim(worker)), partial(link, early.pk, [late, other], alice)
        )
        assert answers == [None, None]
        early.refresh_from_db()
        assert (early.status, early.unmet) == ("failed", 2)


def load(pk):
    return Card.objects.select_related("project").get(pk=pk)


def finish(pk, by):
    cards.finish_by_hand(load(pk), by=by, to=CardStatus.DONE)


def link(pk, needs, by):
    set_dependencies(load(pk), needs, by=by)


def fail(claimed):
    fail_run(
        claimed.run_id, claimed.fence, kind=FailureKind.LOOP, message="Stuck.", active_seconds=0
    )
