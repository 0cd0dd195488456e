"""F-32, F-43, F-44, C-46: a run goes on with another worker, and a worker that lost it writes nothing more."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.conftest import NewProject
from tests.messages_api import MessagesApi
from tests.messages_script import Request, Turn, call, report
from tests.product import Product, processes_with

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

# Hangs when it runs for the first time, so that whoever runs it a second time is noticed.
NAP = f"sleep 4712.{os.getpid()}"  # no other test process sleeps so long
SLOW = f"echo x >> count\ntest $(wc -l < count) -gt 1 || exec {NAP}\n"
CHECK = "sh slow.sh"


@pytest.fixture(autouse=True)
def one_worker(parts: tuple[Product, MessagesApi]) -> Iterator[None]:
    """Begin and end each test with the worker `worker-0` alone."""
    product, _ = parts
    if not product.is_running("worker-0"):
        product.start("worker-0")
    yield
    if product.is_running("worker-0"):
        product.kill("worker-0", signal.SIGCONT)
    if product.is_running("worker-1"):
        product.kill("worker-1")


def test_a_worker_killed_in_a_model_call_is_replaced(
    parts: tuple[Product, MessagesApi], new_project: NewProject
) -> None:
    product, api = parts
    new_project("CALL")
    answers: list[Turn] = [report("done", "First.").after(300)]

    def answer(_request: Request) -> Turn:
        return answers.pop() if answers else report("done", "Second.")

    api.script("Think long", [answer])
    ref = product.card("CALL", "Think long")["ref"]
    product.queue(ref)
    product.until(lambda: not answers, what=lambda: "the model to be asked")
    product.kill("worker-0")
    product.start("worker-1")
    card = product.wait_for_card(ref, "review", "failed")
    assert card["status"] == "review", card
    assert len(card["runs"]) == 1
    assert product.get(f"/runs/{card['runs'][0]['id']}")["summary"] == "Second."


def hang(parts: tuple[Product, MessagesApi], key: str, title: str) -> tuple[str, int]:
    """Let a card hang in a command; return it and its run."""
    product, api = parts
    api.script(title, [call("bash", command=CHECK), report("done", "It ran.")])
    ref = product.card(key, title, checks=[CHECK])["ref"]
    product.queue(ref)
    product.until(lambda: processes_with(NAP), what=lambda: "the command to start")
    return ref, int(product.get(f"/cards/{ref}")["runs"][0]["id"])


def freeze(product: Product, key: str) -> None:
    """Stop worker-0 where it stands, but not while it holds SQLite's one lock: then nobody could go on."""
    for _ in range(20):
        product.kill("worker-0", signal.SIGSTOP)
        if product.can_write(key):
            return
        product.kill("worker-0", signal.SIGCONT)
    raise AssertionError("the worker was caught in a transaction each time")


def assert_continued(parts: tuple[Product, MessagesApi], ref: str, title: str) -> None:
    """The card comes to review; the command was not repeated, and the agent was told so."""
    product, api = parts
    card = product.wait_for_card(ref, "review", "failed")
    assert card["status"] == "review", product.get(f"/runs/{card['runs'][0]['id']}")
    assert len(card["runs"]) == 1
    _first, second = api.conversation(title)
    assert "outcome unknown" in second.last_text
    assert not processes_with(NAP)
    # Saved before the checks ran: what the agent's one call has written.
    changed = product.get(f"/runs/{card['runs'][0]['id']}/diff")
    assert changed["additions"] == 1, changed


def test_a_worker_killed_in_a_command_is_replaced_and_the_command_is_not_repeated(
    parts: tuple[Product, MessagesApi], new_project: NewProject
) -> None:
    product, _ = parts
    new_project("DEAD", {"slow.sh": SLOW})
    ref, _run = hang(parts, "DEAD", "Killed in it")
    product.kill("worker-0")
    product.until(lambda: not processes_with(NAP), seconds=5, what=lambda: "its end")
    product.start("worker-1")
    assert_continued(parts, ref, "Killed in it")


def test_a_worker_that_stops_gives_its_runs_back(
    parts: tuple[Product, MessagesApi], new_project: NewProject
) -> None:
    product, _ = parts
    new_project("TERM", {"slow.sh": SLOW})
    ref, run = hang(parts, "TERM", "Stopped in it")
    product.kill("worker-0", signal.SIGTERM)
    assert not processes_with(NAP)
    assert product.get(f"/runs/{run}")["status"] == "ready"  # at once, not when its lease ends
    product.start("worker-1")
    assert_continued(parts, ref, "Stopped in it")


def test_a_worker_that_was_frozen_past_its_lease_writes_nothing_more(
    parts: tuple[Product, MessagesApi], new_project: NewProject
) -> None:
    product, api = parts
    new_project("COLD", {"slow.sh": SLOW})
    ref, run = hang(parts, "COLD", "Frozen in it")
    freeze(product, "COLD")
    product.start("worker-1")
    # The new worker kills what the frozen one left in the worktree.
    assert_continued(parts, ref, "Frozen in it")
    before = journal(product, run)
    product.kill("worker-0", signal.SIGCONT)
    # It is itself again, and free: it takes the next card, for the other one is gone.
    product.kill("worker-1")
    api.script("After the frost", [report("done", "Warm.")])
    other = product.card("COLD", "After the frost")["ref"]
    product.queue(other)
    product.wait_for_card(other, "review")
    assert journal(product, run) == before
    assert product.status(ref) == "review"


def journal(product: Product, run: int) -> Any:
    """Return everything that a worker writes of a run."""
    return product.get(f"/runs/{run}"), product.log_items(run)
