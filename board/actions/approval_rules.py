"""A project's rules for approvals: who may give one, and how long a question waits."""

from dataclasses import asdict, dataclass

from django.db import transaction

from board import events
from board.actions import audit
from board.actions.audit import Act
from board.errors import ValidationError
from board.events import Actor, publish
from board.models import Project, User

MOST_MINUTES = 525_600  # a year


@dataclass(frozen=True)
class ApprovalRules:
    """`second_approver`: two people for critical calls. `not_own_card`: who wrote or queued a card may not
    approve its calls. Minutes: when a question is overdue, and when it expires (None: never)."""

    second_approver: bool
    not_own_card: bool
    overdue_minutes: int
    expiry_minutes: int | None


def set_approval_rules(project: Project, rules: ApprovalRules, *, by: User) -> None:
    """Store the rules; they hold for answers from now on, the expiry for questions from now on."""
    problems = {
        name: f"A number of minutes from 1 to {MOST_MINUTES:,}."
        for name in ("overdue_minutes", "expiry_minutes")
        if (minutes := getattr(rules, name)) is not None and not 1 <= minutes <= MOST_MINUTES
    }
    if problems:
        raise ValidationError("Correct the minutes.", fields=problems)
    actor = Actor.person(by)
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(**asdict(rules))
        publish(project.pk, events.ProjectChanged(what="approvals"), by=actor)
        audit.record(Act("approval_rules_set", actor, project=project, data=asdict(rules)))
    project.refresh_from_db()
