"""Who may approve what, and what an edit may change: the rules that an answer is checked against."""

from collections.abc import Mapping
from typing import Any

from django.db.models.functions import Now

from board import events
from board.actions.audit_of_runs import record_answer
from board.actions.texts import clean
from board.errors import (
    AlreadyDecidedError,
    NotAllowedError,
    TransitionError,
    ValidationError,
)
from board.events import Actor, publish
from board.models import Approval, Card, Event, Membership, User
from board.states import ApprovalScope, ApprovalStatus, Role

MAY_ANSWER = (Role.OWNER, Role.MAINTAINER, Role.MEMBER)
# What brings a card to the agents; who did it last has queued it.
QUEUEING = ("CardQueued", "CardSentBack", "CardRestored")


def check_may_answer(user: User, project_id: int) -> Role:
    """Return the person's role as it is now. Raises NotAllowedError if it is too small to answer."""
    role = role_that_answers(user.pk, project_id)
    if role is None:
        raise NotAllowedError("You may no longer answer questions of this project.")
    return role


def role_that_answers(user_id: int, project_id: int) -> Role | None:
    """Return the role with which this person may answer questions now; None: with none."""
    found = Membership.objects.filter(
        user_id=user_id, project_id=project_id, user__is_active=True, role__in=MAY_ANSWER
    )
    role = found.values_list("role", flat=True).first()
    return None if role is None else Role(role)


def check_may_approve(
    approval: Approval, card: Card, *, by: User, role: Role, scope: ApprovalScope
) -> None:
    """Raise NotAllowedError if this person may not approve this question, or not that far.

    Everyone who may answer may deny: that is always the safe way.
    """
    if scope == ApprovalScope.ALWAYS and role not in {Role.OWNER, Role.MAINTAINER}:
        raise NotAllowedError(
            "Only a maintainer may approve for ever. Approve once, or for this run."
        )
    if scope != ApprovalScope.ONCE and approval.critical:
        raise NotAllowedError("This is critical, so nothing of it is remembered. Approve it once.")
    if card.project.not_own_card and is_own_card(card, by):
        raise NotAllowedError(
            "You wrote or queued this card, and this project wants another person to approve its"
            " calls. You may deny this, or ask the agent."
        )
    if approval.first_by_id == by.pk:
        raise NotAllowedError(
            "You approved this already. It is critical, so a second person must approve it too."
        )


def is_own_card(card: Card, user: User) -> bool:
    """Return whether `user` wrote the card or a part of it, or is who queued it last."""
    if card.created_by_id == user.pk:
        return True
    if Event.objects.filter(card=card, kind="CardEdited", user=user).exists():
        return True
    queued = Event.objects.filter(card=card, kind__in=QUEUEING).order_by("-seq").first()
    return queued is not None and queued.user_id == user.pk


def needs_another(approval: Approval, card: Card) -> bool:
    """Return whether an approval now is only the first of two.

    The first of somebody who may not answer any more counts no more.
    """
    first = approval.first_by_id
    counts = first is not None and role_that_answers(first, card.project_id) is not None
    return card.project.second_approver and approval.critical and not counts


def note_first(
    approval: Approval,
    card: Card,
    *,
    by: User,
    edited: Mapping[str, Any] | None,
    comment: str,
    op_id: str,
) -> None:
    """Record the first of two approvals, with what exactly was approved. Inside the caller's transaction."""
    Approval.objects.filter(pk=approval.pk, status=ApprovalStatus.PENDING).update(
        first_by=by, first_at=Now(), edited_input=edited, comment=comment
    )
    approval.refresh_from_db()
    publish(
        approval.project_id,
        events.FirstApprovalGiven(
            card_id=approval.run.card_id, run_id=approval.run_id, approval_id=approval.pk
        ),
        by=Actor.person(by),
        op_id=op_id,
    )
    record_answer(approval, card, by=Actor.person(by), status="first_approval")


def check_seen(approval: Approval, edited: Mapping[str, Any] | None, *, digest: str) -> None:
    """Raise TransitionError if it was changed by the first of two people and this answer does not name the change.

    A page that was open before shows the call as the agent made it.
    """
    if approval.edited_input is not None and edited is None and digest != approval.seen:
        raise TransitionError(
            f"{approval.first_by or 'Somebody'} changed this call. Look at what is to run, then approve that."
        )


def check_same(approval: Approval, edited: Mapping[str, Any] | None) -> None:
    """Raise ValidationError if the second of two people would approve something else than the first."""
    if edited is not None and dict(edited) != (approval.edited_input or approval.input):
        raise ValidationError(
            f"{approval.first_by} approved this as it stands. Approve the same, or deny it.",
            fields={"input": "The first approval does not cover this."},
        )


def check_edit(approval: Approval, edited: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the edited input if it differs, or raise ValidationError if it is another shape."""
    before: dict[str, Any] = approval.input
    after = dict(edited)
    if after == before:
        return None
    unknown = sorted(set(after) - set(before))
    if unknown:
        raise ValidationError(
            f"This call has no input called {unknown[0]}.", fields={"input": "Keep the fields."}
        )
    for name, value in before.items():
        if name not in after:
            raise ValidationError(f"{name} is missing.", fields={"input": "Keep the fields."})
        if type(after[name]) is not type(value):
            raise ValidationError(f"{name} has another type.", fields={"input": "Keep the types."})
        if isinstance(value, str) and not after[name].strip():
            raise ValidationError(
                f"{name} is empty. Deny instead.", fields={"input": "This is empty."}
            )
    cleaned: dict[str, Any] = clean(after)
    return cleaned


def already_decided(approval: Approval, *, by: User | None = None) -> AlreadyDecidedError:
    """Return the refusal that says who answered first, and how; `by` is whom it is said to."""
    now = Approval.objects.select_related("decided_by").get(pk=approval.pk)
    who = str(now.decided_by) if now.decided_by else "Pullcord"
    is_own = by is not None and now.decided_by_id == by.pk
    name, when = ("You", "already") if is_own else (who, "before you")
    words = {
        ApprovalStatus.APPROVED: f"{name} approved this {when}.",
        ApprovalStatus.DENIED: f"{name} denied this {when}.",
        ApprovalStatus.RETURNED: f"{name} asked the agent about this {when}. It may ask again.",
        ApprovalStatus.EXPIRED: "This question expired.",
        ApprovalStatus.CANCELLED: "This run was cancelled, and the question with it.",
    }
    message = words.get(ApprovalStatus(now.status), "This question has changed. Look again.")
    return AlreadyDecidedError(message, fields={"status": now.status, "decided_by": who})
