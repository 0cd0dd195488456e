"""Routes of projects."""

from django.db.models import F
from ninja import Router, Status

from board import access
from board.actions.projects import create_project
from board.api.answers import ProjectAnswer, ReportAnswer, answers
from board.api.bodies import Days, NewProject
from board.api.contents import describe_project
from board.api.report_contents import describe_report
from board.api.tokens import ApiRequest
from board.reports import report
from board.states import Role

router = Router(tags=["projects"])


@router.get("/projects", response=answers(list[ProjectAnswer]))
def list_projects(request: ApiRequest) -> list[ProjectAnswer]:
    """List the projects that you are a member of, by name."""
    mine = access.list_projects(request.auth).annotate(role=F("memberships__role"))
    return [describe_project(project, project.role) for project in mine.prefetch_related("columns")]


@router.post("/projects", response=answers(ProjectAnswer, status=201))
def create(request: ApiRequest, body: NewProject) -> Status[ProjectAnswer]:
    """Add a project, owned by you. Its repository is fetched in the background: follow `state`."""
    project = create_project(by=request.auth, **body.dict())
    project.refresh_from_db()
    return Status(201, describe_project(project, Role.OWNER))


@router.get("/projects/{key}", response=answers(ProjectAnswer))
def show(request: ApiRequest, key: str) -> ProjectAnswer:
    """Show one project."""
    project = access.get_project(request.auth, key)
    return describe_project(project, access.get_role(request.auth, project.pk))


@router.get("/projects/{key}/reports", response=answers(ReportAnswer))
def show_report(request: ApiRequest, key: str, days: Days = 14) -> ReportAnswer:
    """Show what its agents did and asked in the last days: runs, questions, answers, cost."""
    project = access.get_project(request.auth, key)
    return describe_report(report(project, days=days))
