"""Invitations: finding one by its secret, joining by it, taking it back."""

from django.db import transaction
from django.db.models.functions import Now

from board import events
from board.actions import audit
from board.actions.accounts import create_user
from board.actions.audit import Act
from board.actions.projects import accept_invitation
from board.actions.tokens import hash_token
from board.events import Actor, publish
from board.models import Invitation, Project, User


def find_invitation(token: str) -> Invitation | None:
    """Return the invitation with this secret, or None when it is wrong, used, or has expired."""
    return (
        Invitation.objects.select_related("project", "invited_by")
        .filter(
            token_hash=hash_token(token),
            used_at__isnull=True,
            expires_at__gt=Now(),
            project__archived_at__isnull=True,
        )
        .first()
    )


def list_invitations(project: Project) -> list[Invitation]:
    """Return the invitations that still work, newest first."""
    return list(
        Invitation.objects.select_related("invited_by")
        .filter(project=project, used_at__isnull=True, expires_at__gt=Now())
        .order_by("-id")
    )


def join_as_new_person(invitation: Invitation, *, name: str, password: str) -> User:
    """Make the invited person and the membership together, or neither."""
    with transaction.atomic():
        user = create_user(email=invitation.email, name=name, password=password)
        accept_invitation(invitation, user=user)
    return user


def withdraw_invitation(invitation: Invitation, *, by: User) -> None:
    """Make an invitation worthless."""
    with transaction.atomic():
        Invitation.objects.filter(pk=invitation.pk).delete()
        publish(
            invitation.project_id, events.ProjectChanged(what="invitations"), by=Actor.person(by)
        )
        data = {"email": invitation.email, "role": invitation.role}
        audit.record(
            Act("invitation_withdrawn", Actor.person(by), project=invitation.project, data=data)
        )
