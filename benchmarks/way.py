"""How long a person waits: drop -> first line of the agent, approve -> command, finish -> next card.

    python -m benchmarks.way [--repeat 10] [--files 2000] [--turns 30]

The whole product in its own processes, and a stand-in for the model that answers at once.
"""

import argparse
import itertools
import secrets
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.machine import describe, figure
from tests.messages_api import MessagesApi
from tests.messages_script import Turn, call, report, say
from tests.product import Json, Product, make_repository, running_product

FOLDERS = 40
THOUGHT_SECONDS = 0.1  # few models answer sooner


# A new one each time: ext4 places a folder by its name, and the remains of worktrees that were
# called the same a minute ago would slow the new ones down.
KEY = "B" + secrets.token_hex(3).upper()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--turns", type=int, default=30)
    options = parser.parse_args()
    repeat = options.repeat
    describe()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        files = {
            f"src/part{number % FOLDERS}/file{number}.py": f"x = {number}\n" * 20
            for number in range(options.files)
        }
        origin = make_repository(folder / "origin.git", files)
        with running_product(folder) as (product, api):
            product.project(KEY, origin, auto_merge=True)
            drop_to_first_line(product, api, repeat)
            approve_to_command(product, api, repeat)
            finish_to_next(product, api, repeat)
            overhead_per_turn(product, api, repeat, options.turns)


def drop_to_first_line(product: Product, api: MessagesApi, repeat: int) -> None:
    """From the answer to the queue request until the log holds the agent's first words."""
    api.script("First line", [say("I begin."), report("done", "x")], then=report("done", "x"))
    seconds = []
    for _ in range(repeat):
        ref = product.card(KEY, "First line")["ref"]
        started = time.monotonic()
        product.queue(ref)
        wait(partial(has_words, product, ref))
        seconds.append(time.monotonic() - started)
        product.wait_for_card(ref, "done")
    figure("drop -> agent's first line", seconds, goal="p95 <= 1 s")


def has_words(product: Product, ref: str) -> bool:
    """Return whether the agent has said something."""
    runs = product.get(f"/cards/{ref}")["runs"]
    return bool(runs) and any(
        item["kind"] == "text" for item in product.get(f"/runs/{runs[0]['id']}/log?after=0")
    )


def approve_to_command(product: Product, api: MessagesApi, repeat: int) -> None:
    """From the answer to the decision until the command has run, the run rebuilt from 200 steps."""
    steps: list[Turn] = [call("read_file", path="src/part0/file0.py") for _ in range(8)]
    many = [
        say("Reading.").call("list_files", path=f"src/part{number}") for number in range(FOLDERS)
    ]
    seconds = []
    for number in range(repeat):
        title = f"Approve {number}"
        api.script(
            title,
            [
                *steps,
                *many,
                call("bash", command=f"mkdir -p /opt/none/{number}; date +%s.%N > ran"),
                report("done", "x"),
            ],
        )
        ref = product.card(KEY, title)["ref"]
        product.queue(ref)
        question = product.wait_for_question()
        started = time.time()
        product.decide(question["id"])
        card = product.wait_for_card(ref, "review", "done", "failed")
        run = product.get(f"/runs/{card['runs'][0]['id']}")
        asked = next(step for step in run["steps"] if step.get("tool") == "bash")
        seconds.append(max(at(asked["ended_at"]) - started, 0.0))
        product.wait_for_card(ref, "done", "review", "failed")
    figure("approve -> command has run, ~100 steps rebuilt", seconds, goal="p95 <= 300 ms")


def at(text: str) -> float:
    """Return seconds since 1970 of an ISO time."""
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def finish_to_next(product: Product, api: MessagesApi, repeat: int) -> None:
    """From a card's done to the claim of the card that needed it."""
    api.script("Chain", [report("done", "x")], then=report("done", "x"))
    refs: list[str] = []
    for _ in range(repeat + 1):
        refs.append(product.card(KEY, "Chain", depends_on=refs[-1:])["ref"])
    product.queue(*refs)
    product.wait_for_card(refs[-1], "done", seconds=120)
    events: list[Json] = []
    while page := product.get(f"/events?project={KEY}&after={events[-1]['seq'] if events else 0}"):
        events += page
    done = {event["card"]: at(event["at"]) for event in events if event["kind"] == "CardDone"}
    claimed = {event["card"]: at(event["at"]) for event in events if event["kind"] == "CardClaimed"}
    figure(
        "finish -> dependent claimed",
        [claimed[b] - done[a] for a, b in itertools.pairwise(refs)],
        goal="p95 <= 100 ms",
    )


def overhead_per_turn(
    product: Product, api: MessagesApi, repeat: int, number_of_turns: int
) -> None:
    """From a reply of the model to the next request: a trivial shell call, journal and sandbox included.

    While a model thinks, the next command's sandbox is made. Beside one that answers at once it is made in
    the time that is measured.
    """
    for thought in (THOUGHT_SECONDS, 0.0):
        seconds, whole = [], []
        for number in range(max(repeat // 5, 1)):
            starts, ends = turns(
                product, api, f"Overhead {number} {thought}", thought, number_of_turns
            )
            seconds += [begin - end for begin, end in zip(starts[1:], ends, strict=False)]
            whole.append(starts[-1] - starts[0] - thought * number_of_turns)
        model = f"the model thinks for {thought * 1000:.0f} ms"
        figure(
            f"reply received -> next request (bash true), {model}",
            seconds,
            goal="median <= 15 ms, p95 <= 30 ms",
        )
        figure(f"{number_of_turns} such turns, less the thoughts", whole, goal="<= 1.0 s")


def turns(
    product: Product, api: MessagesApi, title: str, thought: float, number: int
) -> tuple[list[float], list[float]]:
    """Do so many shell calls, and return when the model was asked and when it had answered."""
    # The same call again and again would be taken for an agent that turns in circles.
    calls = [call("bash", command=f"true {turn}").after(thought) for turn in range(number)]
    api.script(title, [*calls, report("done", "x").after(thought)])
    ref = product.card(KEY, title)["ref"]
    product.queue(ref)
    product.wait_for_card(ref, "done", "review", "failed", seconds=120)
    run = product.get(f"/cards/{ref}")["runs"][0]["id"]
    steps = [step for step in product.get(f"/runs/{run}")["steps"] if step["kind"] == "model"]
    return [at(step["started_at"]) for step in steps], [at(step["ended_at"]) for step in steps]


def wait(look: Callable[[], bool]) -> None:
    """Look every 50 ms until it is true; each look costs the product's web process some time."""
    deadline = time.monotonic() + 60
    while not look():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


if __name__ == "__main__":
    main()
