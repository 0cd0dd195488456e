"""Cards by the API."""

import pytest

from board.actions import cards, runs
from board.models import Card, Column, Comment, Errand
from board.states import CardStatus, FailureKind

pytestmark = pytest.mark.django_db


def finish(running):
    runs.finish_run(
        running.pk, running.fence,
        head_sha="a" * 40, summary="Done.", evidence=[], changes={}, active_seconds=0,
    )  # fmt: skip


def order(lane="backlog"):
    rows = Card.objects.filter(column__lane=lane, archived_at=None).order_by("rank")
    return "".join(rows.values_list("title", flat=True))


def test_a_card_is_added_with_all_it_says(api, new_card):
    new_card("Needed")
    made = api.post(
        "/projects/BIL/cards",
        {
            "title": "Round", "goal": "Use cents.", "files": ["a.py"], "constraints": "No floats.",
            "checks": ["make test"], "depends_on": ["bil-1", "BIL-1"], "priority": "high",
        },
    )  # fmt: skip
    assert api.response.status_code == 201
    assert {name: made[name] for name in ("ref", "number", "status", "column", "lane")} == {
        "ref": "BIL-2", "number": 2, "status": "backlog", "column": "Backlog", "lane": "backlog",
    }  # fmt: skip
    assert (made["depends_on"], made["blocked_by"], made["unmet"]) == (["BIL-1"], ["BIL-1"], 1)
    assert (made["priority"], made["files"], made["checks"]) == (2, ["a.py"], ["make test"])
    assert (made["failure"], made["runs"], made["archived"]) == (None, [], False)
    assert made == api.get("/cards/BIL-2")


@pytest.mark.parametrize(
    ("given", "stored"),
    [("low", 0), ("normal", 1), ("Medium", 1), ("HIGH", 2), ("urgent", 3), (0, 0), (9, 9)],
)
def test_a_priority_is_a_word_or_a_number(api, project, given, stored):
    assert api.post("/projects/BIL/cards", {"title": "x", "priority": given})["priority"] == stored


def test_only_the_fields_that_are_sent_change(api, new_card):
    new_card("Old", goal="Goal", priority=3)
    status, edited = api("PATCH", "/cards/BIL-1", {"title": "New", "no_check": True})
    assert status == 200
    assert (edited["title"], edited["goal"], edited["priority"]) == ("New", "Goal", 3)
    assert edited["no_check"] is True


def test_what_a_card_needs_changes_with_its_text_or_not_at_all(api, new_card):
    for title in "abc":
        new_card(title)
    edited = api("PATCH", "/cards/BIL-3", {"title": "C", "depends_on": ["BIL-1", "BIL-2"]})[1]
    assert (edited["title"], edited["depends_on"], edited["unmet"]) == ("C", ["BIL-1", "BIL-2"], 2)
    status, answer = api("PATCH", "/cards/BIL-1", {"title": "A", "depends_on": ["BIL-3"]})
    assert (status, set(answer["fields"])) == (422, {"depends_on"})
    assert "BIL-1 → BIL-3 → BIL-1" in answer["message"]
    status, answer = api("PATCH", "/cards/BIL-3", {"title": "", "depends_on": []})
    assert (status, set(answer["fields"])) == (422, {"title"})
    after = api.get("/cards/BIL-3")
    assert (after["title"], after["unmet"]) == ("C", 2)
    assert api.get("/cards/BIL-1")["title"] == "a"


def test_a_card_without_a_check_is_made_but_not_queued(api, project):
    api.post("/projects/BIL/cards", {"title": "x", "checks": []})
    status, answer = api("POST", "/cards/BIL-1/queue")
    assert (status, set(answer["fields"])) == (422, {"checks"})
    api("PATCH", "/cards/BIL-1", {"no_check": True})
    assert api.post("/cards/BIL-1/queue")["status"] == "queued"
    assert api.post("/cards/BIL-1/unqueue", {})["status"] == "backlog"


def test_the_way_of_a_card_through_review_and_merge(api, running):
    shown = api.get("/cards/BIL-1")
    assert (shown["status"], shown["attempts"]) == ("running", 1)
    (attempt,) = shown["runs"]
    assert (attempt["id"], attempt["attempt"], attempt["status"]) == (running.pk, 1, "running")
    assert (attempt["waiting_for"], attempt["failure_kind"], attempt["ended_at"]) == ("", "", None)
    finish(running)
    sent = api.post("/cards/BIL-1/send-back", {"comment": "Use cents."})
    assert (sent["status"], Comment.objects.get().body) == ("queued", "Use cents.")
    Card.objects.update(status="review", column=Column.objects.get(lane="review"))
    status, answer = api("POST", "/cards/BIL-1/merge")
    assert (status, answer["status"]) == (200, "merging")
    assert Errand.objects.filter(kind="merge", card=running.card).exists()


def test_a_failed_card_says_why_and_is_retried(api, running):
    runs.fail_run(
        running.pk,
        running.fence,
        kind=FailureKind.VERIFICATION,
        message="make: exit 2",
        active_seconds=0,
    )
    failed = api.get("/cards/BIL-1")
    assert failed["failure"] == {"kind": "verification", "message": "make: exit 2"}
    assert failed["runs"][0]["failure_kind"] == "verification"
    retried = api.post("/cards/BIL-1/retry")
    assert (retried["status"], retried["failure"]) == ("queued", None)


def test_a_running_card_is_told_to_stop(api, running):
    assert api.post("/cards/BIL-1/cancel")["status"] == "running"
    runs.end_cancelled(running.pk, running.fence, active_seconds=0)
    assert api.get("/cards/BIL-1")["status"] == "cancelled"


def test_an_archived_card_is_listed_only_when_asked_for(api, new_card):
    new_card("a")
    new_card("b")
    assert api.post("/cards/BIL-1/archive")["archived"] is True
    assert [card["ref"] for card in api.get("/projects/BIL/cards")] == ["BIL-2"]
    every = api.get("/projects/BIL/cards?archived=true")
    assert [card["ref"] for card in every] == ["BIL-1", "BIL-2"]
    assert len(api.get("/projects/BIL/cards?archived=true&limit=1")) == 1
    assert api("GET", f"/projects/BIL/cards?limit={2**63}")[0] == 422
    assert api.get("/projects/BIL/cards?status=queued") == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"before": "BIL-1"}, "cab"),
        ({"after": "BIL-1"}, "acb"),
        ({"after": "BIL-1", "before": "BIL-2"}, "acb"),
        ({"column": "Backlog"}, "abc"),
        ({"column": "backlog", "before": "bil-2"}, "acb"),
    ],
)
def test_a_card_is_moved_between_others(api, new_card, body, expected):
    for title in "abc":
        new_card(title)
    api.post("/cards/BIL-3/move", body)
    assert order() == expected


@pytest.mark.parametrize("how", ["name", "lane", "id", "text"])
def test_a_column_is_named_in_several_ways(api, new_card, how):
    column = Column.objects.get(project=new_card("a").project, lane="queued")
    column.name = "Ready to go"
    column.save()
    names = {"name": "READY to GO", "lane": "queued", "id": column.pk, "text": str(column.pk)}
    moved = api.post("/cards/BIL-1/move", {"column": names[how]})
    assert (moved["status"], moved["column"], moved["lane"]) == ("queued", "Ready to go", "queued")


def test_a_move_that_a_lane_does_not_take_is_refused_with_the_reason(api, running):
    status, answer = api("POST", "/cards/BIL-1/move", {"column": "Done"})
    assert (status, answer["code"]) == (409, "conflict")
    assert "cancel it first" in answer["message"]


def test_a_list_of_cards_takes_a_constant_number_of_queries(
    api, running, new_card, alice, django_assert_num_queries
):
    def fill(count):
        first = new_card("first")
        for number in range(count):
            card = new_card(f"card {number}", depends_on=[first])
            for attempt in (1, 2):
                card.runs.create(project=card.project, attempt=attempt, status="failed")

    fill(2)
    api.get("/projects/BIL/cards")
    with django_assert_num_queries(6):
        few = api.get("/projects/BIL/cards")
    fill(10)
    with django_assert_num_queries(6):
        many = api.get("/projects/BIL/cards")
    assert (len(few), len(many)) == (4, 15)
    assert [run["attempt"] for run in many[-1]["runs"]] == [1, 2]


def test_one_card_takes_a_constant_number_of_queries(
    api, new_card, alice, django_assert_max_num_queries
):
    needs = [new_card(f"need {number}") for number in range(10)]
    card = new_card("card", depends_on=needs)
    api.get(f"/cards/{card.ref}")
    with django_assert_max_num_queries(7):
        assert len(api.get(f"/cards/{card.ref}")["blocked_by"]) == 10
    cards.finish_by_hand(needs[0], by=alice, to=CardStatus.DONE)
    assert len(api.get(f"/cards/{card.ref}")["blocked_by"]) == 9
