"""Trust in a repository's instructions for agents: given to one content, and gone when it changes."""

import hashlib

from django.db import transaction
from django.db.models.functions import Now

from board import events
from board.actions import audit
from board.actions.audit import Act
from board.errors import TransitionError
from board.events import Actor, publish
from board.models import Instruction, Project, User


def note_instructions(project_id: int, path: str, content: str) -> Instruction:
    """Record what the target branch holds now at `path`, and return its row; `trusted_by` says if it counts."""
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    with transaction.atomic():
        row, is_new = Instruction.objects.get_or_create(
            project_id=project_id,
            path=path,
            sha256=sha256,
            defaults={"content": content, "seen_at": Now()},
        )
        if is_new:
            publish(project_id, events.ProjectChanged(what="instructions"), by=Actor.PULLCORD)
        else:
            Instruction.objects.filter(pk=row.pk).update(seen_at=Now())
    return Instruction.objects.select_related("trusted_by").get(pk=row.pk)


def current_instruction(project: Project) -> Instruction | None:
    """Return the content that was seen last, whether trusted or not."""
    rows = Instruction.objects.select_related("trusted_by").filter(project=project)
    return rows.order_by("-seen_at", "-pk").first()


def trust_instruction(instruction: Instruction, *, by: User) -> None:
    """Let agents of the project read this content. Raises TransitionError if another one has come since."""
    _check_is_current(instruction)
    _set(instruction, "instructions_trusted", by=by, trusted_by=by, trusted_at=Now())


def withdraw_trust(instruction: Instruction, *, by: User) -> None:
    """Let no run that begins from now on read this content."""
    _set(instruction, "instructions_not_trusted", by=by, trusted_by=None, trusted_at=None)


def _check_is_current(instruction: Instruction) -> None:
    current = current_instruction(instruction.project)
    if current is None or current.pk != instruction.pk:
        raise TransitionError(
            f"{instruction.path} has changed since this page was shown. Read it again, then decide."
        )


def _set(instruction: Instruction, kind: str, *, by: User, **values: object) -> None:
    actor = Actor.person(by)
    with transaction.atomic():
        Instruction.objects.filter(pk=instruction.pk).update(**values)
        publish(instruction.project_id, events.ProjectChanged(what="instructions"), by=actor)
        data = {"path": instruction.path, "sha256": instruction.sha256}
        audit.record(Act(kind, actor, project=instruction.project, data=data))
