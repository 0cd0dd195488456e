"""Which local files of a project's folder are copied into workspaces."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from board.access import get_project
from board.actions import local_files
from board.errors import BoardError
from board.forms import MONO, BoardForm
from board.models import Project, User
from board.states import Role
from board.views.people import person


class LocalFilesForm(BoardForm):
    """One name on each line."""

    names = forms.CharField(
        required=False,
        max_length=5_000,
        label="Local files",
        widget=forms.Textarea(attrs={**MONO, "rows": 3, "placeholder": ".env"}),
        help_text=(
            "One on each line, relative to the repository's folder. Each workspace gets a copy. Nothing"
            " of them is committed, and their secrets are hidden from logs, pages and the model."
        ),
    )


@require_POST
def save(request: HttpRequest, key: str) -> HttpResponse:
    """Store the names."""
    user = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    form = LocalFilesForm(request.POST)
    if form.is_valid():
        try:
            names = form.cleaned_data["names"].splitlines()
            local_files.set_local_files(project, by=user, names=names)
        except BoardError as error:
            messages.error(request, error.message)
        else:
            messages.success(request, "The local files are saved. New workspaces get them.")
    return redirect("project_settings", key=project.key)


def local_files_form(project: Project, user: User) -> LocalFilesForm | None:
    """Return the form for who may use it, where the repository is a folder; else None."""
    if not user.is_owner or not local_files.is_local(project) or project.is_rehearsal:
        return None
    return LocalFilesForm(initial={"names": "\n".join(project.secret_files)})
