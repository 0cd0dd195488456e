"""N workers and M cards give exactly M runs, whatever happens at the same moment."""

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from board.actions import cards, projects, runs, workers
from board.actions.claims import (
    LEFT_TO_ITS_MACHINE,
    claim_next,
    is_work_waiting,
    shared_files,
)
from board.actions.errands import claim_errand, is_errand_waiting
from board.models import Card, Column, Event, Project, Run, User, Worker
from board.states import CardStatus, ProjectState, RunStatus, WaitingFor
from tests.races import at_once

pytestmark = pytest.mark.django_db


def claim(worker=None, **options) -> Any:
    options.setdefault("with_credential", True)
    return claim_next(worker.pk if worker else uuid4(), agent="agent-1", **options)


def queue(card, by):
    cards.queue_card(card, by=by)
    return card


def test_a_claim_starts_an_attempt_and_moves_the_card(new_card, alice, worker, settings):
    settings.DEFAULT_MODEL = "some-model"
    card = queue(new_card(), alice)
    taken = claim(worker)
    run = Run.objects.get(pk=taken.run_id)
    card.refresh_from_db()
    assert (taken.fence, taken.is_new) == (1, True)
    assert (run.status, run.worker, run.attempt, run.agent) == ("starting", worker.pk, 1, "agent-1")
    assert run.model == "some-model"
    assert run.lease_until is not None
    assert (card.status, card.column.lane, card.run, card.attempts) == (
        "running",
        "running",
        run,
        1,
    )
    event = Event.objects.get(kind="CardClaimed")
    assert (event.card, event.run, event.actor, event.payload) == (
        card,
        run,
        "agent-1",
        {"attempt": 1},
    )


def test_there_is_nothing_to_claim_on_an_empty_board(project, worker):
    assert claim(worker) is None


def test_idle_workers_see_what_can_be_claimed_and_nothing_else(new_card, alice, worker):
    assert not is_work_waiting()
    card = queue(new_card(), alice)
    assert is_work_waiting()
    for hindrance in ({"unmet": 1}, {"archived_at": Now()}):
        Card.objects.filter(pk=card.pk).update(**hindrance)
        assert not is_work_waiting()
        Card.objects.filter(pk=card.pk).update(unmet=0, archived_at=None)
    taken = claim(worker)
    assert not is_work_waiting()
    runs.give_back(taken.run_id, taken.fence, active_seconds=0)
    assert Run.objects.get(pk=taken.run_id).status == RunStatus.READY
    assert is_work_waiting()


def test_idle_workers_see_an_errand_that_waits(project, alice, worker):
    assert not is_errand_waiting()
    projects.fetch_again(project, by=alice)
    assert is_errand_waiting()
    assert claim_errand(worker.pk) is not None
    assert not is_errand_waiting()


def test_cards_are_claimed_by_priority_then_rank(new_card, alice, project):
    Project.objects.update(max_parallel=10)
    low, normal, later, urgent = (
        queue(new_card(title, priority=priority), alice)
        for title, priority in (("low", 0), ("normal", 1), ("later", 1), ("urgent", 3))
    )
    order = [Run.objects.get(pk=claim().run_id).card for _ in range(4)]
    assert order == [urgent, normal, later, low]


@pytest.mark.parametrize(
    "hindrance",
    [
        {"status": CardStatus.BACKLOG},
        {"unmet": 1},
        {"archived_at": Now()},
        {"not_before": Now() + timedelta(hours=1)},
    ],
    ids=["in the backlog", "blocked", "archived", "not yet due"],
)
def test_a_card_is_not_claimed_while_it_is(new_card, alice, hindrance):
    queue(new_card(), alice)
    Card.objects.update(**hindrance)
    assert claim() is None


def test_a_card_is_claimed_once_its_time_has_come(new_card, alice):
    queue(new_card(), alice)
    Card.objects.update(not_before=Now() - timedelta(seconds=1))
    assert claim() is not None


@pytest.mark.parametrize(
    "hindrance",
    [{"state": ProjectState.FETCHING}, {"state": ProjectState.ERROR}, {"archived_at": Now()}],
    ids=["is being fetched", "cannot be fetched", "is archived"],
)
def test_nothing_is_claimed_from_a_project_that(new_card, alice, hindrance):
    queue(new_card(), alice)
    Project.objects.update(**hindrance)
    assert claim() is None


def test_without_a_credential_only_a_rehearsal_is_worked_on(new_card, alice, project):
    queue(new_card(), alice)
    assert claim(with_credential=False) is None
    Project.objects.update(is_rehearsal=True)
    assert claim(with_credential=False) is not None


def test_a_project_runs_no_more_than_its_limit(new_card, alice):
    Project.objects.update(max_parallel=2)
    for title in "abc":
        queue(new_card(title), alice)
    first, second = claim(), claim()
    assert claim() is None
    runs.begin_work(first.run_id, first.fence)
    runs.put_aside(first.run_id, first.fence, waiting_for=WaitingFor.APPROVAL, active_seconds=0)
    third = claim()  # what waits holds no place
    assert third is not None
    assert len({first.run_id, second.run_id, third.run_id}) == 3


def test_a_full_project_does_not_hold_up_another(new_card, alice, project, worker):
    Project.objects.update(max_parallel=1)
    queue(new_card("a", priority=9), alice)
    queue(new_card("b", priority=9), alice)
    other = projects.create_project(by=alice, key="OTHER", name="Other", repository="/nowhere")
    Project.objects.update(state=ProjectState.READY)
    card = queue(cards.create_card(other, by=alice, title="c", checks=["true"]), alice)
    taken = [Run.objects.get(pk=claim().run_id).card for _ in range(2)]
    assert card in taken
    assert claim() is None


def test_the_limit_of_the_running_column_holds_for_workers(new_card, alice):
    Column.objects.filter(lane="running").update(limit=1)
    queue(new_card("a"), alice)
    queue(new_card("b"), alice)
    assert claim() is not None
    assert claim() is None


def test_cards_that_name_the_same_files_come_one_after_another(new_card, alice):
    first = queue(new_card("a", files=["src/invoices.py"]), alice)
    second = queue(new_card("b", files=["src/*.py"]), alice)
    third = queue(new_card("c", files=["docs"]), alice)
    taken = [Run.objects.get(pk=claim().run_id).card for _ in range(2)]
    assert taken == [first, third]
    assert claim() is None
    assert shared_files(second) == ["src/*.py"]


def test_a_long_row_of_cards_that_must_wait_hides_no_other(new_card, alice, project, worker):
    for _ in range(25):
        cards.queue_card(new_card("same", files=["src/a.py"], priority=2), by=alice)
    behind = new_card("behind", files=["src/b.py"])
    cards.queue_card(behind, by=alice)
    titles = []
    while claim := claim_next(worker.pk, agent="agent-1", with_credential=True):
        titles.append(Run.objects.get(pk=claim.run_id).card.title)
    assert titles == ["same", "behind"]


def test_a_ready_run_comes_before_a_new_card_and_keeps_its_attempt(
    running, new_card, alice, worker
):
    queue(new_card("later"), alice)
    runs.give_back(running.pk, running.fence, active_seconds=1.5)
    taken = claim(worker)
    run = Run.objects.get(pk=taken.run_id)
    assert (taken.run_id, taken.is_new, taken.fence) == (running.pk, False, running.fence + 1)
    assert (run.status, run.attempt, run.worker, run.active_seconds) == (
        "running",
        1,
        worker.pk,
        1.5,
    )


def test_a_ready_run_waits_while_its_project_is_full(running, new_card, alice):
    Project.objects.update(max_parallel=1)
    runs.give_back(running.pk, running.fence, active_seconds=0)
    Run.objects.filter(pk=running.pk).update(ready_at=Now() + timedelta(hours=1))
    assert claim().run_id == running.pk
    queue(new_card("other"), alice)
    assert claim() is None


@pytest.mark.django_db(transaction=True)
def test_eight_workers_and_forty_cards_give_forty_runs(new_card, project: Project, alice: User):
    Project.objects.update(max_parallel=50)
    for number in range(40):
        queue(new_card(f"card {number}", priority=number % 4), alice)
    workers = [uuid4() for _ in range(8)]

    def work(worker):
        taken = []
        misses = 0
        while misses < 40 and Card.objects.filter(status=CardStatus.QUEUED).exists():
            found = claim_next(worker, agent="agent-1", with_credential=True)
            misses += found is None
            taken += [found.run_id] if found else []
        return taken

    answers = at_once(*[lambda worker=worker: work(worker) for worker in workers])
    taken = [run_id for answer in answers for run_id in answer]
    assert len(taken) == len(set(taken)) == Run.objects.count() == 40
    assert Counter(Run.objects.values_list("card_id", flat=True)).most_common(1)[0][1] == 1
    assert not Card.objects.exclude(status=CardStatus.RUNNING).exists()
    seqs = list(Event.objects.filter(project=project).values_list("seq", flat=True))
    assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.django_db(transaction=True)
def test_workers_at_the_same_moment_never_exceed_the_limit_of_a_project(new_card, alice):
    Project.objects.update(max_parallel=2)
    for title in "abcdef":
        queue(new_card(title), alice)
    taken = at_once(*[claim for _ in range(6)])
    assert len([found for found in taken if found]) == 2


@pytest.mark.django_db(transaction=True)
def test_one_ready_run_goes_to_one_worker(running: Run, worker: Worker):
    runs.give_back(running.pk, running.fence, active_seconds=0)
    taken = [found for found in at_once(*[claim for _ in range(6)]) if found]
    assert [found.run_id for found in taken] == [running.pk]
    assert Run.objects.get(pk=running.pk).status == RunStatus.RUNNING


@pytest.mark.django_db(transaction=True)
def test_claims_go_on_while_people_edit_the_same_cards(new_card, alice, running):
    Project.objects.update(max_parallel=50)
    made = [queue(new_card(f"card {number}"), alice) for number in range(6)]
    runs.give_back(running.pk, running.fence, active_seconds=0)

    def edit():
        for card in [*made, running.card]:
            cards.edit_card(Card.objects.get(pk=card.pk), by=alice, goal=f"edited {card.pk}")

    def work():
        for _ in range(20):
            claim()

    assert at_once(edit, work, work, edit) == [None] * 4
    while claim() is not None:
        pass
    assert Run.objects.filter(status__in=[RunStatus.STARTING, RunStatus.RUNNING]).count() == 7


@pytest.fixture
def elsewhere(db) -> Worker:
    """A worker on another machine than the first."""
    return register("there")


def register(host: str, **values: Any) -> Worker:
    row = Worker(host=host, pid=1, version="0", slots=4, sandbox="bubblewrap", **values)
    workers.register_worker(row)
    return row


def put_down(run: Run, **values: Any) -> None:
    """Let the run be ready again, with its files on the machine `here`."""
    runs.give_back(run.pk, run.fence, active_seconds=0)
    Run.objects.filter(pk=run.pk).update(**{"host": "here", **values})


def test_a_run_is_continued_where_its_files_are(running, worker, elsewhere):
    put_down(running)
    assert claim(elsewhere) is None
    assert claim(worker).run_id == running.pk


def test_a_run_is_not_left_to_its_machine_for_long(running, elsewhere):
    put_down(running, ready_at=Now() - LEFT_TO_ITS_MACHINE - timedelta(seconds=1))
    assert claim(elsewhere).run_id == running.pk


@pytest.mark.parametrize(
    "state", [{"busy": 4}, {"stopped_at": Now()}, {"heartbeat_at": Now() - timedelta(minutes=5)}]
)
def test_a_run_is_not_left_to_a_machine_that_cannot_take_it(running, worker, elsewhere, state):
    put_down(running)
    Worker.objects.filter(pk=worker.pk).update(**state)
    assert claim(elsewhere).run_id == running.pk


def test_a_run_that_is_left_to_its_machine_hides_no_other(running, elsewhere, new_card, alice):
    put_down(running)
    other = queue(new_card("Other"), alice)
    assert Run.objects.get(pk=claim(elsewhere).run_id).card == other


def test_a_second_worker_on_the_same_machine_may_continue_a_run(running, worker):
    put_down(running)
    assert claim(register("here")).run_id == running.pk
