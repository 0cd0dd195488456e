"""Whatever is asked, the answer is JSON with a code and a sentence, and never a traceback."""

import pytest

from board.actions import cards
from board.api.site import api as ninja

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "path",
    ["/", "/nothing", "/projects/", "/projects/BIL/", "/runs/x", "/runs/-1", "/cards/BIL", "/cards/BIL-x",
     "/cards/-1", "/cards/BIL-99999999999", "/runs/99999999999999999999999", "/approvals/1e3",
     "/projects/%00", "/cards/%00-1", "/projects/B%2FL", "/docs"],
)  # fmt: skip
def test_what_is_not_there(api, project, path):
    status, answer = api("GET", path)
    assert (status, answer["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/projects", "GET, POST"),
        ("PUT", "/cards/BIL-1", "GET, PATCH"),
        ("GET", "/approvals/1/decide", "POST"),
        ("GET", "/cards/BIL-1/queue", "POST"),
        ("POST", "/events", "GET"),
    ],
)
def test_a_method_that_an_address_does_not_take(api, method, path, allowed):
    status, answer = api(method, path)
    assert (status, answer["code"], api.response["Allow"]) == (405, "method_not_allowed", allowed)


@pytest.mark.parametrize(
    "raw",
    ["{", "nonsense", '{"title": NaN}', '{"title": "\\ud800"}', '{"title": Infinity}', "[" * 100_000],
    ids=["cut", "words", "NaN", "half a character", "Infinity", "deep"],
)  # fmt: skip
def test_a_body_that_is_no_json(api, project, raw):
    status, answer = api("POST", "/projects/BIL/cards", raw=raw)
    assert (status, answer["code"]) == (400, "bad_request")


@pytest.mark.parametrize("raw", ["", "[]", "null", "5", '"text"'])
def test_a_body_that_is_no_object(api, project, raw):
    status, answer = api("POST", "/projects/BIL/cards", raw=raw)
    assert (status, answer["code"]) == (422, "invalid")


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("/projects/BIL/cards", {}, {"title"}),
        ("/projects/BIL/cards", {"title": "x", "is_admin": True}, {"is_admin"}),
        ("/projects/BIL/cards", {"title": "x", "project": 1}, {"project"}),
        ("/projects/BIL/cards", {"title": "x", "checks": "true"}, {"checks"}),
        ("/projects/BIL/cards", {"title": "x", "checks": [1]}, {"checks.0"}),
        ("/projects/BIL/cards", {"title": "x", "priority": "soon"}, {"priority"}),
        ("/projects/BIL/cards", {"title": "x", "priority": 99}, {"priority"}),
        ("/projects/BIL/cards", {"title": "x", "priority": True}, {"priority"}),
        ("/projects/BIL/cards", {"title": "x", "no_check": "yes"}, {"no_check"}),
        ("/projects/BIL/cards", {"title": ""}, {"title"}),
        ("/projects/BIL/cards", {"title": None}, {"title"}),
        ("/projects/BIL/cards", {"title": "x" * 301}, {"title"}),
        ("/projects/BIL/cards", {"title": "x", "depends_on": ["BIL-7"]}, {"depends_on"}),
        ("/projects/BIL/cards", {"title": "x", "depends_on": ["nonsense"]}, {"depends_on"}),
        ("/projects", {"key": "NEW"}, {"repository"}),
        ("/projects", {"key": "x", "repository": "/nowhere"}, {"key"}),
        ("/projects", {"key": "BIL", "repository": "/nowhere"}, {"key"}),
        ("/projects", {"key": "NEW", "repository": "here"}, {"repository"}),
        ("/projects", {"key": "NEW", "repository": "./here"}, {"repository"}),
        ("/projects", {"key": "NEW", "repository": "../here"}, {"repository"}),
        ("/projects", {"key": "NEW", "repository": "~/here"}, {"repository"}),
        ("/projects", {"key": "NEW", "repository": ""}, {"repository"}),
        ("/projects", {"key": "NEW", "repository": "/x", "max_parallel": 0}, {"max_parallel"}),
        ("/projects", {"key": "NEW", "repository": "/x", "max_parallel": "3"}, {"max_parallel"}),
        ("/projects", {"key": "NEW", "repository": "/x", "target_branch": "x" * 201}, {"target_branch"}),
        ("/projects", {"key": "NEW", "repository": "/x", "is_rehearsal": True}, {"is_rehearsal"}),
        ("/cards/BIL-1/move", {}, {"column"}),
        ("/cards/BIL-1/move", {"column": "Nowhere"}, {"column"}),
        ("/cards/BIL-1/move", {"column": "Queued", "after": "BIL-1"}, {"after"}),
        ("/cards/BIL-1/send-back", {}, {"comment"}),
        ("/cards/BIL-1/queue", None, {"checks"}),
    ],
    ids=str,
)  # fmt: skip
def test_input_is_refused_and_its_field_named(api, new_card, path, body, fields):
    new_card("Card", checks=[])
    status, answer = api("POST", path, body)
    assert (status, answer["code"]) == (422, "invalid")
    assert set(answer["fields"]) == fields
    assert answer["message"]


@pytest.mark.parametrize(
    "query", ["", "project=BIL&after=-1", "project=BIL&after=x", "project=BIL&limit=0",
              "project=BIL&limit=1001", "project=BIL&after=99999999999999999999"],
)  # fmt: skip
def test_a_query_is_refused(api, project, query):
    status, answer = api("GET", f"/events?{query}")
    assert (status, answer["code"]) == (422, "invalid")


def test_an_unknown_order_or_filter_does_nothing(api, new_card):
    new_card("a")
    assert api.get("/projects/BIL/cards?order=created_by__password&created_by__email=x") == api.get(
        "/projects/BIL/cards"
    )


def test_what_the_state_forbids_is_a_conflict(api, running):
    status, answer = api("POST", "/cards/BIL-1/retry")
    assert (status, answer["code"]) == (409, "conflict")
    assert "only a failed card" in answer["message"]


def test_a_body_that_is_too_large(api, project, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    status, answer = api("POST", "/projects/BIL/cards", {"title": "x", "goal": "y" * 2000})
    assert (status, answer["code"]) == (413, "too_large")


@pytest.mark.parametrize("debug", [False, True])
def test_a_fault_of_ours_goes_to_the_log_and_not_to_the_caller(
    api, project, *, settings, monkeypatch, caplog, debug
):
    def fail(*args, **kwargs):
        raise RuntimeError("a secret detail")

    settings.DEBUG = debug
    monkeypatch.setattr(cards, "create_card", fail)
    status, answer = api("POST", "/projects/BIL/cards", {"title": "x"})
    assert (status, answer["code"]) == (500, "internal")
    assert "secret" not in str(answer)
    assert "a secret detail" in caplog.text


def test_the_description_for_programs_lists_every_route(api):
    described = api.get("/openapi.json")
    assert described["info"]["title"] == "Pullcord"
    paths = described["paths"]
    assert set(paths["/api/v1/cards/{ref}"]) == {"get", "patch"}
    assert len(paths) == len(ninja.get_openapi_schema()["paths"])
    for operations in paths.values():
        for operation in operations.values():
            assert operation["security"] == [{"Bearer": []}]
            assert "401" in operation["responses"]
