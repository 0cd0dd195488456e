"""The machines that do the work: alive or lost, how busy, how well they hold their commands."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from board.models import Card, Run, Worker
from board.states import CardStatus, RunStatus

SLOW_MS = 250  # an event loop that wakes this late answers its leases too late under load
ADVICE = {
    "landlock": (
        "Commands are held, but share the machine: no server can be started for a test, git is read-only, "
        "and deleting folders or running code outside the tests asks. Install bubblewrap for the best level."
    ),
    "none": (
        "Commands run unconfined, so each that does more than read asks. Install bubblewrap "
        "(Debian, Ubuntu: apt install bubblewrap), allow user namespaces, and start the worker again."
    ),
}


class Machine:
    """A worker with what its figures mean."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        age = timezone.now() - worker.heartbeat_at
        self.is_stopped = worker.stopped_at is not None
        self.is_lost = not self.is_stopped and age > timedelta(seconds=settings.LEASE_SECONDS)
        self.is_alive = not self.is_stopped and not self.is_lost
        self.is_slow = self.is_alive and worker.lag_ms >= SLOW_MS
        self.other_version = self.is_alive and worker.version != settings.VERSION
        self.busy = range(min(worker.busy, worker.slots)) if self.is_alive else range(0)
        self.free = range(worker.slots - len(self.busy))
        self.advice = ADVICE.get(worker.sandbox, "")


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the workers, those that are alive first."""
    machines = [Machine(worker) for worker in Worker.objects.order_by("-heartbeat_at")[:100]]
    machines.sort(key=lambda machine: not machine.is_alive)
    alive = [machine for machine in machines if machine.is_alive]
    context = {
        "place": "workers",
        "machines": machines,
        "alive": len(alive),
        "slots": sum(machine.worker.slots for machine in alive),
        "busy": sum(machine.worker.busy for machine in alive),
        "queued": Card.objects.filter(
            status=CardStatus.QUEUED, unmet=0, archived_at__isnull=True
        ).count(),
        "put_aside": Run.objects.filter(status=RunStatus.WAITING).count(),
        "losses": Run.objects.aggregate(total=Sum("losses"))["total"] or 0,
        "unprotected": any(machine.worker.sandbox == "none" for machine in alive),
    }
    name = "workers/_list.html" if "HX-Request" in request.headers else "workers/show.html"
    return render(request, name, context)
