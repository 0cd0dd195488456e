"""The board of a project, the rest of a long column, and the cards that were archived."""

from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from board.access import get_project
from board.fragments import BoardCard, board_cards, column_cards, render_card, render_notices
from board.fragments.questions import cord, open_questions
from board.models import Card, Column, Project
from board.states import Lane
from board.views.card_forms import whole
from board.views.people import person

FIRST = 60  # cards of a column that come with the page; the rest follows on demand
LANES = {
    Lane.BACKLOG: ("draft", "Ideas and drafts. Agents leave them alone."),
    Lane.QUEUED: ("queued", "Drop a card here, and an agent may claim it."),
    Lane.RUNNING: ("running", "Nothing runs. A worker takes cards from Queued by itself."),
    Lane.REVIEW: ("review", "Verified work waits here for a person."),
    Lane.MERGING: ("merge", "Approved work is tested once more here, then merged."),
    Lane.DONE: ("done", "Merged work ends here."),
}


@require_safe
def show(request: HttpRequest, key: str) -> HttpResponse:
    """Show the board."""
    project = get_project(person(request), key)
    return render(request, "boards/board.html", board_context(project))


def board_context(project: Project) -> dict[str, Any]:
    """Return what the board page shows. `project` must be read before: its seq is older than its cards."""
    questions = open_questions(project)
    on_board = Count("cards", filter=Q(cards__archived_at__isnull=True))
    columns = list(
        Column.objects.filter(project=project).annotate(total=on_board).order_by("position", "pk")
    )
    # The totals are of a moment before the cards. Whether a column goes on is told by its cards alone:
    # behind the end of what is loaded, the live client shows nothing.
    cards: dict[int, list[BoardCard]] = {column.pk: [] for column in columns}
    for face in board_cards(project, first=FIRST + 1, questions=questions):
        cards[face.column_id].append(face)
    lanes = []
    for column in columns:
        glyph, hint = LANES[Lane(column.lane)]
        shown, goes_on = cards[column.pk][:FIRST], len(cards[column.pk]) > FIRST
        lanes.append(
            {
                "column": column,
                "icon": glyph,
                "hint": hint,
                "cards": "".join(render_card(face) for face in shown),
                "end": shown[-1].rank if goes_on else "",
                "is_over": column.limit is not None and column.total > column.limit,
                "takes_new": column.lane in {Lane.BACKLOG, Lane.QUEUED},
            }
        )
    return {
        "project": project,
        "place": "board",
        "tab": "board",
        "lanes": lanes,
        "cord": cord(questions),
        "notices": render_notices(project),
    }


@require_safe
def lane(request: HttpRequest, key: str, column_id: int) -> HttpResponse:
    """Return the next cards of a column, below the rank `after`."""
    project = get_project(person(request), key)
    column = get_object_or_404(Column, pk=column_id, project=project)
    after = request.GET.get("after", "")
    found, has_more = column_cards(project, column.pk, after=after, first=FIRST)
    response = HttpResponse("".join(render_card(face) for face in found))
    response["X-End"] = found[-1].rank if found and has_more else ""
    return response


@require_safe
def archive(request: HttpRequest, key: str) -> HttpResponse:
    """List the archived cards, latest first."""
    project = get_project(person(request), key)
    rows = Card.objects.filter(project=project, archived_at__isnull=False).order_by("-archived_at")
    page = whole(request.GET.get("page", "1")) or 1
    start = (page - 1) * FIRST
    cards = list(rows.defer("goal")[start : start + FIRST + 1])
    for card in cards:
        card.project = project
    context = {
        "project": project,
        "place": "board",
        "tab": "archive",
        "cards": cards[:FIRST],
        "next": page + 1 if len(cards) > FIRST else None,
    }
    return render(request, "boards/archive.html", context)
