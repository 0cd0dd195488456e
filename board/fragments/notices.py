"""What is wrong with the whole board, above its lanes: repository, model key, workers, sandbox."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Case, Exists, Subquery, Value, When
from django.template.loader import render_to_string
from django.utils import timezone

from board.models import Credential, Project, Worker

ALIVE = timedelta(seconds=60)  # a worker that has not been heard of for longer counts as gone


def render_notices(project: Project) -> str:
    """Return the notices of the board, `id="notices"`; an empty section if all is well."""
    now = _state_of_things(project)
    return render_to_string(
        "boards/_notices.html",
        {
            "project": project,
            "keyless": not project.is_rehearsal and not now["has_key"],
            "workerless": not now["has_worker"],
            "host": now["host"],
            "sandbox": now["sandbox"],
            "why": now["why"],
        },
    ).strip()


def _state_of_things(project: Project) -> Mapping[str, Any]:
    """Ask for everything in one query; whether there is a key is seen without reading it."""
    alive = Worker.objects.filter(stopped_at__isnull=True, heartbeat_at__gt=timezone.now() - ALIVE)
    weakest = Case(When(sandbox="broken", then=0), When(sandbox="none", then=1), default=2)
    weak = alive.exclude(sandbox="bubblewrap").order_by(weakest, "started_at")
    now: Mapping[str, Any] = Project.objects.values(
        has_worker=Exists(alive),
        has_key=Value(value=True)
        if settings.ANTHROPIC_API_KEY
        else Exists(Credential.objects.all()),
        host=Subquery(weak.values("host")[:1]),
        sandbox=Subquery(weak.values("sandbox")[:1]),
        why=Subquery(weak.values("sandbox_message")[:1]),
    ).get(pk=project.pk)
    return now
