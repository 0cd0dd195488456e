"""Bearer tokens: who they stand for, when they end, how often they may call."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from board.actions.accounts import create_token, revoke_token
from board.api import limits
from board.api.limits import Buckets
from board.models import ApiToken, User

pytestmark = pytest.mark.django_db


def make_token(*arguments):
    out = StringIO()
    call_command("createtoken", *arguments, stdout=out)
    return out.getvalue()


def test_the_first_token_makes_its_person_the_owner():
    printed = make_token("Ann@Example.org")
    user = User.objects.get()
    assert (user.email, user.is_owner, user.has_usable_password()) == (
        "ann@example.org",
        True,
        False,
    )
    assert printed == printed.strip() + "\n"
    assert printed.startswith("pc_")


def test_a_token_is_made_for_somebody_who_is_there(alice, client):
    printed = make_token("ALICE@example.org", "--name", "CI").strip()
    row = ApiToken.objects.get()
    assert (row.user, row.name) == (alice, "CI")
    assert printed not in (row.token_hash, row.prefix)
    answer = client.get("/api/v1/projects", headers={"authorization": f"Bearer {printed}"})
    assert answer.status_code == 200


@pytest.mark.parametrize("email", ["nobody@example.org", "not an address"])
def test_no_token_is_made_for_a_stranger(alice, email):
    with pytest.raises(CommandError, match="Nobody here has the address"):
        make_token(email)
    assert not ApiToken.objects.exists()


def test_the_first_person_needs_a_real_address():
    with pytest.raises(CommandError, match="An e-mail address"):
        make_token("not an address")
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer nonsense", "Token {}", "Basic {}", "{}"]
)
def test_only_a_bearer_token_opens(alice, client, header):
    token = create_token(alice, name="x")
    headers = {} if header is None else {"authorization": header.format(token)}
    answer = client.get("/api/v1/projects", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer["WWW-Authenticate"] == "Bearer"


def test_a_session_of_the_pages_opens_nothing_here(alice, client):
    client.force_login(alice)
    assert client.get("/api/v1/projects").status_code == 401
    assert client.post("/api/v1/projects", {}).status_code == 401


def test_a_revoked_token_and_an_inactive_person_are_refused_at_once(alice, api):
    assert api("GET", "/projects")[0] == 200
    revoke_token(alice, ApiToken.objects.get().pk)
    assert api("GET", "/projects")[0] == 401
    ApiToken.objects.update(revoked_at=None)
    assert api("GET", "/projects")[0] == 200
    User.objects.update(is_active=False)
    assert api("GET", "/projects")[0] == 401


def test_its_last_use_is_noted_once_a_minute(api, django_assert_num_queries):
    api.get("/projects")
    used: Any = ApiToken.objects.get().last_used_at
    assert (timezone.now() - used).total_seconds() < 60
    with django_assert_num_queries(2):  # the token and the projects; nothing is written
        api.get("/projects")
    assert ApiToken.objects.get().last_used_at == used


def test_who_calls_too_often_is_told_when_to_call_again(api, bob, caller, monkeypatch):
    monkeypatch.setattr(limits, "requests", Buckets(per_minute=3, clock=lambda: 0.0))
    assert [api("GET", "/projects")[0] for _ in range(4)] == [200, 200, 200, 429]
    assert api("GET", "/projects")[1]["code"] == "rate_limited"
    assert api.response["Retry-After"] == "20"
    assert caller(bob)("GET", "/projects")[0] == 200


def test_a_bucket_refills_evenly_and_never_holds_more_than_a_minute():
    now = [0.0]
    buckets = Buckets(per_minute=60, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(60)] == [0.0] * 60
    assert buckets.take("a") == pytest.approx(1.0)
    assert buckets.take("b") == 0.0
    now[0] = 0.5
    assert buckets.take("a") == pytest.approx(0.5)
    now[0] = 1.0
    assert buckets.take("a") == 0.0
    now[0] = 10_000.0
    assert [buckets.take("a") for _ in range(61)][-2:] == [0.0, pytest.approx(1.0)]


def test_callers_that_are_long_silent_are_forgotten(monkeypatch):
    monkeypatch.setattr(limits, "MAX_CALLERS", 2)
    buckets = Buckets(per_minute=1, clock=lambda: 0.0)
    assert [buckets.take(name) for name in "abc"] == [0.0] * 3
    assert buckets.take("c") > 0
    assert buckets.take("a") == 0.0  # forgotten, so that memory stays bounded
