"""The journal: steps with a fence, closed once, and the tokens booked with them."""

import pytest

from board.actions import journal
from board.errors import LeaseLostError, TransitionError
from board.models import Run, Step, Usage
from board.states import StepKind, StepStatus
from tests.races import at_once

pytestmark = pytest.mark.django_db

USAGE = {
    "model": "m", "input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 2,
    "cache_write_tokens": 1, "cost_microusd": 7,
}  # fmt: skip


def begin(run, fence=None, **options):
    return journal.begin_step(
        run.pk, fence or run.fence, kind=StepKind.MODEL, request={"a": 1}, **options
    )


def test_steps_are_numbered_and_closed_with_their_outcome(running):
    assert [begin(running), begin(running, status=StepStatus.DONE)] == [1, 2]
    journal.finish_step(running.pk, running.fence, seq=1, response={"text": "Hi"}, usage=USAGE)
    first, second = Step.objects.order_by("seq")
    assert (first.status, first.response) == ("done", {"text": "Hi"})
    assert first.ended_at is not None
    assert (second.status, second.ended_at is not None) == ("done", True)
    running.refresh_from_db()
    assert (running.input_tokens, running.output_tokens, running.cost_microusd) == (10, 5, 7)
    assert Usage.objects.get().step == first
    assert [step.seq for step, _ in journal.load_steps(running.pk)] == [1, 2]


def test_an_unknown_price_is_no_price(running):
    seq = begin(running)
    journal.finish_step(
        running.pk, running.fence, seq=seq, response={}, usage=USAGE | {"cost_microusd": None}
    )
    running.refresh_from_db()
    assert (running.cost_microusd, Usage.objects.get().cost_microusd) == (0, None)


def test_a_step_is_closed_once_and_its_tokens_are_booked_once(running):
    seq = begin(running)
    journal.finish_step(running.pk, running.fence, seq=seq, response={}, usage=USAGE)
    with pytest.raises(TransitionError, match="already over"):
        journal.finish_step(running.pk, running.fence, seq=seq, response={}, usage=USAGE)
    assert Usage.objects.count() == 1
    assert Run.objects.get().input_tokens == 10


def test_a_stale_fence_writes_no_step(running):
    seq = begin(running)
    with pytest.raises(LeaseLostError):
        begin(running, fence=running.fence + 1)
    with pytest.raises(LeaseLostError):
        journal.finish_step(running.pk, running.fence + 1, seq=seq, response={}, usage=USAGE)
    with pytest.raises(LeaseLostError):
        journal.resume_step(running.pk, running.fence + 1, seq=seq)
    assert Step.objects.get().status == "started"
    assert not Usage.objects.exists()


def test_what_postgresql_cannot_store_is_replaced(running):
    seq = begin(running)
    journal.finish_step(
        running.pk, running.fence, seq=seq, response={"a\x00": ["\ud800", 1, None, {"b": "\x00"}]}
    )
    assert Step.objects.get().response == {"a\ufffd": ["?", 1, None, {"b": "\ufffd"}]}


@pytest.mark.django_db(transaction=True)
def test_steps_begun_at_the_same_moment_have_numbers_of_their_own(running):
    taken = at_once(*[lambda: [begin(running) for _ in range(4)] for _ in range(4)])
    assert sorted(seq for seqs in taken for seq in seqs) == list(range(1, 17))
