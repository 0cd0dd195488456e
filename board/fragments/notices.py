"""What is wrong with the whole board, above its lanes: repository, model key, workers, sandbox."""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone
from django.template.loader import render_to_string

from board.models import Credential, Project, Worker

ALIVE = timedelta(seconds=60)  # a worker that has not been heard of for longer counts as gone


def render_notices(project: Project) -> str:
    """Return the notices of the board, `id="notices"`; an empty section if all is well."""
    alive = list(
        Worker.objects.filter(
            stopped_at__isnull=True, heartbeat_at__gt=timezone.now() - ALIVE
        ).values("host", "sandbox", "sandbox_message")
    )
    unboxed = next((worker for worker in alive if worker["sandbox"] == "none"), None)
    return render_to_string(
        "boards/_notices.html",
        {
            "project": project,
            "keyless": not project.is_rehearsal and not has_key(),
            "workerless": not alive,
            "unboxed": unboxed,
        },
    ).strip()


def has_key() -> bool:
    """Return whether there is a key to a model, without reading it."""
    return bool(settings.ANTHROPIC_API_KEY) or Credential.objects.exists()
