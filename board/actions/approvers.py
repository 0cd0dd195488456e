"""Who may approve what, and what an edit may change: the rules that an answer is checked against."""

from collections.abc import Mapping
from typing import Any

from django.db.models.functions import Now

from board import events
from board.actions.audit_of_runs import record_answer
from board.actions.texts import clean
from board.errors import AlreadyDecidedError, NotAllowedError, ValidationError
from board.events import Actor, publish
from board.models import Approval, Card, Event, User
from board.states import ApprovalScope, ApprovalStatus, Role

# What brings a card to the agents; who did it last has queued it.
QUEUEING = ("CardQueued", "CardSentBack", "CardRestored")


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
    """Return whether `user` wrote the card, or is who queued it last."""
    if card.created_by_id == user.pk:
        return True
    queued = Event.objects.filter(card=card, kind__in=QUEUEING).order_by("-seq").first()
    return queued is not None and queued.user_id == user.pk


def needs_another(approval: Approval, card: Card) -> bool:
    """Return whether an approval now is only the first of two."""
    return card.project.second_approver and approval.critical and approval.first_by_id is None


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
