"""Every route x every person. A new route fails here until it says who may use it."""

import pytest

from board.actions import cards, projects, runs
from board.actions.approvals import Question, request_approval
from board.api.site import api as ninja
from board.models import Card, Run
from board.states import FailureKind

pytestmark = pytest.mark.django_db

PEOPLE = ("anonymous", "mallory", "vera", "bob", "alice")
EVERYBODY = dict.fromkeys(PEOPLE[1:], 200) | {"anonymous": 401}
READ = EVERYBODY | {"mallory": 404}
CHANGE = READ | {"vera": 403}
NEW_CARD = {"title": "New", "depends_on": ["BIL-1"]}
NEW_POLICY = {"text": "version: 1\ndeny: {commands: [x]}\n", "base": 0}
NEW_PROJECT = {"key": "NEW", "repository": "https://example.org/new.git"}

# (method, path) -> body, what each person gets, and what happened to the card before.
ROUTES = {
    ("GET", "/projects"): (None, EVERYBODY, ""),
    ("POST", "/projects"): (
        NEW_PROJECT,
        dict.fromkeys(EVERYBODY, 201) | {"anonymous": 401},
        "",
    ),
    ("GET", "/projects/{key}"): (None, READ, ""),
    ("GET", "/projects/{key}/reports"): (None, READ, ""),
    ("GET", "/projects/{key}/policy"): (None, READ, ""),
    ("PUT", "/projects/{key}/policy"): (NEW_POLICY, CHANGE | {"bob": 403}, ""),
    ("POST", "/projects/{key}/policy/test"): ({"input": {"command": "ls"}}, READ, ""),
    ("GET", "/projects/{key}/cards"): (None, READ, ""),
    ("POST", "/projects/{key}/cards"): (NEW_CARD, CHANGE | {"bob": 201, "alice": 201}, ""),
    ("GET", "/cards/{ref}"): (None, READ, ""),
    ("PATCH", "/cards/{ref}"): ({"title": "Changed"}, CHANGE, ""),
    ("POST", "/cards/{ref}/queue"): (None, CHANGE, "new"),
    ("POST", "/cards/{ref}/unqueue"): (None, CHANGE, "queued"),
    ("POST", "/cards/{ref}/cancel"): (None, CHANGE, ""),
    ("POST", "/cards/{ref}/retry"): (None, CHANGE, "failed"),
    ("POST", "/cards/{ref}/merge"): (None, CHANGE, "reviewed"),
    ("POST", "/cards/{ref}/archive"): (None, CHANGE, "new"),
    ("POST", "/cards/{ref}/send-back"): ({"comment": "Again"}, CHANGE, "reviewed"),
    ("POST", "/cards/{ref}/move"): ({"column": "Queued"}, CHANGE, "new"),
    ("GET", "/runs/{run_id}"): (None, READ, ""),
    ("GET", "/runs/{run_id}/log"): (None, READ, ""),
    ("GET", "/runs/{run_id}/diff"): (None, READ, ""),
    ("GET", "/approvals"): (None, EVERYBODY, "asking"),
    ("GET", "/approvals/{approval_id}"): (None, READ, "asking"),
    ("POST", "/approvals/{approval_id}/decide"): ({"verdict": "approve"}, CHANGE, "asking"),
    ("GET", "/events"): (None, READ, ""),
}


def routes():
    """Every (method, path) that the API answers."""
    paths = ninja.get_openapi_schema(path_prefix="")["paths"]
    return {(method.upper(), path) for path, methods in paths.items() for method in methods}


def prepare(running, state, *, new_card, alice):
    """Return the ref of a card in the state that the route needs, and the id of a question."""
    match state:
        case "new":
            return new_card("Card").ref, 0
        case "queued":
            card = new_card("Card")
            cards.queue_card(card, by=alice)
            return card.ref, 0
        case "failed":
            runs.fail_run(
                running.pk, running.fence, kind=FailureKind.LOOP, message="x", active_seconds=0
            )
        case "reviewed":
            runs.finish_run(
                running.pk, running.fence,
                head_sha="a" * 40, summary="", evidence=[], changes={}, active_seconds=0,
            )  # fmt: skip
        case "asking":
            question = Question("c", "bash", {"command": "ls"}, "D1", [], "0" * 64, {}, [], "none")
            approval = request_approval(
                running.pk, running.fence, question, seq=None, active_seconds=0
            )
            return running.card.ref, approval.pk
        case _:
            pass
    return running.card.ref, 0


def test_every_route_says_who_may_use_it():
    assert routes() == set(ROUTES)


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_who_may_use(request, running, *, new_card, alice, caller, route, person):
    method, path = route
    body, expected, state = ROUTES[route]
    ref, approval_id = prepare(running, state, new_card=new_card, alice=alice)
    address = path.format(key="BIL", ref=ref, run_id=running.pk, approval_id=approval_id)
    if path == "/events":
        address += "?project=BIL"
    user = None if person == "anonymous" else request.getfixturevalue(person)
    before = (Card.objects.count(), list(Card.objects.values("rev", "status")))
    status, answer = caller(user)(method, address, body)
    assert status == expected[person], answer
    if status >= 400:
        assert set(answer) <= {"code", "message", "fields"}
        assert (Card.objects.count(), list(Card.objects.values("rev", "status"))) == before


@pytest.mark.parametrize("path", ["/projects", "/approvals"])
def test_a_strangers_lists_are_empty(running, new_card, *, alice, mallory, caller, path):
    prepare(running, "asking", new_card=new_card, alice=alice)
    assert caller(mallory).get(path) == []
    assert len(caller(alice).get(path)) == 1


def test_what_is_foreign_answers_in_the_words_of_what_does_not_exist(running, mallory, caller):
    mine = caller(mallory)
    for foreign, missing in (
        ("/projects/BIL", "/projects/NONE"),
        ("/cards/BIL-1", "/cards/NONE-1"),
        (f"/runs/{running.pk}", "/runs/987654"),
        ("/events?project=BIL", "/events?project=NONE"),
        ("/approvals?project=BIL", "/approvals?project=NONE"),
    ):
        assert mine("GET", foreign) == mine("GET", missing)


@pytest.fixture
def foreign(running, mallory):
    """Mallory's own project, whose cards she would like to mix with ours."""
    project = projects.create_project(
        by=mallory, key="EVIL", name="Evil", repository="https://example.org/evil.git"
    )
    return cards.create_card(project, by=mallory, title="Mine", checks=["true"])


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PATCH", "/cards/EVIL-1", {"depends_on": ["BIL-1"]}, "depends_on"),
        ("PATCH", "/cards/EVIL-1", {"depends_on": ["BIL-999"]}, "depends_on"),
        ("POST", "/projects/EVIL/cards", {"title": "x", "depends_on": ["BIL-1"]}, "depends_on"),
        ("POST", "/cards/EVIL-1/move", {"before": "BIL-1"}, "before"),
        ("POST", "/cards/EVIL-1/move", {"column": "Backlog", "after": "BIL-1"}, "after"),
        ("POST", "/cards/EVIL-1/move", {"column": "{foreign}"}, "column"),
    ],
)
def test_ids_in_a_body_belong_to_the_project(
    running, foreign, *, mallory, caller, method, path, body, field
):
    if body.get("column") == "{foreign}":
        body = {"column": running.project.columns.get(lane="queued").pk}
    status, answer = caller(mallory)(method, path, body)
    assert (status, set(answer["fields"])) == (422, {field})
    assert "Running card" not in str(answer)
    foreign.refresh_from_db()
    assert (foreign.unmet, foreign.status) == (0, "backlog")
    assert Card.objects.count() == 2


def test_a_member_who_was_removed_sees_nothing_any_more(running, bob, alice, caller):
    bobs = caller(bob)
    assert bobs("GET", "/projects/BIL")[0] == 200
    projects.remove_member(running.project.memberships.get(user=bob), by=alice)
    assert bobs("GET", "/projects/BIL")[0] == 404
    assert bobs("POST", "/cards/BIL-1/cancel")[0] == 404
    assert Run.objects.get().cancel_requested_at is None


def test_an_archived_project_is_gone_for_its_members_too(running, bob, alice, caller):
    projects.archive_project(running.project, by=alice)
    for path in ("/projects/BIL", "/cards/BIL-1", "/events?project=BIL"):
        assert caller(bob)("GET", path)[0] == 404
