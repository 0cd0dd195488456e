"""Sending what waits to be told about questions: at least once, with an id, and never for ever."""

import json
import logging
import time
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from board import webhooks
from board.actions.hooks import check_setter, secret_of
from board.actions.notices import REMINDER, WEBHOOK, payload, readers_of
from board.models import Notice, Webhook
from board.states import ApprovalStatus

log = logging.getLogger(__name__)

TRY_SECONDS = 60  # after which a try that nobody ended counts as lost
# Seconds to the next try after the first, second, ... failure; after the last it is given up.
PAUSES = (15, 60, 300, 1_800, 7_200, 21_600)
MOST_AT_ONCE = 50  # messages in one pass
PASS_SECONDS = 20.0  # of one pass; the rest waits for the next


def is_notice_due() -> bool:
    """Return whether there is a message to send now."""
    return _open_notices().filter(next_at__lte=Now()).exists()


def _open_notices() -> QuerySet[Notice]:
    return Notice.objects.filter(delivered_at__isnull=True, given_up_at__isnull=True)


def deliver_notices() -> int:
    """Send what is due; return how many messages were taken. May run in several processes at once."""
    began, count = time.monotonic(), 0
    open_ones = _open_notices()
    due = open_ones.filter(next_at__lte=Now()).order_by("next_at")
    for pk in list(due.values_list("pk", flat=True)[:MOST_AT_ONCE]):
        if time.monotonic() - began > PASS_SECONDS:
            break
        # Whoever moves the time on has the message to itself, for as long as a try may take.
        taken = open_ones.filter(pk=pk, next_at__lte=Now()).update(
            tries=F("tries") + 1, next_at=Now() + timedelta(seconds=TRY_SECONDS)
        )
        if taken:
            count += _deliver(pk)
    return count


def _deliver(pk: UUID) -> bool:
    notice = Notice.objects.select_related(
        "approval__run__card__project", "approval__project", "user"
    ).get(pk=pk)
    row = Notice.objects.filter(pk=pk)
    if notice.approval.status != ApprovalStatus.PENDING:
        row.update(given_up_at=Now(), problem="It was answered before this could be sent.")
        return False
    try:
        if notice.channel == WEBHOOK:
            _send_webhook(notice)
        else:
            _send_mail(notice)
    except (webhooks.WebhookError, OSError) as error:  # smtplib's errors are OSErrors
        if notice.tries > len(PAUSES):
            row.update(given_up_at=Now(), problem=str(error)[:300])
            log.warning("A %s about a question was given up: %s", notice.channel, error)
        else:
            pause = timedelta(seconds=PAUSES[notice.tries - 1])
            row.update(next_at=Now() + pause, problem=str(error)[:300])
        return False
    row.update(delivered_at=Now(), problem="")
    return True


def _send_webhook(notice: Notice) -> None:
    hook = Webhook.objects.filter(project_id=notice.approval.project_id).first()
    if hook is None:
        raise webhooks.WebhookError("The project has no webhook any more.")
    check_setter(hook)
    body = json.dumps(payload(notice)).encode()
    stamp = str(int(time.time()))
    signature = webhooks.sign(secret_of(hook), identity=str(notice.pk), timestamp=stamp, body=body)
    headers = {
        "User-Agent": f"Pullcord/{settings.VERSION}",
        "Pullcord-Id": str(notice.pk),
        "Pullcord-Timestamp": stamp,
        "Pullcord-Signature": signature,
    }
    webhooks.post(hook.url, body, headers, allows_private=hook.allows_private)


def _send_mail(notice: Notice) -> None:
    user = notice.user
    if user is None or user.pk not in readers_of(notice.approval.project_id):
        return  # who has left, or wants no mails any more, is not written to
    told = payload(notice)
    late = "Still waiting: " if notice.reason == REMINDER else ""
    lines = [
        f"{told['agent']} waits for an answer about {told['card']}, {told['title']}.",
        f"It wants to use {told['tool']}:",
        f"    {told['what']}",
        *([f"Why it asks: {told['reason']}"] if told["reason"] else []),
        f"Look and answer: {told['url']}",
        f"You get this because you asked for it: {settings.PUBLIC_URL}/me/",
    ]
    EmailMessage(
        subject=f"{late}{told['agent']} asks about {told['card']}",
        body="\n\n".join(lines) + "\n",
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[user.email],
        headers={"Message-ID": f"<{notice.pk}@pullcord>", "Auto-Submitted": "auto-generated"},
    ).send()
