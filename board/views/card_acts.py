"""What people do to a card with one click: queue, move, merge, send back and the rest."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from board.access import get_card
from board.actions import archiving, cards, comments
from board.actions.cancels import cancel_card
from board.actions.lanes import move_card
from board.actions.merges import request_merge
from board.actions.placement import Place
from board.errors import ValidationError
from board.models import Card, Column, Event, Project, User
from board.states import Role
from board.views.card_forms import whole
from board.views.errors import wants_page
from board.views.people import person

Sent = HttpRequest


def _queue(card: Card, user: User, sent: Sent, op_id: str) -> str:
    cards.queue_card(card, by=user, op_id=op_id)
    return f"{card.ref} is queued."


def _unqueue(card: Card, user: User, sent: Sent, op_id: str) -> str:
    cards.unqueue_card(card, by=user, op_id=op_id)
    return f"{card.ref} is back in the backlog."


def _retry(card: Card, user: User, sent: Sent, op_id: str) -> str:
    cards.retry_card(card, by=user, op_id=op_id)
    return f"{card.ref} is queued again."


def _cancel(card: Card, user: User, sent: Sent, op_id: str) -> str:
    cancel_card(card, by=user, op_id=op_id)
    return f"{card.ref} is being cancelled."


def _archive(card: Card, user: User, sent: Sent, op_id: str) -> str:
    archiving.archive_card(card, by=user, op_id=op_id)
    return f"{card.ref} is archived."


def _restore(card: Card, user: User, sent: Sent, op_id: str) -> str:
    if card.archived_at:
        archiving.restore_archived_card(card, by=user, op_id=op_id)
        return f"{card.ref} is back on the board."
    return _unqueue(card, user, sent, op_id)


def _send_back(card: Card, user: User, sent: Sent, op_id: str) -> str:
    cards.send_back(card, by=user, comment=sent.POST.get("comment", ""), op_id=op_id)
    return f"{card.ref} goes back with your words."


def _merge(card: Card, user: User, sent: Sent, op_id: str) -> str:
    request_merge(card, by=user, op_id=op_id)
    return f"{card.ref} is in line for the merge."


def _comment(card: Card, user: User, sent: Sent, op_id: str) -> str:
    steer = bool(sent.POST.get("steer"))
    comments.comment_on_card(
        card, by=user, body=sent.POST.get("body", ""), steer=steer, op_id=op_id
    )
    return "Sent. The agent reads it after its present step." if steer else "Said."


def _move(card: Card, user: User, sent: Sent, op_id: str) -> str:
    columns = Column.objects.filter(project_id=card.project_id)
    column = columns.filter(pk=whole(sent.POST.get("column", "")) or 0).first()
    if column is None:
        raise ValidationError("That column is gone. Reload the board.")
    place = Place(
        column,
        above=_neighbour(card, sent.POST.get("above", "")),
        below=_neighbour(card, sent.POST.get("below", "")),
    )
    move_card(card, by=user, place=place, op_id=op_id)
    return f"{card.ref} is in {column.name}."


def _neighbour(card: Card, ref: str) -> Card | None:
    """Return the card next to which it was dropped; one that has gone is passed over."""
    number = whole(ref.rpartition("-")[2])
    return Card.objects.filter(project_id=card.project_id, number=number or 0).first()


ACTS: dict[str, Callable[[Card, User, Sent, str], str]] = {
    "queue": _queue,
    "unqueue": _unqueue,
    "retry": _retry,
    "cancel": _cancel,
    "archive": _archive,
    "restore": _restore,
    "move": _move,
    "send-back": _send_back,
    "merge": _merge,
    "comment": _comment,
}


@require_POST
def act(request: HttpRequest, ref: str, verb: str) -> HttpResponse:
    """Do one thing to a card and say how the board stands after it.

    A browser that did not hear the answer sends the same `op_id` again, and nothing happens twice.
    """
    user = person(request)
    card = get_card(user, ref, role=Role.MEMBER)
    op_id = request.POST.get("op_id", "")[:40]
    words = "" if _was_done(card, user, op_id) else ACTS[verb](card, user, request, op_id)
    if wants_page(request):
        messages.success(request, words)
        if verb == "archive":
            return redirect("board", key=card.project.key)
        return redirect("card", ref=card.ref)
    card.refresh_from_db(fields=["status", "column", "rank", "rev", "archived_at"])
    seq = Project.objects.values_list("seq", flat=True).get(pk=card.project_id)
    return JsonResponse(
        {
            "ok": True,
            "seq": seq,
            "message": words,
            "ref": card.ref,
            "status": card.status,
            "column": card.column_id,
            "rank": card.rank,
            "rev": card.rev,
        }
    )


def _was_done(card: Card, user: User, op_id: str) -> bool:
    return bool(op_id) and Event.objects.filter(card=card, user=user, op_id=op_id).exists()
