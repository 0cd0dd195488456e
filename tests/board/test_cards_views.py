"""Cards as people handle them: forms that lose nothing, clicks that answer, conflicts that show both texts."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from board.actions import cards, logs
from board.models import Card, Column, Comment, Project, Run, User
from board.states import CardStatus, Lane

pytestmark = pytest.mark.django_db
NewCard = Callable[..., Card]
JSON = {"Accept": "application/json"}


@pytest.fixture
def signed_in(client: Client, bob: User, project: Project) -> Client:
    client.force_login(bob)
    return client


def send(client: Client, url: str, **data: Any) -> Any:
    return client.post(url, data, headers=JSON)


def column(lane: Lane) -> Column:
    return Column.objects.get(lane=lane)


FORM = {
    "title": "Export as CSV",
    "goal": "One month per file",
    "files": "src/export/\n\ntests/\n",
    "constraints": "No new dependency",
    "checks": "pytest tests/export\nmypy src",
    "priority": "2",
}


def test_a_card_is_made_from_its_form(signed_in: Client, new_card: NewCard) -> None:
    first = new_card("First")
    answer = send(signed_in, "/p/BIL/cards/new/", **FORM, depends_on="bil-1")
    assert answer.status_code == 201
    card = Card.objects.get(title="Export as CSV")
    assert answer.json() == {"ok": True, "ref": "BIL-2", "url": "/cards/BIL-2/"}
    assert card.files == ["src/export/", "tests/"]
    assert card.checks == ["pytest tests/export", "mypy src"]
    assert (card.priority, card.unmet) == (2, 1)
    assert [link.needs for link in card.dependencies.all()] == [first]


def test_a_card_may_be_queued_at_once(signed_in: Client) -> None:
    send(signed_in, "/p/BIL/cards/new/", **FORM, then="queue")
    assert Card.objects.get().status == CardStatus.QUEUED


def test_a_card_that_cannot_be_queued_is_not_made_either(signed_in: Client) -> None:
    answer = send(signed_in, "/p/BIL/cards/new/", **{**FORM, "checks": ""}, then="queue")
    assert answer.status_code == 422
    assert "checks" in answer.json()["fields"]
    assert not Card.objects.exists()


def test_without_scripts_the_form_comes_back_as_it_was_sent(signed_in: Client) -> None:
    answer = signed_in.post("/p/BIL/cards/new/", {**FORM, "title": " ", "depends_on": "BIL-99"})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert "There is no card BIL-99 here." in html
    assert "One month per file" in html
    assert "data-board" in html


def test_a_circle_is_refused_with_its_path(signed_in: Client, new_card: NewCard) -> None:
    first = new_card("First")
    new_card("Second", depends_on=[first])
    answer = send(signed_in, "/cards/BIL-1/edit/", **FORM, rev=first.rev, depends_on="BIL-2")
    assert answer.status_code == 422
    assert "BIL-1 → BIL-2 → BIL-1" in answer.json()["fields"]["depends_on"]
    first.refresh_from_db()
    assert first.title == "First"


def test_an_edit_is_saved(signed_in: Client, new_card: NewCard) -> None:
    card = new_card("First")
    answer = send(signed_in, "/cards/BIL-1/edit/", **FORM, no_check="1", rev=card.rev)
    assert answer.json()["ok"]
    card.refresh_from_db()
    assert card.title == "Export as CSV"
    assert card.no_check


def test_two_people_who_edit_see_both_texts(
    signed_in: Client, new_card: NewCard, alice: User
) -> None:
    card = new_card("First")
    seen = card.rev
    cards.edit_card(card, by=alice, title="Alice's title")
    answer = send(signed_in, "/cards/BIL-1/edit/", **FORM, rev=seen)
    assert answer.status_code == 409
    assert answer.json()["theirs"]["title"] == "Alice's title"
    page = signed_in.post("/cards/BIL-1/edit/", {**FORM, "rev": seen}).content.decode()
    assert "Alice&#x27;s title" in page
    assert "Export as CSV" in page
    card.refresh_from_db()
    assert card.title == "Alice's title"
    again = send(signed_in, "/cards/BIL-1/edit/", **FORM, rev=answer.json()["theirs"]["rev"])
    assert again.status_code == 200


def test_a_move_answers_with_the_new_place(signed_in: Client, new_card: NewCard) -> None:
    first, second = new_card("First"), new_card("Second")
    answer = send(signed_in, "/cards/BIL-2/move/", column=first.column_id, below="BIL-1", op_id="a")
    body = answer.json()
    second.refresh_from_db()
    assert body["ok"]
    assert body["rank"] == second.rank < first.rank
    assert body["seq"] == Project.objects.get().seq


def test_the_same_act_sent_twice_happens_once(signed_in: Client, new_card: NewCard) -> None:
    card = new_card("First")
    for _ in range(2):
        answer = send(signed_in, "/cards/BIL-1/comment/", body="Hello", op_id="one")
        assert answer.status_code == 200
    assert card.comments.count() == 1


def test_a_drop_on_queued_queues(signed_in: Client, new_card: NewCard) -> None:
    new_card("First")
    send(signed_in, "/cards/BIL-1/move/", column=column(Lane.QUEUED).pk)
    assert Card.objects.get().status == CardStatus.QUEUED


def test_a_forbidden_drop_says_why(signed_in: Client, new_card: NewCard) -> None:
    new_card("First")
    answer = send(signed_in, "/cards/BIL-1/move/", column=column(Lane.RUNNING).pk)
    assert answer.status_code == 409
    assert "A worker takes cards from Queued" in answer.json()["message"]


def test_a_drop_into_nowhere_is_refused(signed_in: Client, new_card: NewCard) -> None:
    new_card("First")
    for nowhere in ("", "x", "99999"):
        assert send(signed_in, "/cards/BIL-1/move/", column=nowhere).status_code == 422


def test_a_neighbour_that_has_gone_is_passed_over(signed_in: Client, new_card: NewCard) -> None:
    card = new_card("First")
    answer = send(
        signed_in, "/cards/BIL-1/move/", column=card.column_id, above="BIL-77", below="nonsense"
    )
    assert answer.status_code == 200


def test_archive_and_restore(signed_in: Client, new_card: NewCard) -> None:
    card = new_card("First")
    send(signed_in, "/cards/BIL-1/archive/")
    card.refresh_from_db()
    assert card.archived_at is not None
    send(signed_in, "/cards/BIL-1/restore/")
    card.refresh_from_db()
    assert card.archived_at is None


def test_a_cancelled_card_goes_back_to_the_backlog(signed_in: Client, new_card: NewCard) -> None:
    new_card("First")
    send(signed_in, "/cards/BIL-1/cancel/")
    assert Card.objects.get().status == CardStatus.CANCELLED
    send(signed_in, "/cards/BIL-1/restore/")
    assert Card.objects.get().status == CardStatus.BACKLOG


def test_a_word_to_the_agent_is_stored_as_such(signed_in: Client, running: Run) -> None:
    send(signed_in, f"/cards/{running.card.ref}/comment/", body="Use the locale", steer="1")
    comment = Comment.objects.get()
    assert (comment.kind, comment.run) == ("steer", running)


def test_an_act_without_scripts_leads_back_to_the_card(
    signed_in: Client, new_card: NewCard
) -> None:
    new_card("First")
    answer = signed_in.post("/cards/BIL-1/queue/")
    assert answer.status_code == 302
    assert answer["Location"] == "/cards/BIL-1/"


def test_the_drawer_alone_is_what_our_script_gets(signed_in: Client, new_card: NewCard) -> None:
    new_card("First", goal="Because")
    alone = signed_in.get("/cards/BIL-1/", headers={"X-Drawer": "1"}).content.decode()
    assert alone.lstrip().startswith("<aside")
    assert "Because" in alone
    whole = signed_in.get("/cards/BIL-1/").content.decode()
    assert "data-board" in whole
    assert "Because" in whole


def test_the_run_tab_shows_the_log_and_its_end(signed_in: Client, running: Run) -> None:
    logs.append_log(running.pk, [("turn", {}), ("text", {"text": "Hello"})])
    html = signed_in.get(f"/cards/{running.card.ref}/run/").content.decode()
    assert "Hello" in html
    assert f'data-log data-run="{running.pk}" data-first="1" data-off="2"' in html
    assert "Steer agent-1" in html


def test_a_long_log_begins_near_its_end(signed_in: Client, running: Run) -> None:
    logs.append_log(
        running.pk,
        [item for n in range(300) for item in (("turn", {}), ("text", {"text": f"Turn {n}."}))],
    )
    html = signed_in.get(f"/cards/{running.card.ref}/run/").content.decode()
    assert "Turn 299." in html
    assert "Turn 1." not in html
    assert "data-log-earlier>" in html


def test_an_attempt_is_chosen_by_number(signed_in: Client, running: Run) -> None:
    url = f"/cards/{running.card.ref}/run/"
    for wanted in ("1", "7", "x"):
        assert "Attempt 1" in signed_in.get(url, {"attempt": wanted}).content.decode()


def test_the_history_is_told_in_sentences(signed_in: Client, running: Run, alice: User) -> None:
    html = signed_in.get(f"/cards/{running.card.ref}/history/").content.decode()
    assert "began attempt 1" in html
    assert "queued it for attempt 1" in html
    assert html.index("began attempt 1") < html.index("made this card")


def test_a_card_that_has_not_run_says_so(signed_in: Client, new_card: NewCard) -> None:
    new_card("First")
    assert "No attempt yet" in signed_in.get("/cards/BIL-1/run/").content.decode()
    assert "No changes to show" in signed_in.get("/cards/BIL-1/changes/").content.decode()


def test_the_review_overlooks_nothing_that_a_diff_leaves_out(
    signed_in: Client, running: Run
) -> None:
    def file(path: str, **more: Any) -> dict[str, Any]:
        modes = {"old_mode": "100644", "new_mode": "100644", "status": "M"}
        fixed = {"additions": 1, "deletions": 0, "hunks": []}
        return {"path": path, "old_path": path, **fixed, **modes, **more}

    lines = [["+", None, number, f"line {number}"] for number in range(1, 5_001)]
    diff = [
        file("run.sh", new_mode="100755"),
        file("was.sh", old_mode="100755"),
        file("data", old_mode="000000", new_mode="120000", status="A"),
        file("vendor", new_mode="160000"),
        file("gone.py", new_mode="000000", status="D"),
        file("a\u202efdp.exe", status="A", old_mode="000000"),
        file("long.py", hunks=[{"header": "", "lines": lines}]),
    ]
    Run.objects.filter(pk=running.pk).update(
        changes={"files": 9, "additions": 9, "deletions": 0, "omitted_files": 2, "diff": diff}
    )
    html = signed_in.get(f"/cards/{running.card.ref}/changes/").content.decode()
    marks = (
        "executable",
        "no longer executable",
        "a link",
        "a repository within",
        "deleted",
        "new",
    )
    for badge in marks:
        assert f'<span class="badge">{badge}</span>' in html, badge
    assert "2 more files</strong> changed and are not shown here" in html
    assert "&lt;U+202E&gt;" in html
    assert "line 4000<" in html
    assert "line 4001<" not in html
    assert html.count("Too long to be shown whole.") == 1


def test_the_review_shows_first_what_the_policy_objects_to(signed_in: Client, running: Run) -> None:
    file = {"path": "up.sh", "old_path": "up.sh", "status": "A", "additions": 1, "hunks": []}
    findings = [
        {"path": "up.sh", "rule": "C1", "reason": "Brings <code>", "line": 2},
        {"path": "not/shown.yml", "rule": "A5", "reason": "Changes a protected file", "line": 0},
    ]
    address = f"/cards/{running.card.ref}/changes/"
    Run.objects.filter(pk=running.pk).update(changes={"files": 1, "diff": [file]})
    assert "Look here first" not in signed_in.get(address).content.decode()
    Run.objects.filter(pk=running.pk).update(
        changes={"files": 1, "diff": [file], "findings": findings}
    )
    html = signed_in.get(address).content.decode()
    assert "Look here first" in html
    assert "2 places" in html
    assert '<a class="link" href="#file-0"><code>up.sh:2</code></a>' in html
    assert "<code>not/shown.yml</code>" in html
    assert "Brings &lt;code&gt; (C1)." in html
