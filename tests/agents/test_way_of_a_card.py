"""The way of one card, on real parts: real processes, git, Valkey, database, and the real SDK over HTTP."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.messages_api import MessagesApi
from tests.messages_script import call, report, say
from tests.product import Product, all_results, git, make_repository, running_product

NAP = f"sleep 4711.{os.getpid()}"  # no other test process sleeps so long
pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, MessagesApi]]:
    """A product that no other file disturbs. Each test takes a key and titles of its own."""
    with running_product(tmp_path_factory.mktemp("product")) as both:
        yield both


def test_a_card_goes_from_the_queue_to_the_users_repository(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = parts
    origin = make_repository(tmp_path / "origin.git", {"a.txt": "one\n"})
    project = product.project("WAY", origin)
    assert project["state"] == "ready", project
    api.script(
        "Say two",
        [
            say("I look.").call("read_file", path="a.txt"),
            call("edit_file", path="a.txt", old="one", new="two"),
            call("bash", command="grep -q two a.txt"),
            report("done", "It says two."),
        ],
    )
    card = product.card("WAY", "Say two", goal="a.txt says two", checks=["grep -q two a.txt"])
    spare = product.data / "workspaces" / "WAY" / ".spare" / "ready" / "tree"
    product.until(spare.exists)  # the first run of a project does not wait for its files either
    written_ahead = spare.stat().st_ino
    product.queue(card["ref"])
    reviewed = product.wait_for_card(card["ref"], "review", "failed")
    assert reviewed["status"] == "review", (reviewed, product.log_text()[-4000:])
    assert not api.refusals
    (worktree,) = spare.parents[2].glob("WAY-1-*")
    assert worktree.stat().st_ino == written_ahead
    run = product.get(f"/runs/{reviewed['runs'][0]['id']}")
    assert run["evidence"][0]["exit_code"] == 0
    diff = product.get(f"/runs/{run['id']}/diff")
    assert (diff["files"], diff["additions"], diff["deletions"]) == (1, 1, 1)
    product.post(f"/cards/{card['ref']}/merge")
    done = product.wait_for_card(card["ref"], "done", "review")
    assert done["status"] == "done", done
    assert git("show", "main:a.txt", folder=origin) == "two"


def test_a_question_is_answered_once_and_the_command_runs_once(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = parts
    product.project(
        "ASK", make_repository(tmp_path / "origin.git", {"old/a.txt": "x\n", "b.txt": "b\n"})
    )
    api.script(
        "Tidy up",
        [
            call("bash", command="rm -r old"),
            report("done", "Tidied."),
        ],
    )
    card = product.card("ASK", "Tidy up", checks=["test ! -e old"])
    product.queue(card["ref"])
    question = product.wait_for_question()
    assert question["input"] == {"command": "rm -r old"}
    assert product.get(f"/cards/{card['ref']}")["runs"][0]["status"] == "waiting"
    product.decide(question["id"])
    reviewed = product.wait_for_card(card["ref"], "review", "failed")
    assert reviewed["status"] == "review", product.log_text()[-3000:]
    assert not api.refusals
    assert len(api.conversation("Tidy up")) == 2


def test_a_denial_reaches_the_agent_with_its_reason(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = parts
    product.project("DENY", make_repository(tmp_path / "origin.git", {"old/a.txt": "x\n"}))
    api.script("Clear away", [call("bash", command="rm -r old"), report("done", "Left it.")])
    card = product.card("DENY", "Clear away")
    product.queue(card["ref"])
    product.decide(
        product.wait_for_question()["id"], "deny", comment="The lawyers need that folder"
    )
    product.wait_for_card(card["ref"], "review")
    heard = all_results(api.conversation("Clear away"))
    assert "The lawyers need that folder" in heard


def test_an_edited_command_runs_in_place_of_the_first(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = parts
    product.project(
        "EDIT", make_repository(tmp_path / "origin.git", {"old/a.txt": "x\n", "new/b.txt": "y\n"})
    )
    api.script("Halve it", [call("bash", command="rm -r new old"), report("done", "Tidied.")])
    card = product.card("EDIT", "Halve it", checks=["test ! -e old", "test -e new"])
    product.queue(card["ref"])
    product.decide(product.wait_for_question()["id"], input={"command": "rm -r old"})
    reviewed = product.wait_for_card(card["ref"], "review", "failed")
    assert reviewed["status"] == "review", product.get(f"/runs/{reviewed['runs'][0]['id']}")
    assert "rm -r old" in all_results(api.conversation("Halve it"))


def test_a_failing_check_goes_back_twice_and_then_fails_the_card(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = parts
    product.project("CHECK", make_repository(tmp_path / "origin.git"))
    api.script(
        "Never", [report("done", "Done."), report("done", "Again."), report("done", "Surely.")]
    )
    card = product.card("CHECK", "Never", checks=["echo the cause; exit 3"])
    product.queue(card["ref"])
    failed = product.wait_for_card(card["ref"], "failed")
    assert failed["failure"]["kind"] == "verification"
    assert "the cause" in api.conversation("Never")[1].last_text
    run = product.get(f"/runs/{failed['runs'][0]['id']}")
    assert run["evidence"][0]["exit_code"] == 3
    api.script("Never", [report("done", "Done.")], then=report("done", "x"))
    product.post(f"/cards/{card['ref']}/retry")
    product.wait_for_card(card["ref"], "failed")
    assert len(product.get(f"/cards/{card['ref']}")["runs"]) == 2


def test_a_diamond_of_cards_runs_in_order_without_a_person(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = parts
    product.project("FOUR", make_repository(tmp_path / "origin.git"), auto_merge=True)
    for name in "ABCD":
        api.script(
            f"Card {name}",
            [call("write_file", path=f"{name}.txt", content=name), report("done", name)],
        )
    a = product.card("FOUR", "Card A")["ref"]
    b = product.card("FOUR", "Card B", depends_on=[a])["ref"]
    c = product.card("FOUR", "Card C", depends_on=[a])["ref"]
    d = product.card("FOUR", "Card D", depends_on=[b, c])["ref"]
    product.queue(d, c, b, a)
    product.wait_for_card(d, "done")
    assert {ref: product.status(ref) for ref in (a, b, c, d)} == dict.fromkeys((a, b, c, d), "done")
    assert all(len(product.get(f"/cards/{ref}")["runs"]) == 1 for ref in (a, b, c, d))
    events = product.get("/events?project=FOUR&after=0")
    claims = [event["card"] for event in events if event["kind"] == "CardClaimed"]
    assert claims[0] == a
    assert claims[3] == d


def test_a_cancelled_run_leaves_no_process(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = parts
    product.project("STOP", make_repository(tmp_path / "origin.git"))
    api.script("Slow", [call("bash", command=NAP), report("done", "x")])
    card = product.card("STOP", "Slow", checks=[NAP])
    product.queue(card["ref"])
    product.until(lambda: processes_with(NAP), what=lambda: "the command to start")
    product.post(f"/cards/{card['ref']}/cancel")
    product.wait_for_card(card["ref"], "cancelled", seconds=5)
    assert not processes_with(NAP)


def processes_with(words: str) -> list[int]:
    """Return the processes whose command line is `words`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if line == words:
            found.append(int(path.parent.name))
    return found
