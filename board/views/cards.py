"""The drawer of a card beside its board: the task, its run, its changes, its history; and its forms."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from board.access import get_card, get_project
from board.actions import cards
from board.actions.dependencies import set_dependencies
from board.errors import BoardError, TransitionError
from board.models import Card, Column, Project
from board.states import Lane, Role
from board.templatetags.markup import PRIORITIES, PROFILES
from board.views.boards import board_context
from board.views.card_forms import CardText, found_cards, read_form, text_of, whole
from board.views.drawers import changes_tab, head_of, history_tab, run_tab, task_tab
from board.views.errors import wants_page
from board.views.people import person

TABS = {"task": task_tab, "run": run_tab, "changes": changes_tab, "history": history_tab}


@require_safe
def show(request: HttpRequest, ref: str, tab: str = "task") -> HttpResponse:
    """Show a card: the drawer alone for our own script, else the board with the drawer open."""
    card = get_card(person(request), ref)
    attempt = whole(request.GET.get("attempt", ""))
    context = {**head_of(card, tab), **TABS[tab](card, attempt)}
    return _drawer(request, card.project, context)


def _drawer(
    request: HttpRequest, project: Project, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    if "X-Drawer" in request.headers:
        return render(request, "cards/_drawer.html", {"project": project, **context}, status=status)
    page = {**board_context(project), **context}
    return render(request, "boards/board.html", page, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest, key: str) -> HttpResponse:
    """Show the form of a new card, or add the card, and queue it if asked."""
    project = get_project(person(request), key, role=Role.MEMBER)
    column = _chosen_column(request, project)
    if request.method != "POST":
        title = request.GET.get("title", "")
        text = CardText(title=title, column=str(column.pk) if column else "")
        return _form(request, project, text=text)
    text = read_form(request.POST)
    try:
        card = _create(request, project, text)
    except BoardError as error:
        return _refused(request, project, error, text=text)
    if wants_page(request):
        return redirect("card", ref=card.ref)
    return JsonResponse({"ok": True, "ref": card.ref, "url": f"/cards/{card.ref}/"}, status=201)


def _create(request: HttpRequest, project: Project, text: CardText) -> Card:
    user, op_id = person(request), request.POST.get("op_id", "")
    column = _chosen_column(request, project)
    # What is queued at once is one act: a card without a check is not left behind in the backlog.
    with transaction.atomic():
        card = cards.create_card(
            project,
            by=user,
            depends_on=found_cards(project, text.depends_on),
            column=column if column and column.lane == Lane.BACKLOG else None,
            op_id=op_id,
            **text.values(),
        )
        if request.POST.get("then") == "queue":
            cards.queue_card(card, by=user)
    return card


def _chosen_column(request: HttpRequest, project: Project) -> Column | None:
    wanted = whole(request.POST.get("column") or request.GET.get("column") or "")
    return project.columns.filter(pk=wanted or 0, lane=Lane.BACKLOG).first()


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, ref: str) -> HttpResponse:
    """Show the form of a card, or save it; a conflict shows both texts."""
    card = get_card(person(request), ref, role=Role.MEMBER)
    if request.method != "POST":
        return _form(request, card.project, text=text_of(card), card=card)
    text = read_form(request.POST)
    try:
        _save(request, card, text)
    except TransitionError as error:
        fresh = get_card(person(request), ref)
        return _refused(request, card.project, error, text=text, card=fresh, theirs=text_of(fresh))
    except BoardError as error:
        return _refused(request, card.project, error, text=text, card=card)
    if wants_page(request):
        return redirect("card", ref=card.ref)
    return JsonResponse(
        {"ok": True, "ref": card.ref, "url": f"/cards/{card.ref}/", "rev": card.rev}
    )


def _save(request: HttpRequest, card: Card, text: CardText) -> None:
    user = person(request)
    op_id = request.POST.get("op_id", "")
    rev = text.rev
    with transaction.atomic():
        needs = found_cards(card.project, text.depends_on)
        present = set(card.dependencies.values_list("needs_id", flat=True))
        cards.edit_card(card, by=user, rev=rev, op_id=op_id, **text.values())
        if {need.pk for need in needs} != present:
            set_dependencies(card, needs, by=user)


def _form(
    request: HttpRequest,
    project: Project,
    *,
    text: CardText,
    card: Card | None = None,
    error: BoardError | None = None,
    theirs: CardText | None = None,
) -> HttpResponse:
    context = {
        "drawer": "form",
        "card": card,
        "text": text,
        "errors": error.fields if error else {},
        "refusal": error.message if error and not error.fields else "",
        "theirs": theirs,
        "queue_first": request.GET.get("then") == "queue",
        "priorities": _priorities(text.priority),
        "profiles": [
            ("", f"As the project: {PROFILES[project.tool_profile].lower()}"),
            *PROFILES.items(),
        ],
    }
    return _drawer(request, project, context, status=error.status if error else 200)


def _priorities(chosen: str) -> list[tuple[str, str]]:
    """Return what may be chosen; a program may have given a priority beyond urgent, which stays."""
    known = [(str(value), name) for value, name in PRIORITIES.items()]
    return known if chosen in dict(known) else [*known, (chosen, chosen)]


def _refused(
    request: HttpRequest,
    project: Project,
    error: BoardError,
    *,
    text: CardText,
    card: Card | None = None,
    theirs: CardText | None = None,
) -> HttpResponse:
    """Answer with the form as it was sent, and what is wrong with it."""
    if wants_page(request):
        return _form(request, project, text=text, card=card, error=error, theirs=theirs)
    body: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "fields": error.fields,
    }
    if theirs is not None:
        body["theirs"] = asdict(theirs)
    return JsonResponse(body, status=error.status)
