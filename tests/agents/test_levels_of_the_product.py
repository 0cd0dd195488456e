"""A card in a hostile repository, done by the whole product, once at each level of the sandbox that this machine has.

Every part is real: the worker, git, Valkey, the database, and the SDK over HTTP. For the second level
bubblewrap does not work, as on a machine that forbids it.
"""

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from agents.sandbox_levels import BUBBLEWRAP, LANDLOCK
from agents.sandbox_probe import probe
from tests.messages_api import MessagesApi
from tests.messages_script import call, report
from tests.product import (
    Product,
    all_results,
    git,
    make_repository,
    processes_with,
    running_product,
)

pytestmark = [pytest.mark.process, pytest.mark.one_database, pytest.mark.timeout(300)]

NAP = "sleep 97.625"
# Run by the card's check, as a person wrote it: each line that says LOST is a way out.
PROBE = """
data=$1 port=$2 valkey=$3 worker=$4
lost() { echo "LOST: $1"; }
for file in "$data"/*.sqlite3* "$data"/secret* "$data"/hubs/*/config; do
    head -c 1 "$file" >/dev/null 2>&1 && lost "read $file"
done
find "$data" -name notes.txt 2>/dev/null | while read -r file; do
    case $file in "$PWD"/*) ;; *) cat "$file" >/dev/null 2>&1 && lost "read $file" ;; esac
done
for place in "$data" "$data"/hubs "$data"/hubs/* "$data"/workspaces "$data"/workspaces/*/clone.git; do
    (mkdir -p "$place/hooks" && echo x >"$place/hooks/post-checkout"; echo x >"$place/probe-was-here"
     echo x >>"$place/config"; echo x >"$place/policy.yaml") 2>/dev/null
done
(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && lost "the product's address"
python3 -c "import socket; socket.socket(socket.AF_UNIX).connect('$valkey')" 2>/dev/null && lost valkey
grep -sq ANTHROPIC_API_KEY /proc/*/environ && lost "an environment"
env | grep -q -e ANTHROPIC -e SECRET_KEY -e DATABASE_URL && lost "its own environment"
kill -STOP "$worker" 2>/dev/null && kill -CONT "$worker" && test -d "/proc/$worker" && lost "the worker"
(setsid sleep 97.625 >/dev/null 2>&1 &)
echo probed
""".strip()  # fmt: skip
FILES = {
    "probe.sh": PROBE + "\n",
    "notes.txt": "of this card\n",
    "tool.py": "print('a tool')\n",
    "old/a.txt": "x\n",
    ".gitattributes": "* filter=evil diff=evil\n",
    ".envrc": "touch /tmp/pullcord-was-here\n",
}


LEFT = ("probe-was-here", "post-checkout", "policy.yaml")


def configurations(data: Path) -> dict[str, bytes]:
    """What git of the product is told, in each repository."""
    return {str(path): path.read_bytes() for path in data.rglob("config") if path.is_file()}


class Parts(NamedTuple):
    level: str
    product: Product
    api: MessagesApi


@pytest.fixture(scope="module", params=[BUBBLEWRAP, LANDLOCK])
def parts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Parts]:
    """The product with a worker at a level."""
    found = probe(only=request.param)
    if found.name != request.param:
        pytest.skip(found.message)
    folder = tmp_path_factory.mktemp("product")
    environment = {}
    if request.param == LANDLOCK:
        broken = folder / "bin" / "bwrap"
        broken.parent.mkdir()
        broken.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
        broken.chmod(0o755)
        environment["PATH"] = f"{broken.parent}{os.pathsep}{os.environ['PATH']}"
    with running_product(folder, workers=1, slots=2, environment=environment, warm=False) as (
        product,
        api,
    ):
        yield Parts(request.param, product, api)


def test_a_card_is_done_and_what_its_repository_tries_is_held(parts: Parts, tmp_path: Path) -> None:
    level, product, api = parts
    origin = make_repository(tmp_path / "origin.git", FILES)
    product.project("LEVEL", origin)
    api.script(
        "Do it",
        [
            call("write_file", path="new.txt", content="made\n"),
            call("bash", command="git status --short && ls"),
            call("bash", command="rm -r old"),
            report("done", "It is done."),
        ],
    )
    # Another card of the project, whose files are none of this one's business.
    api.script(
        "Other", [call("write_file", path="notes.txt", content="theirs\n"), report("done", "x")]
    )
    other = product.card("LEVEL", "Other")["ref"]
    product.queue(other)
    product.wait_for_card(other, "failed", "review")
    valkey = product.redis_url.removeprefix("unix://")
    arguments = f"'{product.data}' {product.port} '{valkey}' {product.pid('worker-0')}"
    probing = f"bash probe.sh {arguments} | tee /dev/stderr | {{ ! grep LOST; }}"
    card = product.card("LEVEL", "Do it", checks=[probing])
    before = configurations(product.data)
    product.queue(card["ref"])
    question = product.wait_for_question()
    assert (question["sandbox"], question["input"]) == (level, {"command": "rm -r old"})
    product.decide(question["id"])
    card = product.wait_for_card(card["ref"], "review", "failed")
    run = product.get(f"/runs/{card['runs'][0]['id']}")
    (evidence,) = run["evidence"]
    assert "LOST" not in evidence["output"], evidence["output"]
    assert "probed" in evidence["output"]
    assert (card["status"], evidence["exit_code"]) == ("review", 0), evidence
    # In the first level's root, which is thrown away, a write may seem to work.
    assert configurations(product.data) == before
    left = [path for name in LEFT for path in product.data.rglob(name)]
    assert left == []
    assert not processes_with(NAP)
    assert "new.txt" in all_results(api.conversation("Do it"))
    assert not Path("/tmp/pullcord-was-here").exists()  # noqa: S108
    product.post(f"/cards/{card['ref']}/merge")
    card = product.wait_for_card(card["ref"], "done", "failed")
    assert git("show", "main:new.txt", folder=origin) == "made"
    assert "old/a.txt" not in git("ls-tree", "-r", "--name-only", "main", folder=origin)


def test_the_level_is_told(parts: Parts) -> None:
    def told() -> bool:
        with urllib.request.urlopen(f"{parts.product.url}/healthz") as answer:  # noqa: S310  our own
            return bool(json.load(answer)["sandbox"] == [parts.level])

    parts.product.until(told, what=lambda: f"the worker to say {parts.level}")


def test_on_the_second_level_code_outside_the_tests_asks(parts: Parts, tmp_path: Path) -> None:
    level, product, api = parts
    product.project("CODE", make_repository(tmp_path / "origin.git", FILES))
    api.script("Run a tool", [call("bash", command="python3 tool.py"), report("done", "Ran.")])
    ref = product.card("CODE", "Run a tool")["ref"]
    product.queue(ref)
    if level == LANDLOCK:
        question = product.wait_for_question()
        assert question["rule"] == "sandbox"
        product.decide(question["id"])
    card = product.wait_for_card(ref, "review", "failed")
    assert card["status"] == "review", card
    assert product.get(f"/runs/{card['runs'][0]['id']}")["questions"] == (level == LANDLOCK)
    assert "a tool" in all_results(api.conversation("Run a tool"))
