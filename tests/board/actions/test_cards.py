"""What people do with cards: each action's event, its refusals, and the second of two at once."""

import pytest

from board.actions import archiving, cards, comments
from board.actions.cancels import cancel_card
from board.actions.claims import claim_next
from board.errors import TransitionError, ValidationError
from board.models import Card, Column, Comment, Event, Run
from board.states import CARD_TRANSITIONS, LANE_OF, CardStatus, FailureKind
from tests.races import at_once

pytestmark = pytest.mark.django_db
C = CardStatus


def last_event(card):
    return Event.objects.filter(card=card).latest("seq")


def put(card, status, **values):
    """Put a card into a status as if its way there had been walked."""
    column = Column.objects.get(project_id=card.project_id, lane=LANE_OF[status])
    Card.objects.filter(pk=card.pk).update(status=status, column=column, **values)
    card.refresh_from_db()
    return card


def test_a_card_is_created_at_the_end_of_the_backlog(new_card, alice, project):
    first, second = new_card("  Two\n words "), new_card("B", priority=3, files=["a.py", " "])
    assert (first.title, first.ref, second.ref) == ("Two words", "BIL-1", "BIL-2")
    assert (second.files, second.priority, second.status) == (["a.py"], 3, "backlog")
    assert first.column.lane == "backlog"
    assert first.rank < second.rank
    event = last_event(first)
    assert (event.kind, event.actor, event.user) == ("CardCreated", "Alice", alice)
    project.refresh_from_db()
    assert event.seq == project.seq - 1


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"title": "  "}, "title"),
        ({"title": "x" * 301}, "title"),
        ({"goal": "x" * 50_001}, "goal"),
        ({"checks": ["true"] * 101}, "checks"),
        ({"files": ["a"] * 101}, "files"),
        ({"checks": ["true", "x" * 10_001]}, "checks"),
        ({"files": ["x" * 1_001]}, "files"),
        ({"priority": 10}, "priority"),
        ({"priority": -1}, "priority"),
    ],
)
def test_a_card_is_refused_and_the_field_is_named_for(project, alice, values, field):
    with pytest.raises(ValidationError) as caught:
        cards.create_card(project, by=alice, **{"title": "A card", **values})
    assert set(caught.value.fields) == {field}
    assert not Card.objects.exists()


def test_what_postgresql_cannot_store_is_taken_out(new_card):
    card = new_card("a\x00b", goal="c\x00", checks=["d\x00e"])
    assert (card.title, card.goal, card.checks) == ("ab", "c", ["de"])


def test_an_edit_names_the_fields_that_changed(new_card, alice, bob):
    card = new_card("Old", goal="same")
    cards.edit_card(card, by=bob, title="New", goal="same", op_id="op-1")
    assert (card.title, card.rev) == ("New", 2)
    event = last_event(card)
    assert (event.kind, event.actor, event.op_id) == ("CardEdited", "Bob", "op-1")
    assert event.payload == {"fields": ["title"], "rev": 2}


def test_an_edit_that_changes_nothing_is_no_event(new_card, alice):
    card = new_card("Old")
    cards.edit_card(card, by=alice, title=" Old ")
    assert last_event(card).kind == "CardCreated"


def test_two_edits_of_one_field_do_not_overwrite_each_other(new_card, alice, bob):
    card = new_card("Old")
    cards.edit_card(card, by=bob, title="Bob's", rev=1)
    with pytest.raises(TransitionError, match="Someone else edited"):
        cards.edit_card(card, by=alice, title="Alice's", rev=1)
    assert Card.objects.get().title == "Bob's"


def test_two_edits_of_two_fields_both_count(new_card, alice, bob):
    card = new_card("Old")
    cards.edit_card(card, by=bob, title="Bob's", rev=1)
    cards.edit_card(card, by=alice, goal="Alice's", rev=1)
    assert (card.title, card.goal) == ("Bob's", "Alice's")


def test_an_editor_may_ignore_moves_that_happened_meanwhile(new_card, alice, bob):
    card = new_card("Old")
    cards.edit_card(card, by=bob, title="Bob's")
    seen = card.rev
    cards.queue_card(card, by=bob)
    cards.edit_card(card, by=alice, title="Alice's", rev=seen)
    assert card.title == "Alice's"


def test_a_queued_card_waits_in_the_queue(new_card, alice):
    card = new_card()
    cards.queue_card(card, by=alice)
    event = last_event(card)
    assert (card.status, card.column.lane, event.kind) == ("queued", "queued", "CardQueued")
    assert event.payload == {"attempt": 1}


def test_a_card_without_a_check_is_not_queued_unless_it_says_so(new_card, alice):
    with pytest.raises(ValidationError) as caught:
        cards.queue_card(new_card(checks=[]), by=alice)
    assert set(caught.value.fields) == {"checks"}
    card = new_card(checks=[], no_check=True)
    cards.queue_card(card, by=alice)
    assert card.status == C.QUEUED


@pytest.mark.parametrize("status", [status for status in C if status != C.BACKLOG])
def test_only_a_card_of_the_backlog_is_queued_and_not_one_that_is(new_card, alice, status):
    card = put(new_card(), status)
    with pytest.raises(TransitionError, match=f"BIL-1 is {status}"):
        cards.queue_card(card, by=alice)


@pytest.mark.parametrize("status", list(C))
def test_what_goes_back_to_the_backlog(new_card, alice, status):
    card = put(new_card(), status, failure="broken", failure_kind=FailureKind.LOOP)
    if C.BACKLOG in CARD_TRANSITIONS[status]:
        cards.unqueue_card(card, by=alice)
        card.refresh_from_db()
        assert (card.status, card.failure, card.column.lane) == ("backlog", "", "backlog")
        assert last_event(card).kind == "CardUnqueued"
    else:
        with pytest.raises(TransitionError):
            cards.unqueue_card(card, by=alice)


@pytest.mark.parametrize("status", [status for status in C if status != C.FAILED])
def test_only_a_failed_card_is_retried_and_not_one_that_is(new_card, alice, status):
    with pytest.raises(TransitionError, match="only a failed card"):
        cards.retry_card(put(new_card(), status), by=alice)


def test_a_retry_clears_the_failure(new_card, alice):
    card = put(new_card(), C.FAILED, failure="broken", failure_kind=FailureKind.LOOP, attempts=1)
    cards.retry_card(card, by=alice)
    card.refresh_from_db()
    assert (card.status, card.failure, card.failure_kind) == ("queued", "", "")
    assert (last_event(card).kind, last_event(card).payload) == ("CardQueued", {"attempt": 2})


def test_work_is_sent_back_with_a_comment(running, bob):
    card = put(running.card, C.REVIEW, failure="conflict")
    cards.send_back(card, by=bob, comment=" Use integers.\x00 ")
    card.refresh_from_db()
    comment = Comment.objects.get()
    assert (card.status, card.failure) == ("queued", "")
    assert (comment.kind, comment.body, comment.run, comment.author) == (
        "send_back", "Use integers.", running, bob,
    )  # fmt: skip
    assert last_event(card).kind == "CardSentBack"
    assert last_event(card).payload == {"comment": "Use integers."}


def test_work_is_not_sent_back_without_a_comment_nor_from_elsewhere(new_card, alice):
    card = put(new_card(), C.REVIEW)
    with pytest.raises(ValidationError) as caught:
        cards.send_back(card, by=alice, comment=" ")
    assert set(caught.value.fields) == {"comment"}
    with pytest.raises(TransitionError, match="only work in review"):
        cards.send_back(put(card, C.DONE), by=alice, comment="Again")


def test_a_card_without_an_agent_is_finished_by_hand(new_card, alice):
    card = new_card()
    waiting = new_card(depends_on=[card])
    cards.finish_by_hand(card, by=alice, to=C.REVIEW)
    assert last_event(card).kind == "CardReviewed"
    cards.finish_by_hand(card, by=alice, to=C.DONE)
    card.refresh_from_db()
    waiting.refresh_from_db()
    assert (card.status, waiting.unmet) == ("done", 0)
    assert card.done_at is not None
    assert last_event(card).kind == "CardDone"
    assert last_event(waiting).kind == "CardUnblocked"


def test_an_archived_card_leaves_and_comes_back(new_card, alice):
    card = new_card()
    archiving.archive_card(card, by=alice)
    archiving.archive_card(card, by=alice)
    assert card.archived_at is not None
    assert [event.kind for event in card.events.all()] == ["CardCreated", "CardArchived"]
    with pytest.raises(TransitionError, match="archived"):
        cards.queue_card(card, by=alice)
    archiving.restore_archived_card(card, by=alice)
    archiving.restore_archived_card(card, by=alice)
    assert card.archived_at is None
    assert last_event(card).kind == "CardRestored"
    cards.queue_card(card, by=alice)


def test_a_card_that_an_agent_works_on_is_not_archived(running, alice):
    with pytest.raises(TransitionError, match="Cancel it"):
        archiving.archive_card(running.card, by=alice)


@pytest.mark.parametrize("status", list(C))
def test_what_can_be_cancelled(new_card, alice, status):
    card = put(new_card(), status)
    if C.CANCELLED in CARD_TRANSITIONS[status]:
        cancel_card(card, by=alice)
        card.refresh_from_db()
        assert (card.status, card.column.lane) == ("cancelled", "done")
        assert last_event(card).kind == "CardCancelled"
    else:
        with pytest.raises(TransitionError):
            cancel_card(card, by=alice)


def test_a_comment_is_kept_and_announced(running, bob):
    comment = comments.comment_on_card(running.card, by=bob, body=" Well\x00 done ")
    steer = comments.comment_on_card(running.card, by=bob, body="Use tabs", steer=True)
    assert (comment.body, comment.kind, comment.author) == ("Well done", "comment", bob)
    assert (steer.kind, steer.run) == ("steer", running)
    assert last_event(running.card).payload == {"kind_of_comment": "steer"}


def test_an_empty_comment_and_steering_nobody_are_refused(new_card, alice):
    card = new_card()
    with pytest.raises(ValidationError):
        comments.comment_on_card(card, by=alice, body=" ")
    with pytest.raises(TransitionError, match="No agent works"):
        comments.comment_on_card(card, by=alice, body="Hurry", steer=True)


def test_a_full_column_takes_no_more_cards_from_people(new_card, alice):
    Column.objects.filter(lane="queued").update(limit=1, name="Ready")
    first, second = new_card("a"), new_card("b")
    cards.queue_card(first, by=alice)
    with pytest.raises(TransitionError, match="Ready is full: 1 of 1"):
        cards.queue_card(second, by=alice)


def test_a_full_column_never_keeps_a_card_from_failing_or_being_cancelled(new_card, running, alice):
    from board.actions import runs

    Column.objects.filter(lane__in=["review", "done"]).update(limit=1)
    put(new_card(), C.REVIEW)
    put(new_card(), C.DONE)
    other = new_card()
    runs.fail_run(
        running.pk, running.fence, kind=FailureKind.LOOP, message="Stuck.", active_seconds=0
    )
    cancel_card(other, by=alice)
    assert Card.objects.get(pk=running.card_id).status == C.FAILED
    assert Card.objects.get(pk=other.pk).status == C.CANCELLED


@pytest.mark.django_db(transaction=True)
def test_of_two_people_who_queue_a_card_one_is_first(new_card, alice, bob):
    card = new_card()
    answers = at_once(
        *[
            lambda by=by: cards.queue_card(Card.objects.get(pk=card.pk), by=by)
            for by in (alice, bob)
        ]
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", "TransitionError"]
    assert card.events.filter(kind="CardQueued").count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_last_place_in_a_column_goes_to_one_of_two(new_card, alice):
    Column.objects.filter(lane="queued").update(limit=1)
    pair = [new_card("a"), new_card("b")]
    answers = at_once(
        *[
            lambda card=card: cards.queue_card(Card.objects.get(pk=card.pk), by=alice)
            for card in pair
        ]
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", "TransitionError"]
    assert Card.objects.filter(status=C.QUEUED).count() == 1


@pytest.mark.django_db(transaction=True)
def test_cards_made_at_the_same_moment_have_numbers_and_places_of_their_own(project, alice):
    at_once(
        *[
            lambda title=title: [
                cards.create_card(project, by=alice, title=f"{title}{n}") for n in range(3)
            ]
            for title in "abcd"
        ]
    )
    rows = Card.objects.values_list("number", "rank")
    assert sorted(number for number, _ in rows) == list(range(1, 13))
    assert len({rank for _, rank in rows}) == 12
    project.refresh_from_db()
    seqs = list(Event.objects.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, project.seq + 1))


@pytest.mark.django_db(transaction=True)
def test_a_card_is_archived_or_claimed_never_both(new_card, alice, worker):
    card = new_card()
    cards.queue_card(card, by=alice)
    at_once(
        lambda: archiving.archive_card(Card.objects.get(pk=card.pk), by=alice),
        lambda: claim_next(worker.pk, agent="agent-1", with_credential=True),
    )
    card.refresh_from_db()
    assert (card.archived_at is None) == (Run.objects.count() == 1)


def test_what_is_done_stands_on_top_of_what_was_done_before(new_card, alice):
    first, second = new_card("First"), new_card("Second")
    for card in (first, second):
        cards.finish_by_hand(card, by=alice, to=CardStatus.DONE)
    assert second.rank < first.rank


@pytest.mark.parametrize("status", [C.QUEUED, C.RUNNING, C.REVIEW, C.MERGING, C.FAILED])
def test_the_last_check_of_a_card_is_not_taken_away_while_it_is(new_card, alice, status):
    card = put(new_card(), status)
    with pytest.raises(ValidationError, match="acceptance check") as caught:
        cards.edit_card(card, by=alice, checks=[])
    assert set(caught.value.fields) == {"checks"}
    cards.edit_card(card, by=alice, checks=[], no_check=True)
    with pytest.raises(ValidationError, match="acceptance check"):
        cards.edit_card(card, by=alice, no_check=False)


@pytest.mark.parametrize("again", [cards.retry_card, cards.send_back])
def test_a_card_that_lost_its_checks_does_not_come_back_to_the_queue(new_card, alice, again):
    status = C.FAILED if again is cards.retry_card else C.REVIEW
    card = put(new_card(checks=[]), status)
    more = {"comment": "Again."} if again is cards.send_back else {}
    with pytest.raises(ValidationError, match="acceptance check"):
        again(card, by=alice, **more)
    card.refresh_from_db()
    assert card.status == status
