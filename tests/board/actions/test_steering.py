"""Messages to a running agent: each reaches it once, whatever happens in between."""

import pytest

from board.actions import comments, steering
from board.errors import LeaseLostError
from board.models import Step
from board.states import StepKind, StepStatus

pytestmark = pytest.mark.django_db

NOTE = {
    "kind": StepKind.NOTE,
    "request": {"source": "steering", "text": "x"},
    "status": StepStatus.DONE,
}


def say(run, by, body):
    return comments.comment_on_card(run.card, by=by, body=body, steer=True)


def test_all_messages_of_one_note_are_delivered_with_it(running, bob):
    say(running, bob, "Use tabs")
    last = say(running, bob, "And mind the tests")
    steering.deliver(running.pk, running.fence, up_to=last.pk, **NOTE)
    assert steering.undelivered(running.pk) == []


def test_a_message_that_came_since_waits_for_the_next_note(running, bob):
    first = say(running, bob, "Use tabs")
    late = say(running, bob, "No, spaces")
    steering.deliver(running.pk, running.fence, up_to=first.pk, **NOTE)
    assert steering.undelivered(running.pk) == [late]


def test_a_worker_that_lost_the_run_delivers_nothing(running, bob):
    message = say(running, bob, "Use tabs")
    with pytest.raises(LeaseLostError):
        steering.deliver(running.pk, running.fence - 1, up_to=message.pk, **NOTE)
    assert steering.undelivered(running.pk) == [message]
    assert not Step.objects.exists()
