"""An approval covers one call as it was shown (rule P1). Whatever changes before it runs: nothing runs, it asks again.

Every part is real: the worker, git, Valkey, the database, and the SDK over HTTP.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.messages_api import MessagesApi
from tests.messages_script import call, report, say
from tests.product import Product, make_repository, running_product

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

# Asks because of what it deletes, and leaves a trace each time that it runs.
COMMAND = "sh tidy.sh && rm -r old && echo x >> count"
FILES = {
    "old/a.txt": "x\n",
    "tidy.sh": "echo first >> ran\n",
    "other.sh": "echo second >> ran\n",
    "folder/keep.txt": "kept\n",
}
RAN_ONCE = "test $(wc -l < count) = 1"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, MessagesApi]]:
    with running_product(tmp_path_factory.mktemp("product"), workers=1, slots=1) as both:
        yield both


class Asked:
    """A card whose agent asks for COMMAND, and the open question."""

    def __init__(
        self,
        parts: tuple[Product, MessagesApi],
        folder: Path,
        key: str,
        *,
        command: str = COMMAND,
        checks: tuple[str, ...] = (RAN_ONCE,),
        more: tuple[Any, ...] = (),
    ) -> None:
        self.product, self.api = parts
        made = self.product.project(key, make_repository(folder / f"{key.lower()}.git", FILES))
        assert made["state"] == "ready", made
        title = f"Tidy {key}"
        self.api.script(title, [call("bash", command=command), *more, report("done", "Tidied.")])
        self.ref = self.product.card(key, title, checks=list(checks))["ref"]
        self.product.queue(self.ref)
        self.question = self.product.wait_for_question()

    @property
    def workspace(self) -> Path:
        """The worktree in which the call would run."""
        rows = self.product.manage(
            "shell", "--no-imports", "-c",
            "from board.models import Run\n"
            f"print(Run.objects.get(pk={self.question['run']}).workspace)",
        )  # fmt: skip
        return Path(rows.strip())

    def approve(self, **values: Any) -> None:
        self.product.decide(self.question["id"], **values)

    def asked_again(self) -> dict[str, Any]:
        """The new question, once there is one; nothing has run."""
        first = self.question["id"]
        again = self.product.wait_for_question()
        assert again["id"] != first
        assert self.product.get(f"/approvals/{first}")["status"] == "approved"
        assert self.product.get(f"/cards/{self.ref}")["runs"][0]["waiting_for"] == "approval"
        for trace in ("ran", "count"):
            assert not (self.workspace / trace).exists()
        assert (self.workspace / "old/a.txt").exists()
        self.question = again
        return again

    def finish(self) -> None:
        """Approve what is asked now; the call runs, once."""
        self.approve()
        card = self.product.wait_for_card(self.ref, "review", "failed")
        assert card["status"] == "review", self.product.get(f"/runs/{card['runs'][0]['id']}")
        assert self.product.get(f"/runs/{card['runs'][0]['id']}")["questions"] == 2


def test_a_script_that_changed_after_the_approval_asks_again(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    asked = Asked(parts, tmp_path, "SCR")
    (asked.workspace / "tidy.sh").write_text("echo other >> ran\n")
    asked.approve()
    asked.asked_again()
    asked.finish()


def test_a_link_that_leads_elsewhere_after_the_approval_asks_again(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    command = "rm -r ./link && echo x >> count"
    asked = Asked(parts, tmp_path, "LNK", command=command)
    # In the question the path was the folder itself; now it is a link to another one.
    (asked.workspace / "link").symlink_to("old")
    asked.approve()
    again = asked.asked_again()
    assert again["input"] == {"command": command}
    (asked.workspace / "link").unlink()
    (asked.workspace / "link").symlink_to("folder")
    asked.approve()
    asked.asked_again()
    asked.approve()
    asked.product.wait_for_card(asked.ref, "review")
    assert (asked.workspace / "folder/keep.txt").exists()


def test_another_working_directory_after_the_approval_asks_again(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    asked = Asked(parts, tmp_path, "DIR")
    before = asked.workspace
    shutil.rmtree(before)  # the machine is gone; another one makes the worktree anew
    asked.approve()
    asked.asked_again()
    assert asked.workspace != before
    asked.finish()


def test_an_approval_for_the_run_does_not_cover_another_input(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    other = "rm -r folder && echo x >> count"
    asked = Asked(
        parts, tmp_path, "INP",
        command="rm -r old",
        more=(call("bash", command="rm -r old"), call("bash", command=other)),
    )  # fmt: skip
    asked.approve(scope="run")
    first = asked.question["id"]
    again = asked.product.wait_for_question()
    assert (again["id"] != first, again["input"]) == (True, {"command": other})
    assert (asked.workspace / "folder/keep.txt").exists()
    assert not (asked.workspace / "count").exists()
    asked.question = again
    asked.finish()


def test_another_policy_after_the_approval_asks_again(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    asked = Asked(parts, tmp_path, "POL")
    policy = asked.product.data / "policy.yaml"
    policy.write_text('version: 1\nask:\n  commands: ["terraform *"]\n')
    try:
        asked.approve()
        asked.asked_again()
        asked.finish()
    finally:
        policy.unlink()


def test_a_question_to_the_agent_is_answered_and_the_call_asked_about_again(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    answered = say("The lawyers asked for it.").call("bash", command=COMMAND)
    asked = Asked(parts, tmp_path, "ASK", more=(answered,))
    shown = asked.question["shown"]["scripts"]
    assert [(Path(each["path"]).name, each["text"]) for each in shown] == [
        ("tidy.sh", FILES["tidy.sh"])
    ]
    asked.product.decide(asked.question["id"], "ask", comment="Who wants that folder gone?")
    again = asked.product.wait_for_question()
    assert again["id"] != asked.question["id"]
    assert again["input"] == {"command": COMMAND}
    first = asked.product.get(f"/approvals/{asked.question['id']}")
    assert (first["status"], first["decided_by"]) == ("returned", "alice")
    heard = asked.api.conversation("Tidy ASK")[1].results[0]
    assert heard["is_error"]
    assert "alice wants to know something before deciding." in heard["content"]
    assert "Who wants that folder gone?" in heard["content"]
    assert not (asked.workspace / "count").exists()
    asked.question = again
    asked.finish()
    assert not asked.api.refusals


def test_what_an_older_version_asked_is_asked_again_after_an_upgrade(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    asked = Asked(parts, tmp_path, "UPG")
    # As the version before has stored it: its rules had another name, and so has the digest.
    asked.product.manage(
        "shell", "--no-imports", "-c",
        "from board.models import Approval\n"
        f"row = Approval.objects.get(pk={asked.question['id']})\n"
        "row.facts['policy'] = 'of-the-version-before'\nrow.digest = 'f' * 64\nrow.save()",
    )  # fmt: skip
    asked.approve()
    again = asked.asked_again()
    assert json.dumps(again["input"]) == json.dumps({"command": COMMAND})
    asked.finish()
