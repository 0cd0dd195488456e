"""Routes of cards. Every change answers with the card as it is afterwards."""

from collections.abc import Sequence

from django.db import transaction
from django.http import Http404
from ninja import Router, Status

from board import access
from board.actions import archiving, cards, lanes
from board.actions.cancels import cancel_card
from board.actions.dependencies import set_dependencies
from board.actions.merges import request_merge
from board.actions.placement import Place
from board.api.answers import CardAnswer, answers
from board.api.bodies import CardFields, Comment, Most, Move, NewCard, unique
from board.api.contents import describe_again, describe_card, with_details
from board.api.tokens import ApiRequest
from board.errors import ValidationError
from board.models import Card, Column, Project
from board.states import CardStatus, Role

router = Router(tags=["cards"])


@router.get("/projects/{key}/cards", response=answers(list[CardAnswer]))
def list_cards(
    request: ApiRequest,
    key: str,
    status: CardStatus | None = None,
    *,
    archived: bool = False,
    limit: Most | None = None,
) -> list[CardAnswer]:
    """List a project's cards by number; archived ones only when asked for."""
    project = access.get_project(request.auth, key)
    found = Card.objects.filter(project=project).order_by("number")
    if status is not None:
        found = found.filter(status=status)
    if not archived:
        found = found.filter(archived_at__isnull=True)
    if limit is not None:
        found = found[:limit]
    return [describe_card(card) for card in with_details(found)]


@router.post("/projects/{key}/cards", response=answers(CardAnswer, status=201))
def create(request: ApiRequest, key: str, body: NewCard) -> Status[CardAnswer]:
    """Add a card to the backlog."""
    project = access.get_project(request.auth, key, role=Role.MEMBER)
    values = body.dict()
    needs = named_cards(project, values.pop("depends_on"), field="depends_on")
    card = cards.create_card(project, by=request.auth, depends_on=needs, **values)
    return Status(201, describe_again(card))


@router.get("/cards/{ref}", response=answers(CardAnswer))
def show(request: ApiRequest, ref: str) -> CardAnswer:
    """Show one card with its runs."""
    return describe_again(access.get_card(request.auth, ref))


@router.patch("/cards/{ref}", response=answers(CardAnswer))
def edit(request: ApiRequest, ref: str, body: CardFields) -> CardAnswer:
    """Change the fields that are sent; all of them or, when one is refused, none."""
    card = access.get_card(request.auth, ref, role=Role.MEMBER)
    values = body.given()
    needs = values.pop("depends_on", None)
    with transaction.atomic():
        if needs is not None:
            chosen = named_cards(card.project, needs, field="depends_on")
            set_dependencies(card, chosen, by=request.auth)
        if values:
            cards.edit_card(card, by=request.auth, **values)
    return describe_again(card)


@router.post("/cards/{ref}/queue", response=answers(CardAnswer))
def queue(request: ApiRequest, ref: str) -> CardAnswer:
    """Give a card of the backlog to the agents."""
    card = access.get_card(request.auth, ref, role=Role.MEMBER)
    cards.queue_card(card, by=request.auth)
    return describe_again(card)


@router.post("/cards/{ref}/unqueue", response=answers(CardAnswer))
def unqueue(request: ApiRequest, ref: str) -> CardAnswer:
    """Take a card back to the backlog."""
    card = access.get_card(request.auth, ref, role=Role.MEMBER)
    cards.unqueue_card(card, by=request.auth)
    return describe_again(card)


@router.post("/cards/{ref}/cancel", response=answers(CardAnswer))
def cancel(request: ApiRequest, ref: str) -> CardAnswer:
    """Cancel a card; an agent that works on it stops within seconds, and then the card is cancelled."""
    card = access.get_card(request.auth, ref, role=Role.MEMBER)
    cancel_card(card, by=request.auth)
    return describe_again(card)


@router.post("/cards/{ref}/retry", response=answers(CardAnswer))
def retry(request: ApiRequest, ref: str) -> CardAnswer:
    """Queue a failed card again, with the cards that failed because of it."""
    card = access.get_card(request.auth, ref, role=Role.MEMBER)
    cards.retry_card(card, by=request.auth)
    return describe_again(card)


@router.post("/cards/{ref}/merge", response=answers(CardAnswer))
def merge(request: ApiRequest, ref: str) -> CardAnswer:
    """Put reviewed work in line for the merge."""
    card = access.get_card(request.auth, ref, role=Role.MEMBER)
    request_merge(card, by=request.auth)
    return describe_again(card)


@router.post("/cards/{ref}/archive", response=answers(CardAnswer))
def archive(request: ApiRequest, ref: str) -> CardAnswer:
    """Take a card off the board; nothing of it is lost."""
    card = access.get_card(request.auth, ref, role=Role.MEMBER)
    archiving.archive_card(card, by=request.auth)
    return describe_again(card)


@router.post("/cards/{ref}/send-back", response=answers(CardAnswer))
def send_back(request: ApiRequest, ref: str, body: Comment) -> CardAnswer:
    """Return reviewed work to the queue with a comment that steers the next attempt."""
    card = access.get_card(request.auth, ref, role=Role.MEMBER)
    cards.send_back(card, by=request.auth, comment=body.comment)
    return describe_again(card)


@router.post("/cards/{ref}/move", response=answers(CardAnswer))
def move(request: ApiRequest, ref: str, body: Move) -> CardAnswer:
    """Move a card; into another lane this is that lane's action, or a refusal with the reason."""
    card = access.get_card(request.auth, ref, role=Role.MEMBER)
    lanes.move_card(card, by=request.auth, place=find_place(card.project, body))
    return describe_again(card)


def find_place(project: Project, body: Move) -> Place:
    """Return where a card should go. Raises ValidationError for what this project does not have."""
    below = find_neighbour(project, body.before, field="before")
    above = find_neighbour(project, body.after, field="after")
    neighbour = above or below
    if body.column is not None:
        column = find_column(project, body.column)
    elif neighbour is not None:
        column = neighbour.column
    else:
        raise ValidationError(
            "Say where: a column, or a card before or after which it goes.",
            fields={"column": "Name a column."},
        )
    for name, card in (("before", below), ("after", above)):
        if card is not None and card.column_id != column.pk:
            raise ValidationError(
                f"{card.ref} is not in {column.name}.",
                fields={name: "Choose a card of the column."},
            )
    return Place(column, above=above, below=below)


def find_column(project: Project, wanted: str | int) -> Column:
    """Return the project's column with this id, name or lane; of a lane, the first."""
    columns = list(Column.objects.filter(project=project))
    word = str(wanted).strip().casefold()
    tests = (
        lambda column: column.name.casefold() == word,
        lambda column: column.lane == word,
        lambda column: str(column.pk) == word,
    )
    for test in tests[2:] if isinstance(wanted, int) else tests:
        for column in columns:
            if test(column):
                return column
    names = ", ".join(column.name for column in columns)
    raise ValidationError(
        f"This board has no column called {wanted}.", fields={"column": f"One of {names}."}
    )


def find_neighbour(project: Project, ref: str | None, *, field: str) -> Card | None:
    """Return the project's card called `ref`, or None where none is named."""
    return None if ref is None else named_cards(project, [ref], field=field)[0]


def named_cards(project: Project, refs: Sequence[str], *, field: str) -> list[Card]:
    """Return the project's cards with these names; one of another project is as unknown as none."""
    numbers = [number_in(project, ref, field=field) for ref in unique(refs)]
    rows = Card.objects.filter(project=project, number__in=numbers)
    found = {card.number: card for card in rows.select_related("project", "column")}
    for number in numbers:
        if number not in found:
            raise unknown_card(project, f"{project.key}-{number}", field=field)
    return [found[number] for number in numbers]


def number_in(project: Project, ref: str, *, field: str) -> int:
    """Return the 12 of KEY-12. Raises ValidationError unless KEY is this project."""
    try:
        key, number = access.split_ref(ref)
    except Http404 as error:
        raise unknown_card(project, ref, field=field) from error
    if key != project.key:
        raise unknown_card(project, ref, field=field)
    return number


def unknown_card(project: Project, ref: str, *, field: str) -> ValidationError:
    """Return the refusal of a name that no card of this project has."""
    return ValidationError(
        f"{project.key} has no card called {ref[:40]}.",
        fields={field: f"Name cards of this project, such as {project.key}-1."},
    )
