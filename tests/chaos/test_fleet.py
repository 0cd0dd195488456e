"""C-3, F-43: many workers and many cards give exactly one run a card, and no error in any log."""

import re
from pathlib import Path

import pytest

from tests.messages_script import report
from tests.product import make_repository, running_product

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

WORKERS, SLOTS, CARDS = 8, 4, 200
# Of a worker or the web server: a record of level ERROR or worse, or an exception nobody caught.
TROUBLE = re.compile(r" (ERROR|CRITICAL) |Traceback|[Dd]atabase is locked|deadlock")


def test_eight_workers_make_exactly_one_run_of_each_of_two_hundred_cards(tmp_path: Path) -> None:
    options = {"workers": WORKERS, "slots": SLOTS, "environment": {"PULLCORD_LEASE_SECONDS": "60"}}
    with running_product(tmp_path, **options) as (product, api):
        product.project(
            "MANY", make_repository(tmp_path / "origin.git"), max_parallel=WORKERS * SLOTS
        )
        api.script("One step", [report("done", "Done.")])
        refs = [product.card("MANY", f"One step {number}")["ref"] for number in range(CARDS)]
        product.queue(*refs)

        def are_done() -> bool:
            cards = product.get("/projects/MANY/cards")
            return bool(cards) and all(card["status"] in {"review", "failed"} for card in cards)

        # Two hundred cards are a long answer: asked for all the time, it would be most of the work.
        product.until(are_done, seconds=500, pause=2.0, what=lambda: "all cards")
        cards = product.get("/projects/MANY/cards")
        assert len(cards) == CARDS
        assert {card["status"] for card in cards} == {"review"}
        assert [len(card["runs"]) for card in cards] == [1] * CARDS
        assert {card["runs"][0]["status"] for card in cards} == {"succeeded"}
        trouble = [line for line in product.log_text().splitlines() if TROUBLE.search(line)]
        assert trouble == []
        assert len(api.conversation("One step")) == CARDS
