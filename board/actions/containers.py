"""A project's own sandbox: a container engine and an image on the workers' machines, and whether they work there."""

import re

from django.db import transaction
from django.utils import timezone

from board import events
from board.actions import audit
from board.actions.audit import Act
from board.actions.errands import end_errand, queue_errand
from board.errors import ValidationError
from board.events import Actor, publish
from board.models import Errand, Project, User
from board.states import ContainerEngine, ErrandKind, ErrandStatus

MOST_CHARACTERS = 255
# As engines write names, with a tag or a digest; the first character keeps it from being an option.
_IMAGE = re.compile(r"[a-z0-9][\w./-]*(?::[0-9]+/[\w./-]+)?(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?")
_OPEN = (ErrandStatus.QUEUED, ErrandStatus.RUNNING)


def set_container(project: Project, *, by: User, engine: str, image: str) -> None:
    """Choose the engine and the image in which agents' commands run; "" for the worker's own sandbox.

    What was chosen is tried by a worker at once. Runs hear of it when they next begin or go on.
    Raises ValidationError.
    """
    image = image.strip() if engine else ""
    if engine and (not _IMAGE.fullmatch(image) or len(image) > MOST_CHARACTERS):
        problem = "Name the image as the engine knows it, for example localhost/agents:3."
        raise ValidationError(problem, fields={"image": problem})
    with transaction.atomic():
        locked = Project.objects.select_for_update().get(pk=project.pk)
        before = {"engine": locked.container_engine, "image": locked.container_image}
        after = {"engine": str(ContainerEngine(engine)) if engine else "", "image": image}
        if before != after:
            Project.objects.filter(pk=project.pk).update(
                container_engine=after["engine"], container_image=image, container_tried={}
            )
            project.refresh_from_db()
            if engine:
                _ask_for_a_try(project, by)
            publish(project.pk, events.ProjectChanged(what="container"), by=Actor.person(by))
            data = {"before": before, "after": after}
            audit.record(Act("container_set", Actor.person(by), project=project, data=data))
    project.refresh_from_db()


def try_container(project: Project, *, by: User) -> None:
    """Ask a worker to run a command in a container as it is set, unless one has been asked already.

    Raises ValidationError if no container is chosen.
    """
    with transaction.atomic():
        locked = Project.objects.select_for_update().get(pk=project.pk)
        if not locked.container_engine:
            raise ValidationError("No container is chosen.")
        _ask_for_a_try(locked, by)


def _ask_for_a_try(project: Project, by: User) -> None:
    options = {"engine": project.container_engine, "image": project.container_image}
    waiting = project.errands.filter(kind=ErrandKind.TRY, status__in=_OPEN)
    if not waiting.filter(options=options).exists():
        queue_errand(ErrandKind.TRY, project, requested_by=by, options=options)


def finish_try(errand: Errand, *, fence: int, works: bool, message: str, host: str = "") -> None:
    """Store what a worker has found, unless something else has been chosen meanwhile.

    Raises LeaseLostError if another worker holds the errand now.
    """
    status = ErrandStatus.DONE if works else ErrandStatus.FAILED
    with transaction.atomic():
        end_errand(errand, status, fence=fence, message=message)
        _store(errand, works=works, message=message, host=host)


def report_lost_try(errand: Errand, message: str) -> None:
    """Say that no worker came to an end with it. Call it inside a transaction."""
    _store(errand, works=False, message=message, host="")


def _store(errand: Errand, *, works: bool, message: str, host: str) -> None:
    found = {
        "works": works,
        "message": message,
        "host": host,
        "at": timezone.now().isoformat(timespec="seconds"),
    }
    changed = Project.objects.filter(
        pk=errand.project_id,
        container_engine=errand.options["engine"],
        container_image=errand.options["image"],
    ).update(container_tried=found)
    if changed:
        publish(errand.project_id, events.ProjectChanged(what="container"), by=Actor.PULLCORD)
