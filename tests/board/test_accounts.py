"""Signing in and out, the first owner, invitations."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from django.test import Client

from board.actions import accounts, invitations, projects
from board.models import Invitation, Membership, Project, SignInTry, User
from board.states import Role
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db


def sign_in(client: Client, email: str, password: str = PASSWORD, **more: str):
    return client.post("/signin/", {"email": email, "password": password, **more})


def test_a_person_signs_in_with_any_letter_case_and_sees_the_projects(client: Client, alice: User):
    answer = sign_in(client, "ALICE@example.org ")
    assert answer.status_code == 302
    assert answer["Location"] == "/"
    assert b'data-me="' in client.get("/").content


def test_a_wrong_password_and_an_unknown_person_get_the_same_answer(client: Client, alice: User):
    wrong = sign_in(client, "alice@example.org", "not the password")
    unknown = sign_in(client, "nobody@example.org", "not the password")
    assert wrong.status_code == unknown.status_code == 422
    assert wrong.context["error"] == unknown.context["error"]
    assert "does not fit" in wrong.context["error"]


def test_six_wrong_passwords_lock_the_address_even_for_the_right_one(client: Client, alice: User):
    for _ in range(6):
        assert sign_in(client, "alice@example.org", "wrong").status_code == 422
    locked = sign_in(client, "alice@example.org")
    assert locked.status_code == 429
    assert "Wait five minutes" in locked.context["error"]
    for _ in range(6):
        sign_in(client, "nobody@example.org", "wrong")
    assert sign_in(client, "nobody@example.org", "wrong").status_code == 429


def test_the_lock_ends_by_itself_and_is_for_one_address_from_one_place(
    client: Client, alice: User, bob: User
):
    for _ in range(6):
        sign_in(client, "alice@example.org", "wrong")
    assert sign_in(client, "bob@example.org").status_code == 302
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert sign_in(elsewhere, "alice@example.org").status_code == 302
    SignInTry.objects.update(at=Now() - timedelta(minutes=6))
    assert sign_in(Client(), "alice@example.org").status_code == 302


def test_a_right_password_forgets_the_wrong_ones(client: Client, alice: User):
    for _ in range(5):
        sign_in(client, "alice@example.org", "wrong")
    assert sign_in(client, "alice@example.org").status_code == 302
    assert not SignInTry.objects.exists()


def test_a_forwarded_address_counts_only_behind_a_trusted_proxy(
    client: Client, alice: User, settings
):
    for number in range(6):
        client.post(
            "/signin/",
            {"email": "alice@example.org", "password": "wrong"},
            headers={"X-Forwarded-For": f"198.51.100.{number}"},
        )
    assert sign_in(client, "alice@example.org").status_code == 429
    settings.TRUST_PROXY = True
    behind = client.post(
        "/signin/",
        {"email": "alice@example.org", "password": PASSWORD},
        headers={"X-Forwarded-For": "10.0.0.1, 203.0.113.9"},
    )
    assert behind.status_code == 302


@pytest.mark.parametrize(
    "following",
    [
        "//evil.example",
        "/\\evil.example",
        "https:evil.example",
        "https://evil.example/",
        "javascript:1",
    ],
)
def test_signing_in_never_leads_to_another_site(client: Client, alice: User, following: str):
    assert sign_in(client, "alice@example.org", next=following)["Location"] == "/"


def test_signing_in_leads_back_to_the_page_that_was_asked_for(client: Client, alice: User):
    asked = client.get("/approvals/?x=1")
    assert asked["Location"] == "/signin/?next=/approvals/%3Fx%3D1"
    assert b'value="/approvals/?x=1"' in client.get(asked["Location"]).content
    answer = sign_in(client, "alice@example.org", next="/approvals/?x=1")
    assert answer["Location"] == "/approvals/?x=1"


def test_the_session_changes_at_sign_in_and_ends_at_sign_out(client: Client, alice: User):
    sign_in(client, "alice@example.org")
    first = client.session.session_key
    assert client.get("/signout/").status_code == 405
    assert client.post("/signout/")["Location"] == "/signin/"
    assert client.get("/").status_code == 302
    sign_in(client, "alice@example.org")
    assert client.session.session_key != first


def test_an_inactive_person_is_not_let_in(client: Client, alice: User):
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert sign_in(client, "alice@example.org").status_code == 422


def test_the_owner_link_makes_the_first_owner_once(client: Client):
    token = accounts.create_owner_link()
    assert client.get(f"/setup/{token}/").status_code == 200
    short = client.post(f"/setup/{token}/", {"name": "Ann", "email": "a", "password": "short"})
    assert short.status_code == 422
    assert set(short.context["form"].errors) == {"email", "password"}
    person = {"name": "Ann", "email": "ann@example.org", "password": PASSWORD}
    assert client.post(f"/setup/{token}/", person)["Location"] == "/welcome/"
    assert User.objects.get(email="ann@example.org").is_owner
    assert b"Try the rehearsal" in client.get("/welcome/").content
    other = Client()
    assert other.get(f"/setup/{token}/").status_code == 404
    assert other.post(f"/setup/{token}/", person).status_code == 404
    assert client.get("/setup/anything/").status_code == 404


@pytest.fixture
def invite(project: Project, alice: User) -> Callable[[str], str]:
    def make(email: str) -> str:
        token = projects.invite(project, by=alice, email=email, role=Role.MEMBER)
        return f"/join/{token}/"

    return make


def test_an_invitation_makes_a_new_person_a_member_once(
    client: Client, invite: Callable[[str], str], project: Project
):
    link = invite("new@example.org")
    assert b"Billing" in client.get(link).content
    assert client.post(link, {"name": "", "password": PASSWORD}).status_code == 422
    joined = client.post(
        link, {"name": "New", "password": PASSWORD, "email": "evil@example.org", "is_owner": "on"}
    )
    assert joined["Location"] == "/p/BIL/"
    person = User.objects.get(name="New")
    assert person.email == "new@example.org"
    assert not person.is_owner
    assert Membership.objects.get(user=person).role == Role.MEMBER
    assert Client().get(link).status_code == 404


def test_a_person_who_is_signed_in_joins_as_themselves(
    client: Client, invite: Callable[[str], str], mallory: User
):
    link = invite("mallory@example.org")
    client.force_login(mallory)
    assert b"Join as Mallory" in client.get(link).content
    assert not Membership.objects.filter(user=mallory).exists()
    assert client.post(link)["Location"] == "/p/BIL/"
    assert Membership.objects.get(user=mallory).role == Role.MEMBER


def test_a_known_address_must_sign_in_to_join(
    client: Client, invite: Callable[[str], str], mallory: User
):
    link = invite("mallory@example.org")
    answer = client.post(link, {"name": "Mallory", "password": PASSWORD})
    assert answer.status_code == 422
    assert not Membership.objects.filter(user=mallory).exists()
    assert Client().get(link).status_code == 200


def test_an_expired_or_withdrawn_invitation_does_not_exist(
    client: Client, invite: Callable[[str], str], alice: User
):
    link, other = invite("one@example.org"), invite("two@example.org")
    Invitation.objects.filter(email="one@example.org").update(expires_at=Now() - timedelta(1))
    invitations.withdraw_invitation(Invitation.objects.get(email="two@example.org"), by=alice)
    assert client.get(link).status_code == client.get(other).status_code == 404


def test_the_ownerlink_command_prints_a_link_that_works_until_there_is_an_owner(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("ownerlink")
    link = capsys.readouterr().out.strip()
    assert client.get(link.removeprefix(settings.PUBLIC_URL)).status_code == 200
    User.objects.create_user(email="o@example.org", name="O", password=None, is_owner=True)
    with pytest.raises(CommandError, match="owns this installation"):
        call_command("ownerlink")
