"""People and their keys: the first owner, tokens, looks, the model's credential."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from board.actions import accounts, credentials
from board.errors import NotAllowedError, ValidationError
from board.models import ApiToken, Credential, OwnerLink, User
from tests.races import at_once

pytestmark = pytest.mark.django_db
PERSON = {"email": "Ann@Example.org", "name": "Ann", "password": "a long enough password"}


def owner_link() -> Any:
    return accounts.create_owner_link()


def test_the_newest_owner_link_works_once(db):
    old, new = owner_link(), owner_link()
    assert accounts.find_owner_link(old) is None
    assert new not in OwnerLink.objects.get().token_hash
    owner = accounts.claim_ownership(new, **PERSON)
    assert (owner.email, owner.is_owner) == ("ann@example.org", True)
    assert accounts.create_owner_link() is None
    with pytest.raises(NotAllowedError, match="used already"):
        accounts.claim_ownership(new, **PERSON | {"email": "b@example.org"})


def test_a_refused_owner_has_not_used_the_link(db):
    token = owner_link()
    with pytest.raises(ValidationError) as caught:
        accounts.claim_ownership(token, email="no", name=" ", password="short")
    assert set(caught.value.fields) == {"email", "name", "password"}
    assert accounts.claim_ownership(token, **PERSON).is_owner


@pytest.mark.django_db(transaction=True)
def test_of_two_people_with_the_link_one_is_the_owner():
    token = owner_link()
    answers = at_once(
        *[
            lambda email=email: accounts.claim_ownership(token, **PERSON | {"email": email})
            for email in ("a@example.org", "b@example.org")
        ]
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["NotAllowedError", "User"]
    assert User.objects.count() == 1


def test_an_address_belongs_to_one_person_in_any_letter_case(alice):
    with pytest.raises(ValidationError) as caught:
        accounts.create_user(email="ALICE@example.org", name="A", password=None)
    assert set(caught.value.fields) == {"email"}


def test_a_token_opens_until_it_is_revoked(alice, bob):
    token = accounts.create_token(alice, name=" CI ")
    row = ApiToken.objects.get()
    assert (row.name, token.startswith(row.prefix), len(token) > 43) == ("CI", True, True)
    assert accounts.use_token(token) == alice
    assert accounts.use_token(token + "x") is None
    accounts.revoke_token(bob, row.pk)
    assert accounts.use_token(token) == alice
    accounts.revoke_token(alice, row.pk)
    assert accounts.use_token(token) is None


def test_the_last_use_of_a_token_is_kept_to_the_minute(alice):
    token = accounts.create_token(alice, name="CI")
    accounts.use_token(token)
    first: Any = ApiToken.objects.get().last_used_at
    accounts.use_token(token)
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=Now() - timedelta(minutes=2))
    accounts.use_token(token)
    last: Any = ApiToken.objects.get().last_used_at
    assert last >= first


def test_looks_are_the_offered_ones(alice):
    accounts.set_appearance(alice, theme="dark", density="compact")
    alice.refresh_from_db()
    assert (alice.theme, alice.density) == ("dark", "compact")
    with pytest.raises(ValidationError):
        accounts.set_appearance(alice, theme="pink", density="")


def test_the_credential_is_stored_encrypted_and_one_replaces_another(alice, settings):
    assert credentials.model_access() is None
    for key in ("sk-ant-first-key", "sk-ant-second-key"):
        credentials.set_credential(by=alice, api_key=f" {key} ", base_url="https://m.example/")
    access: Any = credentials.model_access()
    assert (access.api_key, access.base_url, access.source) == (
        "sk-ant-second-key", "https://m.example", "database",
    )  # fmt: skip
    assert "second" not in repr(access)
    assert b"second" not in bytes(Credential.objects.get().secret)
    settings.SECRET_KEY = "another key"
    assert credentials.model_access() is None
    settings.ANTHROPIC_API_KEY = "sk-from-environment"
    access = credentials.model_access()
    assert access.source == "environment"
    credentials.remove_credential(by=alice)
    assert not Credential.objects.exists()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"api_key": "short"}, "api_key"),
        ({"api_key": "two words here"}, "api_key"),
        ({"base_url": "ftp://x"}, "base_url"),
        ({"header": "cookie"}, "header"),
    ],
)
def test_a_credential_is_refused_for(alice, values, field):
    with pytest.raises(ValidationError) as caught:
        credentials.set_credential(by=alice, **{"api_key": "sk-ant-some-key", **values})
    assert set(caught.value.fields) == {field}
