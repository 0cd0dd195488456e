"""A project's rules for approvals and its webhook: who may change them, what is refused, what is recorded."""

import pytest
from django.test import Client

from board.actions.hooks import secret_of
from board.models import AuditEntry, Event, Membership, Project, User, Webhook
from board.states import Role

pytestmark = pytest.mark.django_db

RULES = {"second_approver": "on", "not_own_card": "on", "overdue_minutes": "30", "expiry_minutes": "90"}  # fmt: skip
PRIVATE = {"url": "http://127.0.0.1:9/hook", "allows_private": "on"}


@pytest.fixture
def as_alice(client: Client, alice: User, project: Project) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def as_bob(client: Client, bob: User, project: Project) -> Client:
    """Bob, as a maintainer who owns nothing of the installation."""
    Membership.objects.filter(user=bob).update(role=Role.MAINTAINER)
    client.force_login(bob)
    return client


def test_a_maintainer_sets_the_rules(as_bob: Client, project: Project):
    answer = as_bob.post("/p/BIL/settings/approvals/", RULES)
    assert answer["Location"] == "/p/BIL/settings/approvals/"
    project.refresh_from_db()
    assert (project.second_approver, project.not_own_card) == (True, True)
    assert (project.overdue_minutes, project.expiry_minutes) == (30, 90)
    assert Event.objects.latest("seq").payload == {"what": "approvals"}
    assert AuditEntry.objects.latest("number").kind == "approval_rules_set"
    as_bob.post("/p/BIL/settings/approvals/", {"overdue_minutes": "60", "expiry_minutes": ""})
    project.refresh_from_db()
    assert (project.second_approver, project.expiry_minutes) == (False, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("overdue_minutes", "0"),
        ("overdue_minutes", ""),
        ("expiry_minutes", "-1"),
        ("expiry_minutes", "600000"),
    ],
)
def test_minutes_that_make_no_sense_are_refused(
    as_bob: Client, project: Project, name: str, value: str
):
    answer = as_bob.post("/p/BIL/settings/approvals/", {**RULES, name: value})
    assert answer.status_code == 422
    assert "minutes" in answer.content.decode()
    project.refresh_from_db()
    assert not project.second_approver


def test_members_and_viewers_only_look(client: Client, project: Project, bob: User, vera: User):
    for who in (bob, vera):
        client.force_login(who)
        assert b"disabled" in client.get("/p/BIL/settings/approvals/").content
        for address in ("approvals", "webhook", "webhook/remove"):
            assert client.post(f"/p/BIL/settings/{address}/", RULES).status_code == 403
    project.refresh_from_db()
    assert not project.second_approver


def test_an_owner_of_the_installation_allows_a_private_address(as_alice: Client, project: Project):
    as_alice.post("/p/BIL/settings/webhook/", PRIVATE)
    hook = Webhook.objects.get()
    assert (hook.url, hook.allows_private) == (PRIVATE["url"], True)
    page = as_alice.get("/p/BIL/settings/approvals/").content.decode()
    assert secret_of(hook) in page
    entry = AuditEntry.objects.latest("number")
    assert entry.kind == "webhook_set"
    assert "/hook" not in entry.data  # an address may hold a token


def test_a_maintainer_cannot_reach_a_private_address(as_bob: Client, project: Project):
    for url in ("http://127.0.0.1/", "https://127.0.0.1/", "https://[::ffff:10.0.0.1]/"):
        answer = as_bob.post("/p/BIL/settings/webhook/", {"url": url, "allows_private": "on"})
        assert answer.status_code == 422, url
    assert not Webhook.objects.exists()


def test_another_address_gets_another_secret_and_loses_what_an_owner_allowed(
    as_alice: Client, bob: User, project: Project
):
    as_alice.post("/p/BIL/settings/webhook/", PRIVATE)
    before = secret_of(Webhook.objects.get())
    as_alice.post("/p/BIL/settings/webhook/", PRIVATE)
    assert secret_of(Webhook.objects.get()) == before
    Membership.objects.filter(user=bob).update(role=Role.MAINTAINER)
    other = Client()
    other.force_login(bob)
    assert other.post("/p/BIL/settings/webhook/", {"url": PRIVATE["url"]}).status_code == 302
    assert Webhook.objects.get().allows_private  # the address that the owner allowed
    refused = other.post("/p/BIL/settings/webhook/", {"url": "http://127.0.0.1:10/"})
    assert refused.status_code == 422
    as_alice.post("/p/BIL/settings/webhook/", {**PRIVATE, "url": "http://127.0.0.1:10/"})
    assert secret_of(Webhook.objects.get()) != before


def test_a_webhook_is_removed(as_alice: Client, project: Project):
    as_alice.post("/p/BIL/settings/webhook/", PRIVATE)
    as_alice.post("/p/BIL/settings/webhook/remove/")
    assert not Webhook.objects.exists()


def test_a_member_does_not_see_the_secret_nor_the_address(
    client: Client, as_alice: Client, project: Project, vera: User
):
    as_alice.post("/p/BIL/settings/webhook/", PRIVATE)
    viewer = Client()
    viewer.force_login(vera)
    page = viewer.get("/p/BIL/settings/approvals/").content.decode()
    assert secret_of(Webhook.objects.get()) not in page
    assert "127.0.0.1:9" not in page


def test_a_person_asks_for_mails_only_where_there_is_a_mail_server(
    as_alice: Client, alice: User, settings
):
    assert "PULLCORD_MAIL_HOST" in as_alice.get("/me/").content.decode()
    settings.EMAIL_HOST = "mail.example.org"
    as_alice.post("/me/notices/", {"mails": "on"})
    alice.refresh_from_db()
    assert alice.mails_questions
    as_alice.post("/me/notices/", {})
    alice.refresh_from_db()
    assert not alice.mails_questions
