"""`/healthz`: whether the installation works, for people and machines that watch it."""

import logging

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse

from board.access import list_live_workers

log = logging.getLogger(__name__)

REDIS_SECONDS = 1.0


@login_not_required
def show(request: HttpRequest) -> JsonResponse:
    """Answer 200 if the database works, else 503. It names no project and no person."""
    del request
    database, workers = _database()
    report = {
        "version": settings.VERSION,
        "database": database,
        "redis": _redis(),
        "workers": workers,
        "sandbox": sorted({str(worker["sandbox"]) for worker in workers}),
    }
    return JsonResponse(report, status=200 if database == "ok" else 503)


def _database() -> tuple[str, list[dict[str, object]]]:
    try:
        return "ok", list_live_workers()
    except DatabaseError as error:
        log.warning("The database does not answer: %s", error)
        connection.close()
        return "down", []


def _redis() -> str:
    import redis  # big, and a page needs it only when a browser opens a socket

    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
    )
    try:
        client.ping()
    except redis.RedisError:
        return "down"
    finally:
        client.close()
    return "ok"
