"""F-17, C-27: a question outlives every process, and its answer is carried out exactly once."""

from contextlib import suppress
from pathlib import Path

import pytest

from tests.chaos.conftest import NewProject
from tests.messages_api import MessagesApi
from tests.messages_script import call, rate_limited, report
from tests.product import Product, Refused

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

COMMAND = "rm -r old && echo x >> count"


def test_a_question_outlives_every_process_and_its_command_runs_once(
    parts: tuple[Product, MessagesApi], new_project: NewProject
) -> None:
    product, api = parts
    new_project("KILL", {"old/a.txt": "x\n"})
    api.script("Tidy up", [call("bash", command=COMMAND), report("done", "Tidied.")])
    ref = product.card("KILL", "Tidy up", checks=["test $(wc -l < count) = 1"])["ref"]
    product.queue(ref)
    question = product.wait_for_question()

    for names in (["web"], ["worker-0"], ["valkey"], ["web", "worker-0", "valkey"]):
        for name in names:
            product.kill(name)
        for name in reversed(names):
            product.start(name)
        assert product.wait_for_question()["id"] == question["id"]
        assert product.get(f"/cards/{ref}")["runs"][0]["waiting_for"] == "approval"

    product.decide(question["id"])
    with pytest.raises(Refused) as late:
        product.decide(question["id"], "deny")
    assert late.value.status == 409
    card = product.wait_for_card(ref, "review", "failed")
    assert card["status"] == "review", product.get(f"/runs/{card['runs'][0]['id']}")
    assert len(card["runs"]) == 1
    assert len(api.conversation("Tidy up")) == 2
    assert not api.refusals


def test_an_answer_that_no_worker_heard_is_carried_out_once(
    parts: tuple[Product, MessagesApi], new_project: NewProject
) -> None:
    product, api = parts
    new_project("DEAF", {"old/a.txt": "x\n"})
    api.script("Sweep", [call("bash", command=COMMAND), report("done", "Swept.")])
    ref = product.card("DEAF", "Sweep", checks=["test $(wc -l < count) = 1"])["ref"]
    product.queue(ref)
    question = product.wait_for_question()
    product.kill("worker-0")
    product.kill("valkey")
    product.decide(question["id"])
    product.start("valkey")
    product.start("worker-0")
    product.wait_for_card(ref, "review")


def test_a_waiting_question_holds_no_slot_and_no_process(
    parts: tuple[Product, MessagesApi], new_project: NewProject
) -> None:
    product, api = parts
    new_project("SLOT", {"old/a.txt": "x\n"})
    first = [call("bash", command="ls"), call("bash", command=COMMAND)]
    api.script("Asks first", [*first, report("done", "Asked.")])
    api.script("Goes through", [report("done", "Went through.")])
    asking = product.card("SLOT", "Asks first")["ref"]
    product.queue(asking)
    question = product.wait_for_question()
    place = f"{product.data}/workspaces/SLOT/{asking}-1-".encode()
    product.until(lambda: not processes_at(place), seconds=10, what=lambda: "its processes to end")
    other = product.card("SLOT", "Goes through")["ref"]
    product.queue(other)
    product.wait_for_card(other, "review")  # with the only slot there is
    assert product.status(asking) == "running"
    requests = len(api.conversation("Asks first"))
    assert requests == 2  # no model call while it waits
    product.decide(question["id"], "deny", comment="Not now")
    product.wait_for_card(asking, "review")


def processes_at(place: bytes) -> list[int]:
    """Return the processes that were told of a path that begins so."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if place in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def test_without_valkey_a_card_is_done_all_the_same(
    parts: tuple[Product, MessagesApi], new_project: NewProject
) -> None:
    product, api = parts
    new_project("MUTE")
    product.kill("valkey")
    try:
        api.script("Nobody is told", [call("list_files", path="."), report("done", "Done.")])
        ref = product.card("MUTE", "Nobody is told")["ref"]
        product.queue(ref)
        product.wait_for_card(ref, "review")
        product.post(f"/cards/{ref}/merge")
        product.wait_for_card(ref, "done")
    finally:
        product.start("valkey")


def test_a_retry_after_a_rate_limit_comes_without_valkey(
    parts: tuple[Product, MessagesApi], new_project: NewProject
) -> None:
    product, api = parts
    new_project("RATE")
    product.kill("valkey")
    try:
        turns = [*[rate_limited(retry_after=1)] * 6, report("done", "Done at last.")]
        api.script("Slowed down", turns)
        ref = product.card("RATE", "Slowed down")["ref"]
        product.queue(ref)
        card = product.wait_for_card(ref, "review", "failed")
        assert card["status"] == "review", card
        assert card["attempts"] == 1
    finally:
        product.start("valkey")
