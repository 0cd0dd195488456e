"""The route of events: what happened on a board, in order."""

from ninja import Router

from board import access
from board.api.answers import EventAnswer, answers
from board.api.bodies import After, Limit
from board.api.contents import describe_event
from board.api.tokens import ApiRequest
from board.models import Event

router = Router(tags=["events"])


@router.get("/events", response=answers(list[EventAnswer]))
def list_events(
    request: ApiRequest, project: str, after: After = 0, limit: Limit = 200
) -> list[EventAnswer]:
    """List a project's events behind the seq `after`, oldest first."""
    row = access.get_project(request.auth, project)
    found = Event.objects.filter(project=row, seq__gt=after).select_related("card")
    return [describe_event(event, row.key) for event in found.order_by("seq")[:limit]]
