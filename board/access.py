"""Fetching with permission. What a person may not see does not exist: every refusal to read is a 404.

The one gate for every read that a page, a fragment, an API route or a socket makes for a person.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import DurationField, ExpressionWrapper, F, QuerySet
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Now
from django.http import Http404

from board.errors import NotAllowedError
from board.models import Approval, Card, Grant, Membership, Project, Run, Step, User, Worker
from board.states import ROLE_ORDER, Role, StepKind

NUMBER_DIGITS = 9  # of a card; more do not fit in the column
APPROVAL_PARTS = ("run__card__project", "project", "decided_by", "first_by", "looked_by")
DOES = {
    Role.VIEWER: "see this project",
    Role.MEMBER: "change cards here",
    Role.MAINTAINER: "approve, merge and change settings here",
    Role.OWNER: "change members here",
}


def list_projects(user: User) -> QuerySet[Project]:
    """Return the projects that `user` is a member of, by name."""
    return Project.objects.filter(memberships__user=user, archived_at__isnull=True).order_by("name")


def get_role(user: User, project_id: int) -> Role:
    """Return the person's role in a project, or raise Http404 for a stranger."""
    role = Membership.objects.filter(user_id=user.pk, project_id=project_id).values_list(
        "role", flat=True
    )
    found = role.first()
    if found is None or not user.is_active:
        raise Http404
    return Role(found)


def get_project(user: User, key: str, *, role: Role = Role.VIEWER) -> Project:
    """Return the project called `key` if `user` has at least `role` in it.

    Raises Http404 for a stranger, NotAllowedError for a member whose role is too small.
    """
    if not key.isalnum():  # no key; and PostgreSQL refuses to look for a NUL
        raise Http404
    project = Project.objects.filter(key=key.upper(), archived_at__isnull=True).first()
    if project is None:
        raise Http404
    check_role(user, project.pk, role)
    return project


def get_card(user: User, ref: str, *, role: Role = Role.VIEWER) -> Card:
    """Return the card called `KEY-12`, with its project, column and latest run.

    Raises Http404 for a stranger or an unknown ref, NotAllowedError for too small a role.
    """
    key, number = split_ref(ref)
    card = (
        Card.objects.select_related(
            "project", "column", "run", "failed_by", "assignee", "created_by"
        )
        .filter(project__key=key, project__archived_at__isnull=True, number=number)
        .first()
    )
    if card is None:
        raise Http404
    check_role(user, card.project_id, role)
    return card


def split_ref(ref: str) -> tuple[str, int]:
    """Return ("KEY", 12) of `key-12`, or raise Http404 if no card can be called so."""
    key, _, number = ref.strip().upper().rpartition("-")
    if not key.isalnum() or not number.isascii() or not number.isdigit():
        raise Http404
    if len(number) > NUMBER_DIGITS:
        raise Http404
    return key, int(number)


def get_run(user: User, run_id: int, *, role: Role = Role.VIEWER) -> Run:
    """Return a run with its card and project. Raises as `get_card`."""
    run = Run.objects.select_related("card__project", "project").filter(pk=run_id).first()
    if run is None:
        raise Http404
    check_role(user, run.project_id, role)
    return run


def list_approvals(user: User) -> QuerySet[Approval]:
    """Return the questions of all projects that `user` is a member of, oldest first."""
    return (
        Approval.objects.select_related(*APPROVAL_PARTS)
        .filter(project__memberships__user=user, project__archived_at__isnull=True)
        .order_by("id")
    )


def get_approval(user: User, approval_id: int, *, role: Role = Role.VIEWER) -> Approval:
    """Return a question with its run, card and project. Raises as `get_card`."""
    approval = (
        Approval.objects.select_related(*APPROVAL_PARTS, "step", "run__card__created_by")
        .filter(pk=approval_id)
        .first()
    )
    if approval is None:
        raise Http404
    check_role(user, approval.project_id, role)
    return approval


def list_calls(
    user: User, *, project: Project | None = None, card: Card | None = None, limit: int
) -> list[Step]:
    """Return the latest tool calls that `user` may see and that the gate has judged, newest first.

    Of one card, of one project, or of all projects of the person. Each step has its run with card
    and project; `refused` and `rule` are of its response, which is not fetched.
    """
    where = {"run__card": card} if card else {"run__project": project} if project else {}
    steps = (
        Step.objects.filter(kind=StepKind.TOOL, run__project__memberships__user=user, **where)
        .exclude(request__tool="acceptance_checks")
        .annotate(
            refused=KeyTextTransform("refused", KeyTransform("details", "response")),
            rule=KeyTextTransform("rule", KeyTransform("details", "response")),
        )
        .exclude(request__gate__isnull=True, refused__isnull=False, rule__isnull=True)
        .select_related("run__card__project")
        .defer("response")
    )
    return list(steps.order_by("-pk")[:limit])


def get_grant(user: User, grant_id: int, *, role: Role = Role.MAINTAINER) -> Grant:
    """Return an answer that lasts, with its project. Raises as `get_card`."""
    grant = Grant.objects.select_related("project").filter(pk=grant_id).first()
    if grant is None:
        raise Http404
    check_role(user, grant.project_id, role)
    return grant


def check_role(user: User, project_id: int, role: Role) -> Role:
    """Return the person's role, or raise Http404 (stranger) or NotAllowedError (role too small)."""
    have = get_role(user, project_id)
    if ROLE_ORDER[have] < ROLE_ORDER[role]:
        raise NotAllowedError(
            f"Only a {role} may {DOES[role]}; you are a {have}. Ask an owner of the project."
        )
    return have


def list_live_workers() -> list[dict[str, Any]]:
    """Return what anybody may know of the workers that beat: slots, sandbox, age of the heartbeat in seconds."""
    rows = Worker.objects.filter(stopped_at__isnull=True).annotate(
        age=ExpressionWrapper(Now() - F("heartbeat_at"), output_field=DurationField())
    )
    alive = rows.filter(heartbeat_at__gt=Now() - timedelta(seconds=2 * settings.LEASE_SECONDS))
    return [
        {
            "id": str(worker.pk)[:8],
            "version": worker.version,
            "slots": worker.slots,
            "busy": worker.busy,
            "sandbox": worker.sandbox,
            "lag_ms": worker.lag_ms,
            "heartbeat_age_seconds": round(worker.age.total_seconds(), 1),
        }
        for worker in alive.order_by("started_at")
    ]
