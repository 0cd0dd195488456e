"""Telling people and programs outside that a question waits: stored with it, sent by housekeeping.

A message holds the first 200 visible characters of a call and nothing that looks like a secret: it
passes through other people's servers.
"""

import re
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from board.models import Approval, Membership, Notice, Webhook
from board.states import ApprovalStatus, Role
from board.unseen import named

ASKED, REMINDER = "asked", "reminder"
MAIL, WEBHOOK = "mail", "webhook"
EXCERPT = 200  # visible characters of a call
MAY_ANSWER = (Role.OWNER, Role.MAINTAINER, Role.MEMBER)
SECRET = re.compile(
    r"sk-[\w-]{8,}|gh[pousr]_\w{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}|AKIA[0-9A-Z]{12,}"
    r"|xox[a-z]-[\w-]{8,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]+|pc_[\w-]{16,}"
    r"|(?<=://)[^/@\s]+(?=@)"  # user:password before the host of a URL
    r"|(?i:(?<=bearer )|(?<=basic )|(?<=password=)|(?<=token=)|(?<=secret=)|(?<=api_key=))[^\s'\"]+"
)


def announce_question(approval: Approval, *, reason: str = ASKED) -> None:
    """Store what is to be sent about an open question. Inside the caller's transaction."""
    rows = []
    if Webhook.objects.filter(project_id=approval.project_id).exists():
        rows.append(Notice(channel=WEBHOOK))
    if settings.EMAIL_HOST:
        rows += [Notice(channel=MAIL, user_id=pk) for pk in readers_of(approval.project_id)]
    for row in rows:
        row.approval, row.reason, row.next_at = approval, reason, Now()
    Notice.objects.bulk_create(rows)


def readers_of(project_id: int) -> list[int]:
    """Return who may answer and wants mails."""
    wanting = Membership.objects.filter(
        project_id=project_id,
        role__in=MAY_ANSWER,
        user__is_active=True,
        user__mails_questions=True,
    )
    return list(wanting.values_list("user_id", flat=True))


def silent_questions() -> QuerySet[Approval]:
    """Return the open questions of which nobody was reminded yet."""
    return Approval.objects.filter(
        status=ApprovalStatus.PENDING, reminded_at__isnull=True, project__archived_at__isnull=True
    )


def remind() -> int:
    """Send one reminder for each question that has become overdue; return how many questions."""
    silent = silent_questions()
    count = 0
    for minutes in set(silent.values_list("project__overdue_minutes", flat=True)):
        since = Now() - timedelta(minutes=minutes)
        late = silent.filter(project__overdue_minutes=minutes, created_at__lte=since)
        for approval in late.order_by("pk")[:100]:
            with transaction.atomic():
                mine = silent.filter(pk=approval.pk)
                if mine.update(reminded_at=Now()):
                    announce_question(approval, reason=REMINDER)
                    count += 1
    return count


def payload(notice: Notice) -> dict[str, Any]:
    """Return what is told about the question of a notice."""
    approval = notice.approval
    card = approval.run.card
    return {
        "id": str(notice.pk),
        "event": f"question.{notice.reason}",
        "project": approval.project.key,
        "card": card.ref,
        "title": excerpt(card.title),
        "question": approval.pk,
        "agent": approval.run.agent or "An agent",
        "tool": approval.tool,
        "what": excerpt(str(approval.input.get("command") or approval.input.get("path") or "")),
        "rule": approval.rule,
        "reason": excerpt(str(approval.reasons[0])) if approval.reasons else "",
        "critical": approval.critical,
        "asked_at": approval.created_at.isoformat(),
        "url": f"{settings.PUBLIC_URL}/approvals/{approval.pk}/",
    }


def excerpt(text: str) -> str:
    """Return the first visible characters of a text in one line, without what looks like a secret."""
    shown = SECRET.sub("[redacted]", " ".join(named(text[: 20 * EXCERPT]).split()))
    return shown if len(shown) <= EXCERPT else f"{shown[: EXCERPT - 1]}…"
