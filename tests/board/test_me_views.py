"""A person's own settings: looks, password, tokens."""

import pytest
from django.test import Client

from board.actions.accounts import use_token
from board.models import ApiToken, User
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def test_the_looks_are_stored_and_shown_on_every_page(as_alice: Client, alice: User):
    assert b"data-theme" not in as_alice.get("/").content
    as_alice.post("/me/appearance/", {"theme": "dark", "density": "compact"})
    page = as_alice.get("/").content.decode()
    assert 'class="compact" data-theme="dark"' in page
    assert '<meta name="color-scheme" content="dark">' in page
    wrong = as_alice.post("/me/appearance/", {"theme": '"><script>', "density": ""})
    assert wrong.status_code == 302
    alice.refresh_from_db()
    assert alice.theme == "dark"


def test_a_new_password_ends_the_other_sessions_and_keeps_this_one(as_alice: Client, alice: User):
    elsewhere = Client()
    elsewhere.force_login(alice)
    new = "another long password"
    answer = as_alice.post("/me/password/", {"current": PASSWORD, "new": new})
    assert answer["Location"] == "/me/"
    assert as_alice.get("/me/").status_code == 200
    assert elsewhere.get("/me/").status_code == 302
    alice.refresh_from_db()
    assert alice.check_password(new)


def test_a_password_is_not_changed_without_the_old_one_or_to_a_weak_one(
    as_alice: Client, alice: User
):
    wrong = as_alice.post("/me/password/", {"current": "no", "new": "another long password"})
    weak = as_alice.post("/me/password/", {"current": PASSWORD, "new": "short"})
    assert wrong.status_code == weak.status_code == 422
    assert list(wrong.context["form"].errors) == ["current"]
    assert list(weak.context["form"].errors) == ["new"]
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


def test_a_token_is_shown_once_and_ends_when_revoked(as_alice: Client, alice: User):
    made = as_alice.post("/me/tokens/", {"name": "ci"})
    token = made.context["token"]
    assert token in made.content.decode()
    assert token not in as_alice.get("/me/").content.decode()
    assert use_token(token) == alice
    row = ApiToken.objects.get()
    as_alice.post(f"/me/tokens/{row.pk}/revoke/")
    assert use_token(token) is None


def test_nobody_revokes_the_token_of_another(as_alice: Client, alice: User, mallory: User):
    as_alice.post("/me/tokens/", {"name": "ci"})
    row = ApiToken.objects.get()
    other = Client()
    other.force_login(mallory)
    other.post(f"/me/tokens/{row.pk}/revoke/")
    row.refresh_from_db()
    assert row.revoked_at is None
    assert row.prefix not in other.get("/me/").content.decode()
