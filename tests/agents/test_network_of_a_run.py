"""The allow-list of a project on a real worker: in its run, in its checks, and in the test of its merge."""

from pathlib import Path

import pytest

from agents.sandbox_probe import probe
from tests.messages_api import MessagesApi
from tests.messages_script import call, report
from tests.product import Product, git, make_repository

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

LIST = "from board.models import Project; Project.objects.filter(key='NET').update(network_hosts=['listed.example'])"
# The name is refused before anyone is asked for it, so no test leaves this machine.
ASKS = (
    "import urllib.request as u, urllib.error as e\n"
    "try: u.urlopen('http://other.example/')\n"
    "except e.HTTPError as error: print(error.code, error.read().decode())\n"
)


@pytest.mark.skipif(probe().name != "bubblewrap", reason=probe().message)
def test_a_run_its_checks_and_its_merge_have_the_proxy(
    shared: tuple[Product, MessagesApi], tmp_path: Path
) -> None:
    product, api = shared
    origin = make_repository(tmp_path / "origin", {"ask.py": ASKS}, bare=False)
    product.project("NET", origin)
    product.manage("shell", "-v", "0", "-c", LIST)
    # What a person has written runs as it is, so nobody is asked about its connection.
    check = "python3 ask.py | grep '^403 .*GET other.example: the host is not on the project'"
    api.script(
        "Look outside",
        [
            call("write_file", path="b.txt", content="b\n"),
            call("bash", command=check),
            report("done", "I looked."),
        ],
    )
    card = product.card("NET", "Look outside", checks=[check])
    product.queue(card["ref"])
    reviewed = product.wait_for_card(card["ref"], "review", "failed")
    assert reviewed["status"] == "review", product.log_text()[-3000:]
    said = str(api.conversation("Look outside")[2].results[0]["content"])
    assert "not on the project's allow-list" in said
    # The merge tests again what nobody has tested: the branch with another commit.
    git("commit", "-q", "--allow-empty", "-m", "Another", folder=origin)
    product.post(f"/cards/{card['ref']}/merge")
    done = product.wait_for_card(card["ref"], "done", "failed")
    assert done["status"] == "done", product.log_text()[-3000:]
    note = "Network: GET other.example refused: the host is not on the project's allow-list"
    items = product.log_items(reviewed["runs"][0]["id"])
    # The run, its check, and the merge's.
    assert [item["data"].get("text") for item in items].count(note) == 3
