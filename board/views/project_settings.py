"""The settings of one project: everyone in it reads them, maintainers change them."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from board.access import get_project, get_role
from board.actions import local_files, projects
from board.actions.containers import set_container, try_container
from board.actions.instructions import current_instruction
from board.actions.network import set_network_hosts
from board.errors import BoardError, NotAllowedError
from board.forms import (
    ColumnForm,
    ContainerForm,
    FetchForm,
    NetworkForm,
    NewColumnForm,
    ProjectSettingsForm,
)
from board.models import Column, Project, User
from board.states import ROLE_ORDER, ErrandKind, ErrandStatus, Lane, Role
from board.templatetags.shell import address
from board.views.local_files import LocalFilesForm, local_files_form
from board.views.people import person

NO_COMMITS = "no_commits"  # the code of a fetch that found a repository without any commit


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, key: str) -> HttpResponse:
    """Show the settings, or store them."""
    user = person(request)
    needed = Role.MAINTAINER if request.method == "POST" else Role.VIEWER
    project = get_project(user, key, role=needed)
    before = {name: getattr(project, name) for name in projects.SETTINGS}
    form = ProjectSettingsForm(request.POST or None, initial=before)
    if request.method == "POST" and form.is_valid():
        try:
            projects.update_project(project, by=user, **form.cleaned_data)
        except BoardError as error:
            form.refuse(error)
        else:
            messages.success(request, "The settings are saved.")
            return redirect("project_settings", key=project.key)
    return _page(request, project, user, form=form)


@require_POST
def change_column(request: HttpRequest, key: str, column_id: int) -> HttpResponse:
    """Rename a column, and set or lift its limit."""
    user = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    column = Column.objects.filter(project=project, pk=column_id).first()
    if column is None:
        raise Http404
    form = ColumnForm(request.POST, prefix=f"c{column.pk}")
    if form.is_valid():
        try:
            projects.set_column(column, by=user, **form.cleaned_data)
        except BoardError as error:
            form.refuse(error)
        else:
            messages.success(request, f"The column {form.cleaned_data['name']} is saved.")
            return redirect("project_settings", key=project.key)
    return _page(request, project, user, column_form=form)


@require_POST
def add_column(request: HttpRequest, key: str) -> HttpResponse:
    """Add a column to a lane."""
    user = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    form = NewColumnForm(request.POST, prefix="new")
    if form.is_valid():
        try:
            projects.add_column(
                project,
                by=user,
                name=form.cleaned_data["name"],
                lane=Lane(form.cleaned_data["lane"]),
            )
        except BoardError as error:
            form.refuse(error)
        else:
            messages.success(request, f"The column {form.cleaned_data['name']} is on the board.")
            return redirect("project_settings", key=project.key)
    return _page(request, project, user, new_column=form)


@require_POST
def set_network(request: HttpRequest, key: str) -> HttpResponse:
    """Store the hosts that agents may reach."""
    user = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    form = NetworkForm(request.POST)
    if form.is_valid():
        try:
            set_network_hosts(project, by=user, text=form.cleaned_data["hosts"])
        except BoardError as error:
            form.refuse(error)
        else:
            messages.success(
                request, "The hosts are saved. They count when a run begins or goes on."
            )
            return redirect("project_settings", key=project.key)
    return _page(request, project, user, network_form=form)


@require_POST
def set_local_files(request: HttpRequest, key: str) -> HttpResponse:
    """Store which local files workspaces get a copy of."""
    user = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    form = LocalFilesForm(request.POST)
    if form.is_valid():
        try:
            names = form.cleaned_data["names"].splitlines()
            local_files.set_local_files(project, by=user, names=names)
        except BoardError as error:
            form.refuse(error)
        else:
            messages.success(request, "The local files are saved. New workspaces get them.")
            return redirect("project_settings", key=project.key)
    if local_files_form(project, user) is None:  # nothing on the page could show it
        raise NotAllowedError("Only an owner of this installation may have local files copied.")
    return _page(request, project, user, files_form=form)


@require_POST
def set_sandbox(request: HttpRequest, key: str) -> HttpResponse:
    """Store where the commands of agents run, and have it tried."""
    user = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    form = ContainerForm(request.POST)
    if form.is_valid():
        try:
            set_container(project, by=user, **form.cleaned_data)
        except BoardError as error:
            form.refuse(error)
        else:
            messages.success(
                request, "The sandbox is saved. It counts when a run begins or goes on."
            )
            return redirect("project_settings", key=project.key)
    return _page(request, project, user, container_form=form)


@require_POST
def try_sandbox(request: HttpRequest, key: str) -> HttpResponse:
    """Have a worker run a command in the container."""
    user = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    try_container(project, by=user)
    messages.success(request, "A worker tries it. What it finds stands below.")
    return redirect("project_settings", key=project.key)


@require_POST
def archive(request: HttpRequest, key: str) -> HttpResponse:
    """Take the project out of everyone's list."""
    user = person(request)
    project = get_project(user, key, role=Role.OWNER)
    projects.archive_project(project, by=user)
    messages.success(request, f"{project.name} is archived. Nothing was deleted.")
    return redirect("projects")


def _page(
    request: HttpRequest,
    project: Project,
    user: User,
    *,
    form: ProjectSettingsForm | None = None,
    column_form: ColumnForm | None = None,
    new_column: NewColumnForm | None = None,
    network_form: NetworkForm | None = None,
    files_form: LocalFilesForm | None = None,
    container_form: ContainerForm | None = None,
) -> HttpResponse:
    """Render the page with the one form that was refused, if any, and fresh ones for the rest."""
    role = get_role(user, project.pk)
    initial = {name: getattr(project, name) for name in projects.SETTINGS}
    main = form or ProjectSettingsForm(initial=initial)
    columns = [
        column_form
        if column_form is not None and column_form.prefix == f"c{column.pk}"
        else ColumnForm(
            prefix=f"c{column.pk}", initial={"name": column.name, "limit": column.limit}
        )
        for column in project.columns.all()
    ]
    errand = project.errands.filter(kind=ErrandKind.FETCH).order_by("-pk").first()
    failed = errand is not None and errand.status == ErrandStatus.FAILED
    sent = (form, column_form, new_column, network_form, files_form, container_form)
    refused = any(each is not None and each.is_bound for each in sent)
    may_change = ROLE_ORDER[role] >= ROLE_ORDER[Role.MAINTAINER]
    if not may_change:
        for name in main.fields:
            main.fields[name].disabled = True
    context = {
        "project": project,
        "place": "board",
        "tab": "settings",
        "role": role,
        "may_change": may_change,
        "may_archive": role == Role.OWNER,
        "form": main,
        "instruction": current_instruction(project),
        "columns": list(zip(project.columns.all(), columns, strict=True)),
        "new_column": new_column or NewColumnForm(prefix="new"),
        "fetch_form": FetchForm(initial={"repository": address(project.repository)}),
        "local_files": files_form or (local_files_form(project, user) if may_change else None),
        "network_form": network_form
        or NetworkForm(initial={"hosts": "\n".join(project.network_hosts)}),
        "container_form": container_form
        or ContainerForm(
            initial={"engine": project.container_engine, "image": project.container_image}
        ),
        "is_trying": project.errands.filter(
            kind=ErrandKind.TRY, status__in=[ErrandStatus.QUEUED, ErrandStatus.RUNNING]
        ).exists(),
        "no_commits": failed and errand is not None and errand.options.get("code") == NO_COMMITS,
    }
    return render(request, "projects/settings.html", context, status=422 if refused else 200)
