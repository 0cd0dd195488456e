"""The projects of a person, making a new one, and fetching its repository."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Count, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from board.access import get_project, list_approvals, list_projects
from board.actions import projects, rehearsals
from board.actions.credentials import model_access
from board.errors import BoardError
from board.forms import FetchForm, ProjectForm
from board.models import Card, Membership, Project, Run, Usage, User
from board.states import HELD, ApprovalStatus, CardStatus, Role
from board.templatetags.shell import address
from board.views.people import person

FACES = 5  # people shown in a row before a number says how many more


@dataclass
class Row:
    """A project in the list, with what happens in it now."""

    project: Project
    waiting: int = 0
    running: int = 0
    failed: int = 0
    queued: int = 0
    merged: int = 0
    spent_microusd: int = 0
    people: list[User] = field(default_factory=list)

    @property
    def faces(self) -> list[User]:
        """The people who are shown."""
        return self.people[:FACES]

    @property
    def more(self) -> int:
        """How many people are not shown."""
        return len(self.people) - len(self.faces)


@require_safe
def list_all(request: HttpRequest) -> HttpResponse:
    """Show the projects that the person is a member of."""
    user = person(request)
    rows = project_rows(user)
    context = {"rows": rows, "place": "projects", "no_credential": model_access() is None}
    name = "projects/_list.html" if "HX-Request" in request.headers else "projects/list.html"
    return render(request, name, context)


@require_http_methods(["GET", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Show the form of a new project, or make it; its board shows the fetch."""
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            project = projects.create_project(by=person(request), **form.cleaned_data)
        except BoardError as error:
            form.refuse(error)
        else:
            return redirect(f"/p/{project.key}/")
    status = 422 if form.is_bound else 200
    return render(request, "projects/new.html", {"form": form, "place": "projects"}, status=status)


@require_POST
def rehearse(request: HttpRequest) -> HttpResponse:
    """Make the person's rehearsal, a sample project with a scripted agent, and show its board."""
    project = rehearsals.start_rehearsal(by=person(request))
    return redirect(f"/p/{project.key}/")


@require_POST
def fetch(request: HttpRequest, key: str) -> HttpResponse:
    """Ask for another fetch, of another address if one is given."""
    user = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    form = FetchForm(request.POST)
    form.is_valid()
    repository = form.cleaned_data.get("repository", "")
    if repository == address(project.repository):
        repository = ""  # as it was shown, perhaps without its token: unchanged
    projects.fetch_again(
        project,
        by=user,
        repository=repository,
        create_first_commit=form.cleaned_data.get("create_first_commit", False),
    )
    return redirect(f"/p/{project.key}/")


def project_rows(user: User) -> list[Row]:
    """Return the person's projects with their figures, in a constant number of queries."""
    rows = {project.pk: Row(project) for project in list_projects(user)}
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    cards = Card.objects.filter(project__in=rows, archived_at__isnull=True)
    week = cards.filter(status=CardStatus.DONE, done_at__gte=today - timedelta(days=7))
    waiting = list_approvals(user).filter(status=ApprovalStatus.PENDING)
    counts: dict[str, QuerySet[Any]] = {
        "waiting": waiting,
        "running": Run.objects.filter(project__in=rows, status__in=HELD),
        "failed": cards.filter(status=CardStatus.FAILED),
        "queued": cards.filter(status=CardStatus.QUEUED),
        "merged": week,
    }
    for name, found in counts.items():
        for project_id, count in _per_project(found):
            setattr(rows[project_id], name, count)
    spent = Usage.objects.filter(run__project__in=rows, created_at__gte=today)
    for project_id, cost in spent.values_list("run__project").annotate(cost=Sum("cost_microusd")):
        rows[project_id].spent_microusd = cost or 0
    for project_id, people in _people(rows).items():
        rows[project_id].people = people
    return list(rows.values())


def _per_project(found: QuerySet[Any]) -> Iterable[tuple[int, int]]:
    return list(found.order_by().values_list("project").annotate(number=Count("pk")))


def _people(project_ids: Iterable[int]) -> dict[int, list[User]]:
    people: dict[int, list[User]] = defaultdict(list)
    found: Sequence[Membership] = list(
        Membership.objects.select_related("user")
        .filter(project__in=list(project_ids))
        .order_by("pk")
    )
    for membership in found:
        people[membership.project_id].append(membership.user)
    return people
