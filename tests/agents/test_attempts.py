"""What the next attempt at a card begins with, and what ends one before the agent has begun."""

from pathlib import Path

import pytest

from tests.messages_api import MessagesApi
from tests.messages_script import call, report
from tests.product import Product, make_repository

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

Parts = tuple[Product, MessagesApi]


def test_work_that_is_sent_back_is_continued_with_the_comment(
    shared: Parts, tmp_path: Path
) -> None:
    product, api = shared
    product.project("AGAIN", make_repository(tmp_path / "origin.git"))
    api.script("Write one", [call("write_file", path="1.txt", content="1\n"), report("done", "1.")])
    ref = product.card("AGAIN", "Write one", checks=["test -e 1.txt"])["ref"]
    product.queue(ref)
    product.wait_for_card(ref, "review")
    api.script(
        "And a second one", [call("write_file", path="2.txt", content="2\n"), report("done", "2.")]
    )
    product.post(f"/cards/{ref}/send-back", comment="And a second one, please")
    card = product.until(
        lambda: product.status(ref) == "review" and product.get(f"/cards/{ref}"),
        what=lambda: f"the second attempt: {product.get(f'/cards/{ref}')}",
    )
    assert [run["status"] for run in card["runs"]] == ["succeeded", "succeeded"]
    prompt = api.conversation("And a second one")[0].first_text
    assert "sent the work back" in prompt
    changed = product.get(f"/runs/{card['runs'][1]['id']}/diff")
    assert [file["path"] for file in changed["diff"]] == ["1.txt", "2.txt"]


def test_a_retry_begins_afresh(shared: Parts, tmp_path: Path) -> None:
    product, api = shared
    product.project("FRESH", make_repository(tmp_path / "origin.git"))
    api.script(
        "Give up",
        [
            call("write_file", path="junk.txt", content="junk\n"),
            report("failed", "I cannot do it.", "Everything."),
        ],
    )
    ref = product.card("FRESH", "Give up", checks=["test ! -e junk.txt"])["ref"]
    product.queue(ref)
    failed = product.wait_for_card(ref, "failed")
    assert failed["failure"] == {"kind": "reported", "message": "I cannot do it."}
    # What it did is kept for people to look at.
    assert product.get(f"/runs/{failed['runs'][0]['id']}/diff")["files"] == 1
    api.script("I cannot do it.", [report("done", "I can.")])
    product.post(f"/cards/{ref}/retry")
    card = product.wait_for_card(ref, "review", seconds=60)
    assert len(card["runs"]) == 2
    assert product.get(f"/runs/{card['runs'][1]['id']}/diff")["files"] == 0


def test_a_set_up_command_runs_before_the_agent(shared: Parts, tmp_path: Path) -> None:
    product, api = shared
    product.project("SETUP", make_repository(tmp_path / "origin.git"), setup_command="touch made")
    api.script("Find it made", [report("done", "It is there.")])
    ref = product.card("SETUP", "Find it made", checks=["test -e made"])["ref"]
    product.queue(ref)
    product.wait_for_card(ref, "review")


def test_a_failing_set_up_command_fails_the_card_before_any_model_call(
    shared: Parts, tmp_path: Path
) -> None:
    product, api = shared
    origin = make_repository(tmp_path / "origin.git")
    product.project("NOSET", origin, setup_command="echo no compiler; exit 3")
    ref = product.card("NOSET", "Never asked")["ref"]
    product.queue(ref)
    card = product.wait_for_card(ref, "failed")
    assert card["failure"]["kind"] == "infrastructure"
    assert "echo no compiler; exit 3" in card["failure"]["message"]
    assert not api.conversation("Never asked")
    log = product.log_items(card["runs"][0]["id"])
    assert any("no compiler" in str(item["data"].get("output")) for item in log)


def test_a_file_that_cannot_be_part_of_the_work_is_named_once(
    shared: Parts, tmp_path: Path
) -> None:
    product, api = shared
    origin = make_repository(tmp_path / "origin.git")
    product.project("LARGE", origin, setup_command="truncate -s 101M large.bin")
    writes = [call("write_file", path=f"{name}.txt", content="x\n") for name in "ab"]
    api.script("Beside a large file", [*writes, report("done", "Written.")])
    ref = product.card("LARGE", "Beside a large file")["ref"]
    product.queue(ref)
    card = product.wait_for_card(ref, "review")
    notes = [item["data"].get("text", "") for item in product.log_items(card["runs"][0]["id"])]
    assert [text for text in notes if "large.bin" in text and "Cannot" in text] == [
        "Cannot be part of the work: large.bin: larger than 100 MB"
    ]
