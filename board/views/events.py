"""The same frames as the socket's for a browser whose network lets no socket through: GET, and wait."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from board.access import get_project
from board.feeds.hub import current_hub
from board.feeds.readings import catch_up
from board.feeds.threads import in_thread
from board.states import Role

MAX_WAIT = 25.0  # seconds; proxies cut off a silent request after 30
MAX_DIGITS = 18  # of a number that a database column holds


class Waiting:
    """Watches a board for one request, which reads the present state itself."""

    def __init__(self, user_id: int) -> None:
        self.user_id = user_id
        self.role = Role.VIEWER

    def offer(self, text: str) -> None:
        """Nothing: the request reads what it missed."""

    def revoke(self) -> None:
        """Nothing: the request asks again before it answers."""


@login_required
@require_GET
async def poll(request: HttpRequest, key: str) -> HttpResponse:
    """Answer with what happened after `since`, at once or when it happens, after `wait` seconds at most."""
    user = await request.auser()
    project = await in_thread(get_project)(user, key)  # type: ignore[arg-type]  # signed in
    since = _number(request, "since", project.seq)
    epoch = _number(request, "epoch", project.epoch)
    wait = min(float(_number(request, "wait", 0)), MAX_WAIT)
    hub, waiting = current_hub(), Waiting(user.pk or 0)
    feed = hub.watch_board(project, waiting)
    try:
        if since >= project.seq and epoch == project.epoch and wait > 0:
            await feed.wait_beyond(since, wait)
        text, role = await in_thread(catch_up)(
            project.pk, epoch=epoch, after=since, user_id=waiting.user_id
        )
    finally:
        hub.leave_board(feed, waiting)
    if role is None:
        raise Http404
    # `layer` is false: a page that has to ask is not as quick as one with a socket.
    body = f'{{"frames":[{text}],"layer":false}}'
    return HttpResponse(
        body, content_type="application/json", headers={"Cache-Control": "no-store"}
    )


def _number(request: HttpRequest, name: str, default: int) -> int:
    """Return the parameter as a whole number that is not negative, or the default."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else default
