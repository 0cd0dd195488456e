"""Merges seen from outside: what lands where, and what is never touched."""

import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.messages_api import MessagesApi
from tests.messages_script import call, report
from tests.product import Product, git, make_repository

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

Parts = tuple[Product, MessagesApi]


def reviewed(parts: Parts, project: str, title: str, path: str, text: str, **values: Any) -> str:
    """Let a card write one file, and return it in review."""
    product, api = parts
    write = call("write_file", path=path, content=text)
    # A file that is there must have been read.
    api.script(title, [call("read_file", path=path), write, report("done", title)])
    ref: str = product.card(project, title, **values)["ref"]
    product.queue(ref)
    card = product.wait_for_card(ref, "review", "failed")
    assert card["status"] == "review", card
    return ref


def merged(product: Product, ref: str) -> Any:
    """Merge a card and return it, done or back in review."""
    product.post(f"/cards/{ref}/merge")
    return product.wait_for_card(ref, "done", "review")


def test_a_clean_checkout_follows_the_merge(shared: Parts, tmp_path: Path) -> None:
    product, _ = shared
    folder = make_repository(tmp_path / "clean", bare=False)
    product.project("CLEAN", folder)
    card = merged(product, reviewed(shared, "CLEAN", "Into a clean one", "new.txt", "new\n"))
    assert card["status"] == "done", card
    assert (folder / "new.txt").read_text() == "new\n"
    assert git("status", "--porcelain", folder=folder) == ""
    assert git("log", "-1", "--format=%s", folder=folder) == "CLEAN-1: Into a clean one"


def test_a_dirty_checkout_is_never_touched_and_the_card_says_what_to_do(
    shared: Parts, tmp_path: Path
) -> None:
    product, _ = shared
    folder = make_repository(tmp_path / "dirty", bare=False)
    product.project("DIRTY", folder)
    ref = reviewed(shared, "DIRTY", "Into a dirty one", "README.md", "# Changed\n")
    (folder / "README.md").write_text("# Mine, unsaved\n")
    before = git("rev-parse", "HEAD", folder=folder)
    card = merged(product, ref)
    assert card["status"] == "done", card
    assert card["delivery"].startswith("Merged, but not delivered."), card
    assert (folder / "README.md").read_text() == "# Mine, unsaved\n"
    assert git("rev-parse", "HEAD", folder=folder) == before
    # What the card says to do, does it.
    git("checkout", "-q", "README.md", folder=folder)
    command = shlex.split(card["delivery"].partition("run there: git ")[2])
    git(*command, folder=folder)
    assert (folder / "README.md").read_text() == "# Changed\n"


def test_a_conflict_leads_back_to_review_and_names_the_files(shared: Parts, tmp_path: Path) -> None:
    product, api = shared
    origin = make_repository(tmp_path / "origin.git", {"a.txt": "one\n", "b.txt": "b\n"})
    product.project("CLASH", origin)
    first = reviewed(shared, "CLASH", "The first writer", "a.txt", "two\n")
    second = reviewed(shared, "CLASH", "The second writer", "a.txt", "three\n")
    assert merged(product, first)["status"] == "done"
    card = merged(product, second)
    assert card["status"] == "review"
    assert "a.txt" in card["failure"]["message"]
    assert "b.txt" not in card["failure"]["message"]
    assert git("show", "main:a.txt", folder=origin) == "two"
    # Sent back, an agent works on the new state, and then it merges.
    api.script(
        "Yours comes first",
        [
            call("read_file", path="a.txt"),
            call("edit_file", path="a.txt", old="two", new="three"),
            report("done", "On top of it."),
        ],
    )
    product.post(f"/cards/{second}/send-back", comment="Yours comes first")
    again = product.wait_for_card(second, "review", "failed")
    assert again["status"] == "review", again
    assert "two" in api.conversation("Yours comes first")[1].last_text
    assert merged(product, second)["status"] == "done"
    assert git("show", "main:a.txt", folder=origin) == "three"


def test_work_is_tested_again_when_the_target_has_moved(shared: Parts, tmp_path: Path) -> None:
    product, _ = shared
    origin = make_repository(tmp_path / "origin.git")
    product.project("MOVED", origin)
    fine = reviewed(shared, "MOVED", "Fits all the same", "fine.txt", "x\n")
    broken = reviewed(
        shared, "MOVED", "Fits no more", "more.txt", "x\n", checks=["test ! -e pushed.txt"]
    )
    push(origin, tmp_path / "person")
    done = merged(product, fine)
    assert done["status"] == "done", done
    assert {"fine.txt", "pushed.txt"} <= set(
        git("ls-tree", "--name-only", "main", folder=origin).split()
    )
    log = product.log_items(done["runs"][0]["id"])
    assert any("Testing again" in item["data"].get("text", "") for item in log)
    refused = merged(product, broken)
    assert refused["status"] == "review"
    assert "test ! -e pushed.txt" in refused["failure"]["message"]
    assert "more.txt" not in git("ls-tree", "--name-only", "main", folder=origin)


def test_a_set_up_has_no_network_on_work_that_no_person_has_taken(
    shared: Parts, tmp_path: Path
) -> None:
    product, api = shared
    origin = make_repository(tmp_path / "origin.git", {"fetch.sh": "exit 0\n"})
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        # What an agent could write into any file that a set-up runs.
        theft = (
            f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'\n"
        )
        product.project("AUTO", origin, auto_merge=True, setup_command="sh fetch.sh")
        write = call("write_file", path="fetch.sh", content=theft)
        asks = call("bash", command="pip download x || true")
        api.script(
            "Send it out", [call("read_file", path="fetch.sh"), write, asks, report("done", "x")]
        )
        ref = product.card("AUTO", "Send it out")["ref"]
        product.queue(ref)
        question = product.wait_for_question()
        push(origin, tmp_path / "person")  # the target moves, so the merge is tested again
        product.decide(question["id"])
        card = product.wait_for_card(ref, "done", "review", "failed")
        assert "no network" in card["failure"]["message"], card
        server.setblocking(False)  # noqa: FBT003
        with pytest.raises(BlockingIOError):
            server.accept()
        # A person reads the diff, and asks for the merge.
        assert merged(product, ref)["status"] == "done"
        server.accept()[0].close()


def push(origin: Path, work: Path) -> None:
    """Push a commit, as a person does."""
    git("clone", "-q", str(origin), str(work), folder=work.parent)
    (work / "pushed.txt").write_text("by a person\n")
    git("add", "-A", folder=work)
    git("commit", "-q", "-m", "Push", folder=work)
    git("push", "-q", "origin", "main", folder=work)


def test_checks_that_were_changed_in_review_are_run_before_the_merge(
    shared: Parts, tmp_path: Path
) -> None:
    product, _ = shared
    origin = make_repository(tmp_path / "origin.git")
    product.project("EDITED", origin)
    key = reviewed(shared, "EDITED", "Judged by a check of later", "early.txt", "x\n")
    product.patch(f"/cards/{key}", checks=["test -e late.txt"])
    refused = merged(product, key)
    assert refused["status"] == "review"
    assert "test -e late.txt" in refused["failure"]["message"]
    assert "early.txt" not in git("ls-tree", "--name-only", "main", folder=origin)
    product.patch(f"/cards/{key}", checks=["test -e early.txt"])
    assert merged(product, key)["status"] == "done"


def test_checks_that_passed_by_a_file_that_git_ignores_do_not_pass_the_merge(
    shared: Parts, tmp_path: Path
) -> None:
    product, _ = shared
    origin = make_repository(tmp_path / "origin.git", {".gitignore": "lib/\n"})
    product.project("IGNORE", origin)
    key = reviewed(
        shared, "IGNORE", "Leaves it behind", "lib/a.txt", "x\n", checks=["test -e lib/a.txt"]
    )
    refused = merged(product, key)
    assert refused["status"] == "review"
    assert "test -e lib/a.txt" in refused["failure"]["message"]
