"""The form for the local files of a project's folder that are copied into workspaces."""

from django import forms

from board.actions import local_files
from board.forms import MONO, BoardForm
from board.models import Project, User


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


def local_files_form(project: Project, user: User) -> LocalFilesForm | None:
    """Return the form for who may use it, where the repository is a folder; else None."""
    if not user.is_owner or not local_files.is_local(project) or project.is_rehearsal:
        return None
    return LocalFilesForm(initial={"names": "\n".join(project.secret_files)})
