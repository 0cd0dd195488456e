"""The rehearsal on real parts, with no credential anywhere."""

import time
from pathlib import Path

import pytest

from tests.product import OWNER, Product, make_repository

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

START = (
    "from board.models import User; from board.actions.rehearsals import start_rehearsal; "
    f"print(start_rehearsal(by=User.objects.get(email='{OWNER}')).key)"
)


def test_the_rehearsal_goes_from_three_cards_to_three_merges(tmp_path: Path) -> None:
    with Product(tmp_path, None) as product:
        key = product.manage("shell", "-v", "0", "-c", START).split()[-1]
        began = time.monotonic()
        refs = [card["ref"] for card in product.get(f"/projects/{key}/cards")]
        assert len(refs) == 3
        product.project("REAL", make_repository(tmp_path / "origin.git"))
        other = product.card("REAL", "Needs a key")["ref"]
        product.queue(other, *refs)
        for ref in refs:
            if ref == refs[1]:
                question = product.wait_for_question()
                assert question["input"] == {"command": "rm -r old_greetings"}
                product.decide(question["id"])
            card = product.wait_for_card(ref, "review", "failed")
            assert card["status"] == "review", (card, product.log_text()[-3000:])
            product.post(f"/cards/{ref}/merge")
            product.wait_for_card(ref, "done")
        seconds = time.monotonic() - began
        # A minute on a machine of its own; the tests share theirs.
        assert seconds < 120, seconds
        assert product.get("/approvals?status=pending") == []
        assert product.status(other) == "queued"  # it has no credential to be done with
