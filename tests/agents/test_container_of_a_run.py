"""A project with a container on a real worker: its run, its questions, its checks, its merge; and when it is gone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import containers
from tests.agents.test_network_of_a_run import ASKS
from tests.days_work import Pages
from tests.messages_api import MessagesApi
from tests.messages_script import call, report
from tests.product import Product, git, make_repository, processes_with, running_product

pytestmark = [
    pytest.mark.process,
    pytest.mark.one_database,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(containers.why_not()), reason=containers.why_not()),
    pytest.mark.xdist_group("containers"),
]
IN_IMAGE = "grep -q 'made for tests' /etc/image"
ASK = "python3 ask.py | grep '^403 .*GET other.example: the host is not on the project'"
NAP = "sleep 4713.5"
SLOW = 240.0  # on a busy machine; a try, three containers for each command's way
CHOOSE = """
from board.actions.containers import set_container
from board.models import Project, User
project = Project.objects.get(key={key!r})
project.network_hosts = ["listed.example"]
project.save()
set_container(project, by=User.objects.get(email="alice@example.org"), engine="podman", image={image!r})
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, MessagesApi]]:
    folder = tmp_path_factory.mktemp("containers")
    with (
        containers.podman(folder / "podman") as names,
        running_product(folder, environment=names, warm=False) as both,
    ):
        yield both


def project_in(product: Product, key: str, origin: Path, *, image: str = containers.IMAGE) -> None:
    product.project(key, origin)
    product.manage("shell", "-v", "0", "-c", CHOOSE.format(key=key, image=image))


def test_a_run_its_question_its_checks_and_its_merge_are_in_the_container(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = parts
    files = {"a.txt": "one\n", "old/x.txt": "x\n", "ask.py": ASKS}
    origin = make_repository(tmp_path / "origin", files, bare=False)
    project_in(product, "CON", origin)
    api.script(
        "Say two",
        [
            call("read_file", path="a.txt"),
            call("edit_file", path="a.txt", old="one", new="two"),
            call("bash", command="cat /etc/image; grep -c two a.txt; id -u"),
            call("bash", command=ASK),
            call("bash", command="git add -A && git commit -qm Two && git log --oneline | wc -l"),
            call("bash", command="rm -r old"),
            report("done", "It says two."),
        ],
    )
    card = product.card("CON", "Say two", checks=[IN_IMAGE, "grep -q two a.txt", ASK])
    product.queue(card["ref"])
    question = product.wait_for_question(seconds=SLOW)
    assert question["sandbox"] == "podman"
    pages = Pages(product)
    assert "container (podman)" in pages.text(f"/approvals/{question['id']}/")
    assert "Commands run in a container (podman)" in pages.text("/p/CON/")
    product.decide(question["id"])
    reviewed = product.wait_for_card(card["ref"], "review", "failed", seconds=SLOW)
    assert reviewed["status"] == "review", (reviewed, product.log_text()[-3000:])
    said = [str(request.results) for request in api.conversation("Say two")[1:]]
    assert "made for tests" in said[2]
    assert "allow-list" in said[3]
    assert "exit code 0" in said[4]
    run = product.get(f"/runs/{reviewed['runs'][0]['id']}")
    assert [check["exit_code"] for check in run["evidence"]] == [0, 0, 0]
    assert run["questions"] == 1
    git("commit", "-q", "--allow-empty", "-m", "Another", folder=origin)
    product.post(f"/cards/{card['ref']}/merge")
    done = product.wait_for_card(card["ref"], "done", "review", seconds=SLOW)
    assert done["status"] == "done", done
    assert git("show", "main:a.txt", folder=origin) == "two"
    assert "old/x.txt" not in git("ls-tree", "-r", "--name-only", "main", folder=origin)
    product.until(lambda: "It works" in Pages(product).text("/p/CON/settings/"), seconds=SLOW)


def test_a_cancelled_run_leaves_no_process(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = parts
    project_in(product, "NAP", make_repository(tmp_path / "origin.git"))
    api.script("Slow", [call("bash", command=NAP), report("done", "x")])
    card = product.card("NAP", "Slow", checks=[NAP])
    product.queue(card["ref"])
    product.until(lambda: processes_with(NAP), seconds=SLOW, what=lambda: "the command to start")
    product.post(f"/cards/{card['ref']}/cancel")
    product.until(lambda: not processes_with(NAP), seconds=5)
    product.wait_for_card(card["ref"], "cancelled", seconds=20)


def test_without_the_image_the_card_fails_and_nothing_runs_outside(
    parts: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = parts
    mark = tmp_path / "mark"
    project_in(product, "GONE", make_repository(tmp_path / "origin.git"), image="localhost/gone:1")
    command = f"touch {mark}"
    api.script("Work", [call("bash", command=command), report("done", "x")])
    card = product.card("GONE", "Work", checks=[command])
    product.queue(card["ref"])
    failed = product.wait_for_card(card["ref"], "failed", "review", seconds=SLOW)
    assert failed["status"] == "failed"
    assert failed["failure"]["kind"] == "infrastructure"
    assert "podman has no image localhost/gone:1" in failed["failure"]["message"]
    assert not mark.exists()
    assert not api.conversation("Work")  # it was not even asked
    product.until(lambda: "It does not work" in Pages(product).text("/p/GONE/"), seconds=SLOW)
