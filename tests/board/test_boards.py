"""The board page: fast, the same shape as the live push expects, and nobody else's business."""

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from board.actions import archiving, cancels, runs
from board.fragments import board_cards
from board.models import Card, Column, Project, Run, User
from board.ranks import rank_between
from board.states import Lane
from board.views import card_acts

pytestmark = pytest.mark.django_db
NewCard = Callable[..., Card]


def of(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


def fill(project: Project, count: int, by: User) -> None:
    """Put many cards into all columns at once."""
    columns = list(Column.objects.filter(project=project))
    ranks: dict[int, str | None] = {}
    rows = []
    for number in range(1, count + 1):
        column = columns[number % len(columns)]
        ranks[column.pk] = rank_between(ranks.get(column.pk), None)
        status = {Lane.RUNNING: "backlog", Lane.MERGING: "review"}.get(
            Lane(column.lane), column.lane
        )
        rows.append(
            Card(
                project=project,
                number=number + 100,
                title=f"Card {number} with a title of the usual length for a card",
                column=column,
                rank=str(ranks[column.pk]),
                status=status,
                checks=["pytest"],
                files=[f"src/{number}.py"],
                created_by=by,
            )
        )
    Card.objects.bulk_create(rows)


def test_the_page_has_the_shape_that_the_live_client_needs(
    client: Client, alice: User, new_card: NewCard, project: Project
) -> None:
    card = new_card("First")
    html = of(client, alice).get("/p/BIL/").content.decode()
    assert f'data-me="{alice.pk}"' in html
    assert 'data-role="owner"' in html
    project.refresh_from_db()
    assert f'data-board data-project="BIL" data-seq="{project.seq}" data-epoch="1"' in html
    assert 'data-socket="/ws/projects/BIL/" data-events="/p/BIL/events/"' in html
    assert f'data-column="{card.column_id}" data-lane="backlog" data-limit=""' in html
    for part in (
        'id="cord"',
        'id="notices"',
        'id="announcer"',
        "data-live",
        f'id="card-{card.pk}"',
    ):
        assert part in html
    assert "style=" not in html
    assert "<script>" not in html


@pytest.mark.usefixtures("running")
def test_a_thousand_cards_are_a_small_page_and_few_queries(
    client: Client, alice: User, project: Project
) -> None:
    fill(project, 1000, alice)
    of(client, alice).get("/p/BIL/")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = client.get("/p/BIL/")
    assert len(queries) <= 12, "\n".join(query["sql"][:120] for query in queries)
    assert len(gzip.compress(answer.content)) <= 60_000


def test_a_long_column_goes_on_by_fragment(client: Client, alice: User, project: Project) -> None:
    fill(project, 600, alice)
    column = Column.objects.filter(project=project, lane=Lane.REVIEW).get()
    html = of(client, alice).get("/p/BIL/").content.decode()
    assert f'data-more="/p/BIL/lanes/{column.pk}/"' in html
    ranks = list(Card.objects.filter(column=column).order_by("rank").values_list("rank", flat=True))
    answer = client.get(f"/p/BIL/lanes/{column.pk}/", {"after": ranks[59]})
    assert answer.content.decode().count("<li ") == 40
    assert f'data-rank="{ranks[60]}"' in answer.content.decode()
    assert answer["X-End"] == ""


def test_a_card_that_leaves_its_column_while_the_page_is_made_does_not_cut_the_column_off(
    client: Client, alice: User, running: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its total counts one more card than the page holds. The next card must be shown all the same."""
    read = board_cards

    def moved_meanwhile(*args: Any, **options: Any) -> Any:
        cancels.request_cancel(running, by=alice)
        runs.end_cancelled(running.pk, running.fence, active_seconds=1.0)
        return read(*args, **options)

    monkeypatch.setattr("board.views.boards.board_cards", moved_meanwhile)
    html = of(client, alice).get("/p/BIL/").content.decode()
    assert "data-end" not in html
    assert "data-more" not in html


def test_a_column_of_another_board_is_not_there(
    client: Client, alice: User, project: Project
) -> None:
    assert of(client, alice).get("/p/BIL/lanes/999999/").status_code == 404


def test_archived_cards_are_listed_with_a_way_back(
    client: Client, alice: User, new_card: NewCard
) -> None:
    card = new_card("Old idea")
    archiving.archive_card(card, by=alice)
    assert "Old idea" not in of(client, alice).get("/p/BIL/").content.decode()
    html = client.get("/p/BIL/archive/").content.decode()
    assert "Old idea" in html
    assert f"/cards/{card.ref}/restore/" in html


def routes(project: Project, run: Run) -> list[tuple[str, str]]:
    column = Column.objects.filter(project=project).first()
    assert column is not None
    ref = run.card.ref
    reads = ["/p/BIL/", f"/p/BIL/lanes/{column.pk}/", "/p/BIL/archive/", "/p/BIL/cards/new/"]
    reads += [f"/cards/{ref}/{tab}" for tab in ("", "run/", "changes/", "history/", "edit/")]
    verbs = ["edit", *card_acts.ACTS]
    writes = ["/p/BIL/cards/new/", *(f"/cards/{ref}/{verb}/" for verb in verbs)]
    return [("get", url) for url in reads] + [("post", url) for url in writes]


def ask(client: Client, method: str, url: str, **more: Any) -> int:
    return int(
        getattr(client, method)(url, headers={"Accept": "application/json"}, **more).status_code
    )


def test_a_stranger_finds_nothing(
    client: Client, mallory: User, project: Project, running: Run
) -> None:
    of(client, mallory)
    for method, url in routes(project, running):
        assert ask(client, method, url) == 404, (method, url)


def test_a_viewer_reads_and_changes_nothing(
    client: Client, vera: User, project: Project, running: Run
) -> None:
    of(client, vera)
    before = list(Card.objects.values())
    for method, url in routes(project, running):
        writes = method == "post" or url.endswith(("/new/", "/edit/"))
        assert ask(client, method, url) == (403 if writes else 200), (method, url)
    assert list(Card.objects.values()) == before


def test_a_page_without_a_worker_or_key_says_so(
    client: Client, alice: User, project: Project
) -> None:
    assert "No model key" in of(client, alice).get("/p/BIL/").content.decode()


def test_a_run_that_ended_shows_its_diff_as_text(client: Client, alice: User, running: Run) -> None:
    runs.finish_run(
        running.pk,
        running.fence,
        head_sha="a" * 40,
        summary="Did it",
        evidence=[],
        changes={
            "files": 1,
            "additions": 1,
            "deletions": 1,
            "diff": [
                {
                    "path": "a<b>.py",
                    "old_path": None,
                    "status": "modified",
                    "binary": False,
                    "additions": 1,
                    "deletions": 1,
                    "truncated": True,
                    "hunks": [
                        {
                            "header": "@@ -1 +1 @@ def f",
                            "lines": [["-", 1, None, "x = <old>"], ["+", None, 1, "x = <new>"]],
                        }
                    ],
                }
            ],
        },
        active_seconds=1.0,
    )
    html = of(client, alice).get(f"/cards/{running.card.ref}/changes/").content.decode()
    assert "a&lt;b&gt;.py" in html
    assert "&lt;<del>old</del>&gt;" in html
    assert "Too long to be shown whole." in html
    assert "Merge into main" in html
