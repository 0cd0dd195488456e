"""Errands: fetches and merges, claimed once, fenced, taken from dead workers."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from board.actions import projects, runs
from board.actions.archiving import archive_card
from board.actions.cancels import cancel_card
from board.actions.errands import claim_errand
from board.actions.lanes import drop
from board.actions.merges import finish_merge, refuse_merge, request_merge
from board.actions.placement import Place
from board.actions.reaping import MAX_LOSSES, reap_errands
from board.actions.workers import beat
from board.errors import LeaseLostError, TransitionError
from board.events import Actor
from board.models import Card, Column, Errand, Event, Project
from board.states import CardStatus, FailureKind
from tests.races import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviewed(running):
    """A card whose work waits for the merge."""
    runs.finish_run(
        running.pk, running.fence,
        head_sha="a" * 40, summary="Done.", evidence=[], changes={}, active_seconds=0,
    )  # fmt: skip
    return Card.objects.select_related("project", "column", "run").get(pk=running.card_id)


def claim(worker) -> Any:
    return claim_errand(worker.pk)


def expire(errand):
    Errand.objects.filter(pk=errand.pk).update(lease_until=Now() - timedelta(seconds=1))


def test_a_merge_is_asked_for_and_done(reviewed, new_card, bob, worker):
    waiting = new_card(depends_on=[reviewed])
    request_merge(reviewed, by=bob)
    assert (reviewed.status, Event.objects.latest("seq").kind) == ("merging", "MergeRequested")
    errand = claim(worker)
    assert (errand.kind, errand.card, errand.requested_by, errand.fence) == (
        "merge",
        reviewed,
        bob,
        1,
    )
    finish_merge(errand, fence=1, sha="b" * 40, delivery="Pushed to main.", by=Actor.person(bob))
    reviewed.refresh_from_db()
    waiting.refresh_from_db()
    assert (reviewed.status, reviewed.merged_sha) == ("done", "b" * 40)
    assert (reviewed.delivery, reviewed.column.lane, waiting.unmet) == (
        "Pushed to main.",
        "done",
        0,
    )
    assert reviewed.done_at is not None
    done = Event.objects.get(kind="CardDone")
    assert done.payload == {"sha": "b" * 40, "delivery": "Pushed to main."}
    with pytest.raises((LeaseLostError, TransitionError)):
        finish_merge(errand, fence=1, sha="c" * 40, delivery="", by=Actor.person(bob))
    waiting.refresh_from_db()
    assert waiting.unmet == 0


def test_a_conflict_brings_the_card_back_with_the_files(reviewed, alice, worker):
    request_merge(reviewed, by=alice)
    errand = claim(worker)
    refuse_merge(errand, fence=1, reason="a.py conflicts.", files=["a.py"], by=Actor.PULLCORD)
    reviewed.refresh_from_db()
    assert (reviewed.status, reviewed.failure) == ("review", "a.py conflicts.")
    event = Event.objects.latest("seq")
    assert (event.kind, event.payload["files"]) == ("MergeRefused", ["a.py"])
    request_merge(Card.objects.select_related("project", "run").get(pk=reviewed.pk), by=alice)
    assert Card.objects.get(pk=reviewed.pk).failure == ""


def test_only_an_agents_reviewed_work_is_merged(new_card, running, alice):
    with pytest.raises(TransitionError, match="only reviewed work"):
        request_merge(running.card, by=alice)
    card = new_card()
    Card.objects.filter(pk=card.pk).update(status=CardStatus.REVIEW)
    card.refresh_from_db()
    with pytest.raises(TransitionError, match="no agent's work"):
        request_merge(card, by=alice)


def test_errands_of_one_project_are_done_one_after_another(reviewed, project, alice, worker):
    request_merge(reviewed, by=alice)
    projects.fetch_again(project, by=alice)
    first = claim(worker)
    assert first.kind == "merge"
    assert claim(worker) is None
    finish_merge(first, fence=1, sha="b" * 40, delivery="", by=Actor.PULLCORD)
    assert claim(worker).kind == "fetch"


def test_a_lost_errand_is_tried_again_and_then_given_up(reviewed, alice, worker):
    request_merge(reviewed, by=alice)
    first = claim(worker)
    for _ in range(MAX_LOSSES - 1):
        expire(first)
        assert reap_errands() == 1
        assert claim_errand(uuid4()) is not None
    with pytest.raises(LeaseLostError):
        finish_merge(first, fence=1, sha="b" * 40, delivery="", by=Actor.PULLCORD)
    reviewed.refresh_from_db()
    assert reviewed.status == CardStatus.MERGING
    expire(first)
    assert reap_errands() == 1
    reviewed.refresh_from_db()
    first.refresh_from_db()
    assert (reviewed.status, first.status) == ("review", "failed")
    assert "workers" in reviewed.failure
    assert first.ended_at is not None


def test_a_lost_fetch_is_reported_on_the_project(alice, worker, db):
    projects.create_project(by=alice, key="NEW", name="New", repository="/nowhere")
    for _ in range(MAX_LOSSES):
        expire(claim(worker))
        reap_errands()
    project = Project.objects.get()
    assert project.state == "error"
    assert "lost" in project.message


def test_a_heartbeat_keeps_an_errand(reviewed, alice, worker):
    request_merge(reviewed, by=alice)
    errand = claim(worker)
    expire(errand)
    heart = beat(worker.pk, runs=[], errands=[errand.pk], busy=0, lag_ms=0)
    assert heart.held_errands == {errand.pk}
    assert reap_errands() == 0


@pytest.mark.django_db(transaction=True)
def test_one_errand_goes_to_one_worker(reviewed, alice):
    request_merge(reviewed, by=alice)
    taken = at_once(*[lambda: claim_errand(uuid4()) for _ in range(5)])
    assert len([errand for errand in taken if errand]) == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_people_who_merge_one_is_first(reviewed, alice, bob):
    answers = at_once(
        *[
            lambda by=by: request_merge(
                Card.objects.select_related("project", "run").get(pk=reviewed.pk), by=by
            )
            for by in (alice, bob)
        ]
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", "TransitionError"]
    assert Errand.objects.filter(kind="merge").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_merge_that_ends_while_it_is_reaped_has_one_outcome(reviewed, alice, worker):
    request_merge(reviewed, by=alice)
    errand = claim(worker)
    expire(errand)
    Errand.objects.filter(pk=errand.pk).update(losses=MAX_LOSSES - 1)
    at_once(
        lambda: finish_merge(errand, fence=1, sha="b" * 40, delivery="", by=Actor.PULLCORD),
        reap_errands,
        reap_errands,
    )
    reviewed.refresh_from_db()
    errand = Errand.objects.get(pk=errand.pk)
    assert (reviewed.status, errand.status) in {("done", "done"), ("review", "failed")}


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_work_that_did_not_pass_its_checks_is_not_merged_after_a_move_by_hand(
    running, alice, ending
):
    """Back in the backlog and put into review by hand, it is finished by hand or not at all."""
    if ending == "failed":
        runs.fail_run(
            running.pk, running.fence,
            kind=FailureKind.VERIFICATION, message="No.", active_seconds=0, head_sha="a" * 40,
        )  # fmt: skip
    else:
        cancel_card(running.card, by=alice)
        runs.end_cancelled(running.pk, running.fence, active_seconds=0, head_sha="a" * 40)
    for lane in ("backlog", "review"):
        drop(card_again(running.card_id), by=alice, place=place_in(lane))
    with pytest.raises(TransitionError, match="no agent's work"):
        request_merge(card_again(running.card_id), by=alice)
    with pytest.raises(TransitionError, match="no agent's work"):
        drop(card_again(running.card_id), by=alice, place=place_in("merging"))
    drop(card_again(running.card_id), by=alice, place=place_in("done"))
    assert card_again(running.card_id).status == CardStatus.DONE
    assert not Errand.objects.filter(kind="merge").exists()


def test_an_archived_card_is_not_merged(reviewed, alice):
    before = card_again(reviewed.pk)
    archive_card(reviewed, by=alice)
    for seen in (before, card_again(reviewed.pk)):
        with pytest.raises(TransitionError):
            request_merge(seen, by=alice)
    assert card_again(reviewed.pk).status == CardStatus.REVIEW
    assert not Errand.objects.filter(kind="merge").exists()


def card_again(pk) -> Any:
    return Card.objects.select_related("project", "column", "run").get(pk=pk)


def place_in(lane) -> Place:
    return Place(Column.objects.get(lane=lane))
