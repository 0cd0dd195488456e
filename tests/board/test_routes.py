"""Walks every address: who may open it, that nothing changes without a token, and the safe headers.

A new address fails here until it has a row in ROUTES that says for whom it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import pytest
from django.http import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from board.actions import accounts, approvals, projects
from board.actions.instructions import note_instructions
from board.models import Invitation, Membership, Project, Run, User
from board.states import Role

pytestmark = pytest.mark.django_db


class For(Enum):
    """For whom an address is."""

    ANYONE = "anyone"
    PERSON = "whoever is signed in"
    MEMBER = "the members of the project; for all others it does not exist"
    OWNER = "owners of the installation"


@dataclass(frozen=True)
class Row:
    """One address of the table."""

    whom: For
    methods: str  # GET, POST, PATCH


GET, POST, BOTH = "GET", "POST", "GET POST"
CARD_ACTS = (
    *("queue", "unqueue", "retry", "cancel", "archive", "restore"),
    *("move", "send-back", "merge", "comment"),
)
ROUTES: dict[str, Row] = {
    "": Row(For.PERSON, GET),
    "healthz": Row(For.ANYONE, GET),
    "signin/": Row(For.ANYONE, BOTH),
    "signout/": Row(For.PERSON, POST),
    "setup/<str:token>/": Row(For.ANYONE, BOTH),
    "join/<str:token>/": Row(For.ANYONE, BOTH),
    "welcome/": Row(For.OWNER, GET),
    "rehearsal/": Row(For.PERSON, POST),
    "projects/new/": Row(For.PERSON, BOTH),
    "p/<str:key>/": Row(For.MEMBER, GET),
    "p/<str:key>/cards/new/": Row(For.MEMBER, BOTH),
    "p/<str:key>/lanes/<int:column_id>/": Row(For.MEMBER, GET),
    "p/<str:key>/archive/": Row(For.MEMBER, GET),
    "p/<str:key>/events/": Row(For.MEMBER, GET),
    "policy/": Row(For.OWNER, BOTH),
    "policy/versions/": Row(For.OWNER, GET),
    "p/<str:key>/policy/": Row(For.MEMBER, BOTH),
    "p/<str:key>/policy/versions/": Row(For.MEMBER, GET),
    "cards/<str:ref>/policy/": Row(For.MEMBER, BOTH),
    "cards/<str:ref>/policy/versions/": Row(For.MEMBER, GET),
    "p/<str:key>/settings/": Row(For.MEMBER, BOTH),
    "p/<str:key>/settings/archive/": Row(For.MEMBER, POST),
    "p/<str:key>/settings/approvals/": Row(For.MEMBER, BOTH),
    "p/<str:key>/settings/instructions/": Row(For.MEMBER, GET),
    "p/<str:key>/settings/instructions/<int:instruction_id>/trust/": Row(For.MEMBER, POST),
    "p/<str:key>/settings/instructions/<int:instruction_id>/withdraw/": Row(For.MEMBER, POST),
    "p/<str:key>/settings/webhook/": Row(For.MEMBER, POST),
    "p/<str:key>/settings/webhook/remove/": Row(For.MEMBER, POST),
    "p/<str:key>/reports/": Row(For.MEMBER, GET),
    "me/notices/": Row(For.PERSON, POST),
    "p/<str:key>/columns/": Row(For.MEMBER, POST),
    "p/<str:key>/columns/<int:column_id>/": Row(For.MEMBER, POST),
    "p/<str:key>/fetch/": Row(For.MEMBER, POST),
    "p/<str:key>/local-files/": Row(For.MEMBER, POST),
    "p/<str:key>/network/": Row(For.MEMBER, POST),
    "p/<str:key>/container/": Row(For.MEMBER, POST),
    "p/<str:key>/container/try/": Row(For.MEMBER, POST),
    "p/<str:key>/team/": Row(For.MEMBER, GET),
    "p/<str:key>/team/invite/": Row(For.MEMBER, POST),
    "p/<str:key>/team/<int:membership_id>/role/": Row(For.MEMBER, POST),
    "p/<str:key>/team/<int:membership_id>/remove/": Row(For.MEMBER, POST),
    "p/<str:key>/team/invitations/<int:invitation_id>/withdraw/": Row(For.MEMBER, POST),
    "cards/<str:ref>/": Row(For.MEMBER, GET),
    "cards/<str:ref>/edit/": Row(For.MEMBER, BOTH),
    "cards/<str:ref>/run/": Row(For.MEMBER, GET),
    "cards/<str:ref>/changes/": Row(For.MEMBER, GET),
    "cards/<str:ref>/history/": Row(For.MEMBER, GET),
    **{f"cards/<str:ref>/{act}/": Row(For.MEMBER, POST) for act in CARD_ACTS},
    "approvals/": Row(For.PERSON, GET),
    "approvals/answered/": Row(For.PERSON, GET),
    "approvals/answer/": Row(For.PERSON, POST),
    "approvals/waiting/": Row(For.PERSON, GET),
    "approvals/<int:approval_id>/look/": Row(For.MEMBER, POST),
    "approvals/<int:approval_id>/": Row(For.MEMBER, GET),
    "approvals/<int:approval_id>/decide/": Row(For.MEMBER, POST),
    "workers/": Row(For.PERSON, GET),
    "settings/": Row(For.OWNER, GET),
    "settings/credential/": Row(For.OWNER, POST),
    "settings/credential/remove/": Row(For.OWNER, POST),
    "settings/audit/": Row(For.OWNER, GET),
    "settings/audit/export/": Row(For.OWNER, GET),
    "me/": Row(For.PERSON, GET),
    "me/appearance/": Row(For.PERSON, POST),
    "me/password/": Row(For.PERSON, POST),
    "me/tokens/": Row(For.PERSON, POST),
    "me/tokens/<int:token_id>/revoke/": Row(For.PERSON, POST),
}
API = "api/v1/"
API_ACTS = ("queue", "unqueue", "cancel", "retry", "merge", "archive", "send-back", "move")
API_ROUTES: dict[str, Row] = {
    "openapi.json": Row(For.ANYONE, GET),
    "projects": Row(For.PERSON, BOTH),
    "projects/<key>": Row(For.MEMBER, GET),
    "projects/<key>/reports": Row(For.MEMBER, GET),
    "projects/<key>/policy": Row(For.MEMBER, "GET PUT"),
    "projects/<key>/policy/test": Row(For.MEMBER, POST),
    "projects/<key>/cards": Row(For.MEMBER, BOTH),
    "cards/<ref>": Row(For.MEMBER, "GET PATCH"),
    **{f"cards/<ref>/{act}": Row(For.MEMBER, POST) for act in API_ACTS},
    "runs/<int:run_id>": Row(For.MEMBER, GET),
    "runs/<int:run_id>/log": Row(For.MEMBER, GET),
    "runs/<int:run_id>/diff": Row(For.MEMBER, GET),
    "approvals": Row(For.PERSON, GET),
    "approvals/<int:approval_id>": Row(For.MEMBER, GET),
    "approvals/<int:approval_id>/decide": Row(For.MEMBER, POST),
    "events": Row(For.MEMBER, GET),  # ?project=KEY
    "": Row(For.ANYONE, ""),  # everything else under /api/v1/: 404
}
ALL = {**ROUTES, **{API + route: row for route, row in API_ROUTES.items()}}

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store, private",
}


def routes(resolver: URLResolver | None = None, before: str = "") -> Iterator[str]:
    """Yield the pattern of every address of the product."""
    for pattern in (resolver or get_resolver()).url_patterns:
        if isinstance(pattern, URLPattern):
            yield before + str(pattern.pattern)
        else:
            yield from routes(pattern, before + str(pattern.pattern))


@dataclass
class Walk:
    """The addresses with things of one project in them, whose owner is Alice."""

    values: dict[str, str]

    def path(self, route: str) -> str:
        """Return the address of a route."""
        for name, value in self.values.items():
            route = route.replace(name, value)
        assert "<" not in route, f"say in `walk` what stands for the part in {route}"
        return f"/{route}" + ("?project=BIL" if route == "api/v1/events" else "")

    def each(self, *whom: For) -> Iterator[tuple[str, str, str]]:
        """Yield method, address and route of every page for these people."""
        for route, row in ROUTES.items():
            if row.whom in whom:
                for method in row.methods.split():
                    yield method, self.path(route), route


@pytest.fixture
def walk(project: Project, alice: User, bob: User, running: Run) -> Walk:
    question = approvals.Question(
        call_id="c", tool="bash", input={"command": "x"}, rule="A1", reasons=["Because."],
        digest="d", facts={}, effects=[], sandbox="none",
    )  # fmt: skip
    approval = approvals.request_approval(
        running.pk, running.fence, question, seq=None, active_seconds=0
    )
    projects.invite(project, by=alice, email="x@example.org", role=Role.VIEWER)
    accounts.create_token(alice, name="t")
    column = project.columns.first()
    assert column is not None
    values = {
        "<str:token>": "not-a-token",
        "<int:token_id>": str(alice.api_tokens.get().pk),
        "<int:column_id>": str(column.pk),
        "<int:membership_id>": str(Membership.objects.get(user=bob, project=project).pk),
        "<int:invitation_id>": str(Invitation.objects.get().pk),
        "<int:instruction_id>": str(note_instructions(project.pk, "AGENTS.md", "x").pk),
        "<int:approval_id>": str(approval.pk),
        "<int:run_id>": str(running.pk),
        **dict.fromkeys(["<str:key>", "<key>"], "BIL"),
        **dict.fromkeys(["<str:ref>", "<ref>"], running.card.ref),
    }
    return Walk(values)


def ask(client: Client, method: str, path: str, **headers: str) -> HttpResponseBase:
    """Send a request with the least body that reaches the view's own checks."""
    kind, data = ("application/json", "{}") if path.startswith("/api/") else ("text/plain", "")
    return client.generic(method, path, data, kind, headers=headers)


def test_every_address_has_a_row_and_every_row_an_address():
    assert set(routes()) == set(ALL)


def test_a_stranger_gets_404_for_everything_of_a_project(walk: Walk, mallory: User):
    client = Client()
    client.force_login(mallory)
    found = {
        f"{method} {route}": ask(client, method, path).status_code
        for method, path, route in walk.each(For.MEMBER)
    }
    assert found == dict.fromkeys(found, 404)


def test_a_stranger_cannot_tell_a_project_that_exists_from_one_that_does_not(
    walk: Walk, mallory: User
):
    client = Client()
    client.force_login(mallory)
    for there, not_there in (("/p/BIL/", "/p/NIX/"), ("/cards/BIL-1/", "/cards/NIX-1/")):
        pages = [client.get(path).content.decode() for path in (there, not_there)]
        tokens = ["csrfmiddlewaretoken", "X-CSRFToken"]
        bare = [
            "\n".join(line for line in page.splitlines() if not any(t in line for t in tokens))
            for page in pages
        ]
        assert bare[0].replace("BIL", "NIX") == bare[1]


def test_nobody_sees_a_page_without_signing_in(walk: Walk):
    client = Client()
    for method, path, _ in walk.each(For.PERSON, For.MEMBER, For.OWNER):
        answer = ask(client, method, path)
        assert (answer.status_code, answer.headers["Location"][:14]) == (302, "/signin/?next="), (
            path
        )
        data = ask(client, method, path, Accept="application/json")
        assert data.status_code == 401, path


def test_only_owners_of_the_installation_open_its_settings(walk: Walk, bob: User):
    client = Client()
    client.force_login(bob)
    for method, path, _ in walk.each(For.OWNER):
        assert ask(client, method, path).status_code == 403, path


def test_nothing_changes_without_the_form_token(walk: Walk, alice: User):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    for route in ROUTES:
        for method in ("POST", "PATCH"):
            answer = ask(client, method, walk.path(route))
            assert answer.status_code == 403, f"{method} {route}"
            assert "out of date" in getattr(answer, "content", b"").decode()


def test_nothing_changes_by_looking(walk: Walk, alice: User):
    client = Client()
    client.force_login(alice)
    for route, row in ROUTES.items():
        if row.methods == POST:
            assert client.get(walk.path(route)).status_code == 405, route


def test_the_api_wants_a_token_and_hides_what_is_not_the_persons(
    walk: Walk, alice: User, mallory: User
):
    by_session = Client()
    by_session.force_login(alice)
    token = accounts.create_token(mallory, name="t")
    for route, row in API_ROUTES.items():
        path = walk.path(API + route)
        for method in row.methods.split() if row.whom is not For.ANYONE else ():
            assert ask(by_session, method, path).status_code == 401, path
            wrong = ask(Client(), method, path, Authorization="Bearer pc_wrong")
            assert wrong.status_code == 401, path
            answer = ask(Client(), method, path, Authorization=f"Bearer {token}")
            if row.whom is For.MEMBER:
                assert answer.status_code in {404, 422}, f"{method} {path}"
                assert b"Billing" not in getattr(answer, "content", b"")


def assert_safe(response: HttpResponseBase) -> None:
    policy = dict(
        part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in response["Content-Security-Policy"]
    assert "camera=()" in response["Permissions-Policy"]
    for name, value in HEADERS.items():
        assert response[name] == value, name


def test_every_answer_has_the_safe_headers(walk: Walk, alice: User):
    stranger, member = Client(), Client()
    member.force_login(alice)
    for route in ALL:
        assert_safe(stranger.post(walk.path(route)))
        if not route.endswith("events/"):  # it waits for events; the same middleware answers
            assert_safe(member.get(walk.path(route)))


def test_errors_have_the_safe_headers_and_the_same_looks(client: Client, alice: User, monkeypatch):
    client.force_login(alice)
    client.raise_request_exception = False
    monkeypatch.setattr("board.views.projects.project_rows", lambda user: 1 / 0)
    answers = {
        404: client.get("/nowhere/"),
        405: client.get("/rehearsal/"),
        500: client.get("/"),
        400: client.post("/approvals/1/decide/", headers={"Host": "evil.example"}),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert_safe(answer)
    assert b"css/base.css" in answers[404].content
    assert b"css/base.css" in answers[500].content
    assert b"ZeroDivisionError" not in answers[500].content


def test_a_style_sheet_has_the_safe_headers_too(client: Client):
    response = client.get("/static/css/base.css")
    assert response.status_code == 200
    assert "default-src 'none'" in response["Content-Security-Policy"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert b"@layer" in response.getvalue()
    response.close()
