"""The tables of what may follow what, and the one door through which a status changes."""

from itertools import product
from typing import Any

import pytest

from agents.harness.ports import EntryKind
from board import states
from board.actions.transitions import TABLES, transition
from board.errors import LeaseLostError, TransitionError
from board.models import Approval, Card, Errand, Run, Step
from board.states import LANE_OF, ApprovalStatus, CardStatus, ErrandStatus, RunStatus, StepStatus

STATUSES: dict[Any, Any] = {
    Card: CardStatus, Run: RunStatus, Approval: ApprovalStatus, Step: StepStatus, Errand: ErrandStatus,
}  # fmt: skip
STEPS = [
    (model, before, after)
    for model, enum in STATUSES.items()
    for before, after in product(enum, enum)
]


@pytest.fixture
def rows(running, worker):
    """One row of each kind, whose status a test may choose."""
    step = Step.objects.create(run=running, seq=1, kind="tool", status="started", fence=1)
    approval = Approval.objects.create(
        project=running.project, run=running, step=step, tool="bash", rule="D1", digest="0" * 64
    )
    errand = Errand.objects.create(kind="merge", project=running.project, card=running.card)
    return {Card: running.card, Run: running, Approval: approval, Step: step, Errand: errand}


@pytest.mark.django_db
def test_exactly_the_steps_of_the_tables_are_taken(rows):
    for model, before, after in STEPS:
        row = rows[model]
        model.objects.filter(pk=row.pk).update(status=before)
        row.status = before
        if after in TABLES[model][before]:
            transition(row, after)
            assert row.status == model.objects.get(pk=row.pk).status == after
        else:
            with pytest.raises(TransitionError, match=f"is {before}; it cannot become {after}"):
                transition(row, after)
            assert model.objects.get(pk=row.pk).status == before


@pytest.mark.django_db
def test_who_comes_second_changes_nothing(rows):
    card = rows[Card]
    late = Card.objects.get(pk=card.pk)
    transition(card, CardStatus.REVIEW, failure="first")
    with pytest.raises(TransitionError, match="Someone else changed this card"):
        transition(late, CardStatus.FAILED, failure="second")
    assert Card.objects.get(pk=card.pk).failure == "first"
    assert late.status == CardStatus.RUNNING


@pytest.mark.django_db
def test_a_stale_fence_changes_nothing(rows):
    run = rows[Run]
    with pytest.raises(LeaseLostError):
        transition(run, RunStatus.SUCCEEDED, holding=run.fence + 1)
    assert Run.objects.get(pk=run.pk).status == RunStatus.RUNNING


@pytest.mark.django_db
def test_each_change_of_a_card_raises_its_rev(rows):
    card = rows[Card]
    before = card.rev = Card.objects.get(pk=card.pk).rev
    transition(card, CardStatus.REVIEW)
    assert card.rev == Card.objects.get(pk=card.pk).rev == before + 1


@pytest.mark.parametrize("model", STATUSES, ids=lambda model: model.__name__)
def test_a_table_has_a_row_for_each_status(model):
    assert set(TABLES[model]) == set(STATUSES[model])
    assert all(after in set(STATUSES[model]) for row in TABLES[model].values() for after in row)


@pytest.mark.parametrize("model", STATUSES, ids=lambda model: model.__name__)
def test_every_status_can_be_reached(model):
    enum = STATUSES[model]
    reached, edge = set(), [next(iter(enum))]
    if model is Step:
        edge.append(StepStatus.PENDING)
    while edge:
        here = edge.pop()
        if here not in reached:
            reached.add(here)
            edge += TABLES[model][here]
    assert reached == set(enum)


@pytest.mark.parametrize("model", STATUSES, ids=lambda model: model.__name__)
def test_a_stored_status_is_one_of_its_kind_and_fits(model):
    field = model.status.field
    assert [value for value, _ in field.choices] == [str(status) for status in STATUSES[model]]
    assert max(len(status) for status in STATUSES[model]) <= field.max_length


def test_every_status_of_a_card_has_a_lane():
    assert set(LANE_OF) == set(CardStatus)
    assert set(LANE_OF.values()) == set(states.Lane)


def test_live_runs_are_the_ones_that_are_not_over():
    assert set(states.LIVE) == {status for status, after in states.RUN_TRANSITIONS.items() if after}
    assert set(states.HELD) < set(states.LIVE)


def test_steps_are_called_as_in_the_harness():
    assert {str(kind) for kind in states.StepKind} == {str(kind) for kind in EntryKind}


def test_roles_are_ordered_and_each_has_its_place():
    assert set(states.ROLE_ORDER) == set(states.Role)
    assert sorted(states.ROLE_ORDER.values()) == list(range(len(states.Role)))
