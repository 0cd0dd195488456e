"""Moving cards: places, other lanes, refusals, and people who drop at the same moment."""

import threading
from itertools import product

import pytest
from django.db import transaction

from board.actions import projects
from board.actions.dependencies import lock_cards
from board.actions.lanes import move_card
from board.actions.placement import Place, lock_columns
from board.errors import TransitionError, ValidationError
from board.models import Card, Column, Event
from board.states import LANE_OF, CardStatus, Lane
from tests.races import at_once

pytestmark = pytest.mark.django_db

ALLOWED = {
    (CardStatus.BACKLOG, Lane.QUEUED): "queued",
    (CardStatus.BACKLOG, Lane.REVIEW): "review",
    (CardStatus.BACKLOG, Lane.DONE): "done",
    (CardStatus.QUEUED, Lane.BACKLOG): "backlog",
    (CardStatus.REVIEW, Lane.BACKLOG): "backlog",
    (CardStatus.REVIEW, Lane.DONE): "done",
    (CardStatus.FAILED, Lane.QUEUED): "queued",
    (CardStatus.FAILED, Lane.BACKLOG): "backlog",
    (CardStatus.CANCELLED, Lane.BACKLOG): "backlog",
}


def column(project, lane):
    return Column.objects.filter(project=project, lane=lane).first()


def load(card):
    return Card.objects.select_related("project", "column", "run").get(pk=card.pk)


def titles(lane):
    return "".join(
        Card.objects.filter(column__lane=lane).order_by("rank").values_list("title", flat=True)
    )


def test_every_status_and_lane_is_an_action_or_a_refusal_with_a_reason(new_card, project, alice):
    for status, lane in product(CardStatus, Lane):
        if LANE_OF[status] == lane:
            continue
        card = new_card("card")
        Card.objects.filter(pk=card.pk).update(
            status=status, column=column(project, LANE_OF[status]), rank=f"a0{card.pk}V"
        )
        card = load(card)
        place = Place(column(project, lane))
        if (status, lane) in ALLOWED:
            move_card(card, by=alice, place=place)
            assert load(card).status == ALLOWED[status, lane]
            assert load(card).column.lane == lane
            continue
        with pytest.raises(TransitionError, match=f"{card.ref} (cannot go to|has no agent's work)"):
            move_card(card, by=alice, place=place)
        assert load(card).status == status


def test_a_card_is_put_where_it_was_dropped(new_card, project, alice):
    a, b, c = (load(new_card(title)) for title in "abc")
    backlog = column(project, Lane.BACKLOG)
    move_card(c, by=alice, place=Place(backlog, above=a, below=b), op_id="drag-1")
    assert titles("backlog") == "acb"
    event = Event.objects.latest("seq")
    assert (event.kind, event.payload, event.op_id) == (
        "CardMoved",
        {"column": "Backlog"},
        "drag-1",
    )
    move_card(a, by=alice, place=Place(backlog))
    assert titles("backlog") == "cba"
    move_card(load(a), by=alice, place=Place(backlog, below=load(c)))
    assert titles("backlog") == "acb"


def test_a_neighbour_that_has_left_is_passed_over(new_card, project, alice):
    a, b, c = (load(new_card(title)) for title in "abc")
    move_card(b, by=alice, place=Place(column(project, Lane.QUEUED)))
    move_card(c, by=alice, place=Place(column(project, Lane.BACKLOG), above=b, below=a))
    assert titles("backlog") == "ca"


def test_a_column_of_another_board_is_refused(new_card, alice):
    other = projects.create_project(by=alice, key="OTHER", name="Other", repository="/nowhere")
    with pytest.raises(ValidationError, match="another board"):
        move_card(load(new_card()), by=alice, place=Place(column(other, Lane.QUEUED)))


def test_a_card_moves_between_two_columns_of_one_lane_up_to_the_limit(new_card, project, alice):
    later = projects.add_column(project, by=alice, name="Later", lane=Lane.BACKLOG)
    projects.set_column(later, by=alice, name="Later", limit=1)
    later.refresh_from_db()
    a, b = load(new_card("a")), load(new_card("b"))
    move_card(a, by=alice, place=Place(later))
    assert (load(a).column, load(a).status) == (later, "backlog")
    with pytest.raises(TransitionError, match="Later is full"):
        move_card(b, by=alice, place=Place(later))
    move_card(load(a), by=alice, place=Place(later))


def test_an_archived_card_is_not_moved(new_card, project, alice):
    from board.actions.archiving import archive_card

    card = load(new_card())
    archive_card(card, by=alice)
    for lane in (Lane.BACKLOG, Lane.QUEUED):
        with pytest.raises(TransitionError, match="archived"):
            move_card(load(card), by=alice, place=Place(column(project, lane)))


def test_a_card_that_was_moved_meanwhile_stays_where_it_is(new_card, project, alice, bob):
    later = projects.add_column(project, by=alice, name="Later", lane=Lane.BACKLOG)
    card = load(new_card())
    seen = load(card)
    move_card(card, by=bob, place=Place(later))
    with pytest.raises(TransitionError, match="moved a moment ago"):
        move_card(seen, by=alice, place=Place(column(project, Lane.BACKLOG)))


@pytest.mark.django_db(transaction=True)
def test_people_who_drop_into_one_gap_at_the_same_moment_all_find_a_place(new_card, project, alice):
    a, b = load(new_card("a")), load(new_card("b"))
    dropped = [load(new_card(title)) for title in "cdef"]
    backlog = column(project, Lane.BACKLOG)
    answers = at_once(
        *[
            lambda card=card: move_card(card, by=alice, place=Place(backlog, above=a, below=b))
            for card in dropped
        ]
    )
    assert answers == [None] * 4
    order = titles("backlog")
    assert (order[0], order[-1], sorted(order[1:-1])) == ("a", "b", list("cdef"))


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_who_holds_a_card_that_enters_a_column_commits_while_another_holds_the_column(
    new_card, project
):
    card, review = load(new_card("a")), column(project, Lane.REVIEW)
    has_card, has_column = threading.Event(), threading.Event()

    def enter() -> None:
        with transaction.atomic():
            Card.objects.filter(pk=card.pk).update(column=review)
            has_card.set()
            assert has_column.wait(10)

    def wait_for_the_card() -> int:
        with transaction.atomic():
            assert has_card.wait(10)
            lock_columns({review.pk})
            has_column.set()
            (locked,) = lock_cards([card.pk])  # until the other has committed
            return locked.column_id

    assert at_once(enter, wait_for_the_card) == [None, review.pk]
