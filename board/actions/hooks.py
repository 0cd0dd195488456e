"""A project's webhook: where its questions are announced, and the secret that signs what is sent."""

import hashlib
import hmac
import secrets
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from board import events, webhooks
from board.actions import audit
from board.actions.audit import Act
from board.errors import ValidationError
from board.events import Actor, publish
from board.models import Membership, Project, User, Webhook
from board.states import Role

MAY_SET = (Role.OWNER, Role.MAINTAINER)


def secret_of(hook: Webhook) -> str:
    """Return the secret that signs this webhook's messages. It is stored nowhere."""
    key = b"pullcord.webhooks:" + settings.SECRET_KEY.encode()
    return "whsec_" + hmac.new(key, hook.nonce.encode(), hashlib.sha256).hexdigest()


def check_setter(hook: Webhook) -> None:
    """Raise WebhookError if who set the webhook may not set it any more: nobody stands for its address."""
    may = Membership.objects.filter(
        project_id=hook.project_id, user_id=hook.set_by_id, user__is_active=True, role__in=MAY_SET
    )
    if not may.exists():
        raise webhooks.WebhookError(
            "Who set this address may change settings no more. A maintainer has to save it again."
        )


def set_webhook(project: Project, *, by: User, url: str, allows_private: bool) -> Webhook:
    """Store where the project's questions are announced; another address gets another secret.

    Raises ValidationError for an address that cannot be used. Only an owner of the installation
    changes `allows_private`; from anybody else it keeps its value for the same address.
    """
    address = url.strip()
    before = Webhook.objects.filter(project=project).first()
    is_same = before is not None and before.url == address
    private = allows_private if by.is_owner else is_same and before is not None and before.allows_private  # fmt: skip
    try:
        webhooks.resolve(address, allows_private=private)
    except webhooks.WebhookError as error:
        raise ValidationError(str(error), fields={"url": str(error)}) from error
    nonce = before.nonce if is_same and before is not None else secrets.token_hex(16)
    values = {"url": address, "allows_private": private, "set_by": by, "nonce": nonce}
    actor = Actor.person(by)
    with transaction.atomic():
        hook, _ = Webhook.objects.update_or_create(project=project, defaults=values)
        publish(project.pk, events.ProjectChanged(what="webhook"), by=actor)
        told = {"host": str(urlsplit(address).hostname), "allows_private": private}
        audit.record(Act("webhook_set", actor, project=project, data=told))
    return hook


def remove_webhook(project: Project, *, by: User) -> None:
    """Announce the project's questions nowhere any more."""
    actor = Actor.person(by)
    with transaction.atomic():
        Webhook.objects.filter(project=project).delete()
        publish(project.pk, events.ProjectChanged(what="webhook"), by=actor)
        audit.record(Act("webhook_removed", actor, project=project))
