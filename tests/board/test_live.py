"""What an event makes open browsers do."""

import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from board import events
from board.actions import archiving, cards, dependencies, lanes, projects
from board.actions.placement import Place
from board.live import ops_for, sentence
from board.models import Card, Column, Event, Project, Run, User
from board.states import CardStatus

pytestmark = pytest.mark.django_db
KINDS = [
    name
    for name, value in inspect.getmembers(events, inspect.isclass)
    if issubclass(value, events.BoardEvent) and value is not events.BoardEvent
]
Op = dict[str, Any]


def ops_after(project: Project, seq: int) -> list[Op]:
    project.refresh_from_db()
    return ops_for(project, list(Event.objects.filter(project=project, seq__gt=seq)))


def of(ops: list[Op], name: str) -> list[Op]:
    return [op for op in ops if op["op"] == name]


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_is_said_in_a_sentence(kind):
    event = Event(kind=kind, actor="Ann", payload={"column": "Done", "attempt": 2, "what": "ls"})
    said = sentence(event, "BIL-3")
    assert said.endswith((".", "ls"))
    assert "{" not in said
    if kind != "ProjectChanged":
        assert "BIL-3" in said


def test_a_card_that_many_events_touch_is_drawn_once(project, new_card, alice):
    card = new_card("First")
    for number in range(5):
        cards.edit_card(card, by=alice, title=f"Title {number}")
    ops = ops_after(project, 0)
    (put,) = of(ops, "put")
    assert "Title 4" in put["html"]
    assert (put["id"], put["rev"], put["column"]) == (card.pk, card.rev, card.column_id)


def test_the_drawer_of_a_touched_card_is_told_what_happened(project, new_card, alice):
    card = new_card("First")
    cards.edit_card(card, by=alice, title="Second")
    (op,) = of(ops_after(project, 0), "card")
    assert (op["ref"], op["kinds"]) == ("BIL-1", ["CardCreated", "CardEdited"])


def test_an_archived_card_is_taken_away(project, new_card, alice):
    card = new_card()
    archiving.archive_card(card, by=alice)
    ops = ops_after(project, 0)
    assert of(ops, "put") == []
    assert of(ops, "del") == [{"op": "del", "id": card.pk, "rev": card.rev}]


def test_counts_come_with_every_card(project, new_card):
    new_card()
    new_card()
    counts = {op["column"]: op["n"] for op in of(ops_after(project, 0), "count")}
    backlog = Column.objects.get(project=project, name="Backlog")
    assert counts[backlog.pk] == 2
    assert set(counts) == set(Column.objects.filter(project=project).values_list("pk", flat=True))


def test_a_card_that_needs_the_touched_one_is_drawn_too(project, new_card, alice):
    needed, needing = new_card("Needed"), new_card("Needing")
    dependencies.set_dependencies(needing, [needed], by=alice)
    project.refresh_from_db()
    before = project.seq
    cards.finish_by_hand(needed, by=alice, to=CardStatus.DONE)
    drawn = {op["id"] for op in of(ops_after(project, before), "put")}
    assert drawn == {needed.pk, needing.pk}


def test_a_card_that_waits_for_the_touched_files_is_drawn_too(project, new_card, alice):
    waiting = new_card("Waiting", files=["src/a.py"])
    cards.queue_card(waiting, by=alice)
    project.refresh_from_db()
    before = project.seq
    other = new_card("Other", files=["src/"])
    assert {op["id"] for op in of(ops_after(project, before), "put")} == {waiting.pk, other.pk}


def test_a_move_keeps_the_rank_in_the_frame(project, new_card, alice):
    first, second = new_card("First"), new_card("Second")
    project.refresh_from_db()
    before = project.seq
    column = Column.objects.get(pk=first.column_id)
    lanes.move_card(second, by=alice, place=Place(column, below=first))
    (put,) = of(ops_after(project, before), "put")
    assert put["rank"] == Card.objects.get(pk=second.pk).rank < first.rank


def test_another_shape_of_the_board_is_said_without_drawing_it(project, alice):
    project.refresh_from_db()
    before = project.seq
    column = Column.objects.get(project=project, name="Backlog")
    projects.set_column(column, by=alice, name="Ideas", limit=3)
    ops = ops_after(project, before)
    assert of(ops, "col") == [{"op": "col"}]
    assert of(ops, "notices")


def test_a_frame_is_the_same_for_everyone(project, new_card, running: Run, alice):
    new_card("<script>alert(1)</script>")
    text = json.dumps(ops_after(project, 0))
    assert "csrf" not in text.lower()
    assert "<script>" not in text


def test_many_cards_cost_no_more_queries_than_few(project, new_card: Callable[..., Card]):
    def queries() -> int:
        found = list(Event.objects.filter(project=project))
        with CaptureQueriesContext(
            connection,
        ) as captured:
            ops_for(project, found)
        return len(captured)

    new_card()
    few = queries()
    for _ in range(20):
        new_card()
    assert queries() == few <= 8


def test_only_the_last_of_many_sentences_are_sent(project, new_card, alice: User):
    card = new_card()
    for number in range(30):
        cards.edit_card(card, by=alice, title=f"Title {number}")
    assert len(of(ops_after(project, 0), "toast")) == 20
