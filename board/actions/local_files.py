"""A project's local files: which files of its folder on the server, such as `.env`, worktrees get a copy of."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from django.db import transaction

from board import events
from board.actions import audit
from board.actions.audit import Act
from board.actions.cleaning import clean_lines, is_folder
from board.errors import NotAllowedError, ValidationError
from board.events import Actor, publish
from board.models import Project, User

MAX_FILES = 20
MAX_NAME = 200  # characters


def is_local(project: Project) -> bool:
    """Whether the project's repository is a folder of the server."""
    return is_folder(project.repository)


def set_local_files(project: Project, *, by: User, names: Sequence[str]) -> None:
    """Set the names, relative to the repository's folder. They are copied when a workspace is made.

    Raises NotAllowedError for all but owners of the installation, since a folder of the server can
    hold what is nobody's business, and ValidationError for a name that is not one of a file in it.
    """
    if not by.is_owner:
        raise NotAllowedError("Only an owner of this installation may have local files copied.")
    cleaned = list(dict.fromkeys(clean_lines(names)))
    if cleaned and not is_local(project):
        raise NotAllowedError("The repository is a URL, so there is no folder to copy files from.")
    problem = _problem(cleaned)
    if problem:
        raise ValidationError(problem, fields={"names": problem})
    with transaction.atomic():
        if (
            not Project.objects.filter(pk=project.pk)
            .exclude(secret_files=cleaned)
            .update(secret_files=cleaned)
        ):
            return
        publish(project.pk, events.ProjectChanged(what="local files"), by=Actor.person(by))
        data = {"before": project.secret_files, "after": cleaned}
        audit.record(Act("local_files_set", Actor.person(by), project=project, data=data))
    project.refresh_from_db()


def _problem(names: Sequence[str]) -> str:
    """Say what is wrong with the names, or return ""."""
    if len(names) > MAX_FILES:
        return f"At most {MAX_FILES} files."
    for name in names:
        path = PurePosixPath(name)
        if len(name) > MAX_NAME:
            return f"At most {MAX_NAME} characters in one name."
        if path.is_absolute() or ".." in path.parts or str(path) != name or name.startswith("~"):
            return f"{name} is not the name of a file in the repository's folder. Write it as .env or conf/.env."
        if any(part.casefold() == ".git" for part in path.parts):
            return f"{name} belongs to git, and is not copied."
    return ""
