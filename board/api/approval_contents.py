"""Turns questions of agents into answers of the API."""

from board.api.answers import ApprovalAnswer
from board.models import Approval


def describe_approval(approval: Approval) -> ApprovalAnswer:
    """Return a question that was fetched through `access`."""
    return ApprovalAnswer(
        id=approval.pk,
        card=approval.run.card.ref,
        run=approval.run_id,
        status=approval.status,
        tool=approval.tool,
        input=approval.input,
        rule=approval.rule,
        reasons=approval.reasons,
        sandbox=approval.sandbox,
        effects=approval.effects,
        created_at=approval.created_at,
        scope=approval.scope,
        decided_by=str(approval.decided_by) if approval.decided_by else None,
        decided_at=approval.decided_at,
        comment=approval.comment,
        edited_input=approval.edited_input,
        critical=approval.critical,
        digest=approval.seen,
        shown=approval.shown,
        first_by=str(approval.first_by) if approval.first_by else None,
        expires_at=approval.expires_at,
    )
