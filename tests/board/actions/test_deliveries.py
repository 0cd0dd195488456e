"""Mails and webhooks about questions: stored with the question, sent at least once, given up in the end."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from board import webhooks
from board.actions import accounts, approvals, deliveries, hooks, notices
from board.models import Approval, Membership, Notice, Project, Run, User, Webhook
from board.states import Role
from board.webhooks import WebhookError

pytestmark = pytest.mark.django_db

Ask = Callable[..., Approval]
URL = "http://127.0.0.1:9/in"  # nobody listens there: nothing is sent unless a test says so


@pytest.fixture
def ask(running: Run) -> Ask:
    def make(command: str = "uv add x", **more: Any) -> Approval:
        question = approvals.Question(
            "call", "bash", {"command": command}, "A2", ["Installs."], "d" * 64, {}, [], "none", **more
        )  # fmt: skip
        made = approvals.request_approval(
            running.pk, running.fence, question, seq=None, active_seconds=0
        )
        return Approval.objects.select_related("run").get(pk=made.pk)

    return make


@pytest.fixture
def hook(project: Project, alice: User) -> Webhook:
    return hooks.set_webhook(project, by=alice, url=URL, allows_private=True)


@pytest.fixture
def posts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, dict[str, str]]]:
    """What goes to the network; a test may put an error in front of it."""
    sent: list[tuple[bytes, dict[str, str]]] = []

    def post(url: str, body: bytes, headers: dict[str, str], *, allows_private: bool) -> None:
        assert (url, allows_private) == (URL, True)
        sent.append((body, headers))

    monkeypatch.setattr(webhooks, "post", post)
    return sent


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def post(*_args: object, **_options: object) -> None:
        raise WebhookError("It answered 500.")

    monkeypatch.setattr(webhooks, "post", post)


def due() -> None:
    """Let the time come for everything that is to be tried again."""
    Notice.objects.update(next_at=timezone.now() - timedelta(seconds=1))


def test_nothing_is_stored_where_nobody_wants_to_be_told(ask: Ask):
    ask()
    assert not Notice.objects.exists()


def test_a_question_is_announced_once_and_signed(hook: Webhook, ask: Ask, posts: list[Any]):
    asked = ask(critical=True)
    assert deliveries.deliver_notices() == 1
    assert deliveries.deliver_notices() == 0
    ((body, headers),) = posts
    told = json.loads(body)
    assert told["id"] == headers["Pullcord-Id"] == str(Notice.objects.get().pk)
    assert (told["event"], told["project"], told["card"]) == ("question.asked", "BIL", "BIL-1")
    assert (told["question"], told["what"], told["critical"]) == (asked.pk, "uv add x", True)
    assert told["url"].endswith(f"/approvals/{asked.pk}/")
    assert headers["Pullcord-Signature"] == webhooks.sign(
        hooks.secret_of(hook), identity=told["id"], timestamp=headers["Pullcord-Timestamp"], body=body
    )  # fmt: skip


def test_a_message_that_is_not_taken_is_tried_again_with_the_same_id(
    hook: Webhook, ask: Ask, posts: list[Any], monkeypatch: pytest.MonkeyPatch
):
    ask()
    with monkeypatch.context() as patch:
        refuse(patch)
        assert deliveries.deliver_notices() == 0
    notice = Notice.objects.get()
    assert (notice.tries, notice.problem, notice.delivered_at) == (1, "It answered 500.", None)
    assert deliveries.deliver_notices() == 0  # not yet
    due()
    assert deliveries.deliver_notices() == 1
    assert posts[0][1]["Pullcord-Id"] == str(notice.pk)
    notice.refresh_from_db()
    assert (notice.tries, notice.problem) == (2, "")


def test_a_message_that_nobody_ever_takes_is_given_up(
    hook: Webhook, ask: Ask, monkeypatch: pytest.MonkeyPatch
):
    refuse(monkeypatch)
    ask()
    for _ in range(20):
        due()
        deliveries.deliver_notices()
    notice = Notice.objects.get()
    assert notice.tries == len(deliveries.PAUSES) + 1
    assert notice.given_up_at is not None


def test_a_try_that_was_lost_with_its_process_is_made_again(
    hook: Webhook, ask: Ask, posts: list[Any], monkeypatch: pytest.MonkeyPatch
):
    ask()

    def killed(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(webhooks, "post", killed)
        with pytest.raises(KeyboardInterrupt):
            deliveries.deliver_notices()
    assert deliveries.deliver_notices() == 0  # another process may still be at it
    due()
    assert deliveries.deliver_notices() == 1


def test_what_was_answered_meanwhile_is_not_told(
    hook: Webhook, ask: Ask, bob: User, posts: list[Any]
):
    asked = ask()
    approvals.decide(asked, by=bob, role=Role.MEMBER, approve=True)
    assert deliveries.deliver_notices() == 0
    assert posts == []
    assert Notice.objects.get().problem == "It was answered before this could be sent."


def test_an_overdue_question_gets_one_reminder(hook: Webhook, ask: Ask, posts: list[Any]):
    ask()
    deliveries.deliver_notices()
    assert notices.remind() == 0
    Approval.objects.update(created_at=timezone.now() - timedelta(minutes=61))
    assert notices.remind() == 1
    assert notices.remind() == 0
    deliveries.deliver_notices()
    assert [json.loads(body)["event"] for body, _ in posts] == [
        "question.asked",
        "question.reminder",
    ]


def test_the_time_until_a_reminder_is_the_projects(ask: Ask):
    ask()
    Approval.objects.update(created_at=timezone.now() - timedelta(minutes=20))
    assert notices.remind() == 0
    Project.objects.update(overdue_minutes=15)
    assert notices.remind() == 1


# Mails.


@pytest.mark.parametrize("change", ["left", "member", "inactive"])
def test_an_address_of_who_may_set_it_no_more_is_told_nothing(
    hook: Webhook, ask: Ask, posts: list[Any], bob: User, change: str
):
    Membership.objects.filter(user=bob).update(role=Role.MAINTAINER)
    Webhook.objects.update(set_by=bob)
    ask()
    match change:
        case "left":
            Membership.objects.filter(user=bob).delete()
        case "member":
            Membership.objects.filter(user=bob).update(role=Role.MEMBER)
        case _:
            User.objects.filter(pk=bob.pk).update(is_active=False)
    deliveries.deliver_notices()
    assert posts == []
    assert "has to save it again" in Notice.objects.get().problem
    owner = hook.project.created_by
    hooks.set_webhook(hook.project, by=owner, url=URL, allows_private=True)
    due()
    deliveries.deliver_notices()
    assert len(posts) == 1


@pytest.fixture
def mails(settings: Any, bob: User) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    accounts.set_notices(bob, mails=True)


def test_who_asked_for_mails_gets_one(mails: None, ask: Ask, bob: User):
    asked = ask()
    assert deliveries.deliver_notices() == 1
    (message,) = mail.outbox
    assert message.to == [bob.email]
    assert message.subject == "agent-1 asks about BIL-1"
    assert "uv add x" in message.body
    assert f"/approvals/{asked.pk}/" in message.body


def test_no_mail_without_a_server(ask: Ask, bob: User):
    accounts.set_notices(bob, mails=True)
    ask()
    assert not Notice.objects.exists()


@pytest.mark.parametrize("change", ["left", "viewer", "no more", "inactive"])
def test_who_has_left_or_wants_no_mails_any_more_gets_none(
    mails: None, ask: Ask, bob: User, change: str
):
    ask()
    match change:
        case "left":
            Membership.objects.filter(user=bob).delete()
        case "viewer":
            Membership.objects.filter(user=bob).update(role=Role.VIEWER)
        case "no more":
            accounts.set_notices(bob, mails=False)
        case _:
            User.objects.filter(pk=bob.pk).update(is_active=False)
    deliveries.deliver_notices()
    assert mail.outbox == []


# What is told.


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x" * 500, "x" * 199 + "…"),
        ("a\u202eb\nc", "a<U+202E>b c"),
        ("curl -H 'Authorization: Bearer abcdef123456' x", "curl -H 'Authorization: Bearer [redacted]' x"),
        ("export KEY=sk-ant-api03-abcdefgh", "export KEY=[redacted]"),
        ("git push https://user:pw@host/x", "git push https://[redacted]@host/x"),
        ("mysql --password=hunter22 db", "mysql --password=[redacted] db"),
        ("git clone ghp_0123456789abcdef", "git clone [redacted]"),
    ],
)  # fmt: skip
def test_an_excerpt_is_short_visible_and_without_secrets(text: str, told: str):
    assert notices.excerpt(text) == told
