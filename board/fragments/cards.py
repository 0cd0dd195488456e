"""Cards as HTML: one place that loads all a card shows, and one that draws it.

Drawn by string, not by template: a board shows hundreds at once, and a template takes 0.3 ms for each.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from html import escape

from django.db.models import Count, F, IntegerField, OuterRef, QuerySet, Subquery, Window
from django.db.models.functions import Coalesce, RowNumber

from board.actions.claims import overlap
from board.fragments.questions import open_questions
from board.fragments.strips import strip
from board.models import Approval, Card, Comment, Dependency, Label, Project
from board.states import CardStatus, WaitingFor
from board.templatetags.markup import agent_face, face, icon, money, plural, priority_bars, tokens

UNDER_WAY = (CardStatus.RUNNING, CardStatus.MERGING)
# What a run stores that no card shows; the diff alone may be megabytes.
HEAVY = ("run__evidence", "run__changes", "run__summary", "run__remaining", "run__workspace")


@dataclass
class BoardCard:
    """A card with everything that its face shows."""

    card: Card
    question: Approval | None = None  # the cord that its run has pulled
    waits_for: list[str] = field(default_factory=list)  # refs of needed cards that are not done
    labels: list[Label] = field(default_factory=list)
    comments: int = 0
    shares: tuple[str, str] | None = None  # a file, and the card under way that has it
    churn: tuple[int, int, int] | None = None  # files, additions, deletions

    @property
    def pk(self) -> int:
        """The card's id."""
        return self.card.pk

    @property
    def rev(self) -> int:
        """Rises with every change that a card shows."""
        return self.card.rev

    @property
    def rank(self) -> str:
        """Where it stands in its column."""
        return self.card.rank

    @property
    def column_id(self) -> int:
        """The column it stands in."""
        return self.card.column_id


def board_cards(
    project: Project,
    *,
    ids: Collection[int] | None = None,
    first: int | None = None,
    questions: list[Approval] | None = None,
) -> list[BoardCard]:
    """Return the project's cards that are on the board, by column and rank, in at most six queries.

    `ids` are the only ones wanted; `first` is how many of each column. Archived cards are left out.
    """
    rows = _rows(project)
    if ids is not None:
        rows = rows.filter(pk__in=ids)
    if first is not None:
        place = Window(RowNumber(), partition_by=F("column_id"), order_by=F("rank").asc())
        rows = rows.annotate(place=place).filter(place__lte=first)
    return dress(
        project, rows.order_by("column_id", "rank"), questions=questions, is_whole=ids is None
    )


def column_cards(
    project: Project, column_id: int, *, after: str, first: int
) -> tuple[list[BoardCard], bool]:
    """Return the next cards of a column below the rank `after`, and whether there are more."""
    rows = _rows(project).filter(column_id=column_id, rank__gt=after).order_by("rank")
    found = dress(project, rows[: first + 1])
    return found[:first], len(found) > first


def _rows(project: Project) -> QuerySet[Card]:
    said = (
        Comment.objects.filter(card=OuterRef("pk"))
        .order_by()
        .values("card")
        .annotate(number=Count("pk"))
        .values("number")
    )
    return (
        Card.objects.filter(project=project, archived_at__isnull=True)
        .select_related("run", "assignee", "failed_by")
        .defer("goal", "constraints", "remaining", "delivery", *HEAVY)
        .annotate(
            said=Coalesce(Subquery(said, output_field=IntegerField()), 0),
            changed=F("run__changes__files"),
            added=F("run__changes__additions"),
            taken=F("run__changes__deletions"),
        )
    )


def dress(
    project: Project,
    rows: Iterable[Card],
    *,
    questions: list[Approval] | None = None,
    is_whole: bool = False,
) -> list[BoardCard]:
    """Add to each card what is not in its own row. A whole board holds the cards under way already."""
    found: list[BoardCard] = []
    for card in rows:
        card.project = project
        numbers = [getattr(card, name) for name in ("changed", "added", "taken")]
        churn = tuple(numbers) if all(isinstance(number, int) for number in numbers) else None
        found.append(BoardCard(card, comments=getattr(card, "said", 0), churn=churn))
    _add_labels(found)
    _add_questions(project, found, questions)
    _add_blockers(project, found)
    _add_shared_files(project, found, is_whole=is_whole)
    return found


def _add_labels(found: list[BoardCard]) -> None:
    """Load the labels in one query; a prefetch would make a query set for every card."""
    by_card = {face.pk: face for face in found}
    links = Card.labels.through.objects.filter(card_id__in=by_card).select_related("label")
    for link in links.order_by("label__name"):
        by_card[link.card_id].labels.append(link.label)


def _add_questions(
    project: Project, found: list[BoardCard], questions: list[Approval] | None
) -> None:
    waiting = {
        face.card.run_id: face
        for face in found
        if face.card.run and face.card.run.waiting_for == WaitingFor.APPROVAL
    }
    if not waiting:
        return
    for question in reversed(open_questions(project) if questions is None else questions):
        if question.run_id in waiting:
            waiting[question.run_id].question = question


def _add_blockers(project: Project, found: list[BoardCard]) -> None:
    blocked = {face.pk: face for face in found if face.card.unmet}
    if not blocked:
        return
    links = Dependency.objects.filter(card_id__in=blocked).exclude(needs__status=CardStatus.DONE)
    for card_id, number in links.order_by("needs__number").values_list("card_id", "needs__number"):
        blocked[card_id].waits_for.append(f"{project.key}-{number}")


def _add_shared_files(project: Project, found: list[BoardCard], *, is_whole: bool) -> None:
    """Say why a queued card is passed over: a card under way names one of its files."""
    waiting = [
        face
        for face in found
        if face.card.status == CardStatus.QUEUED and not face.card.unmet and face.card.files
    ]
    if not waiting:
        return
    busy = sorted(
        (face.card for face in found if face.card.status in UNDER_WAY)
        if is_whole
        else Card.objects.filter(project=project, status__in=UNDER_WAY).only("number", "files"),
        key=lambda card: card.number,
    )
    for found_card in waiting:
        for other in busy:
            if both := overlap(found_card.card.files, other.files):
                found_card.shares = (both[0], f"{project.key}-{other.number}")
                break


def render_card(face: BoardCard) -> str:
    """Return the card as an `<li>`, the same for everyone who may see it."""
    card = face.card
    look = strip(face)
    labels = "".join(
        f'<span class="label hue-{label.hue}">{escape(label.name)}</span>' for label in face.labels
    )
    ref = card.ref
    tab = "run/" if face.question else ""
    return (
        f'<li class="card{look.classes}" id="card-{card.pk}" data-ref="{ref}" data-rank="{escape(card.rank)}"'
        f' data-rev="{card.rev}" data-column="{card.column_id}" data-status="{card.status}">'
        f'{look.rope}<div class="card__top"><span class="card__id">{ref}</span>'
        f'{priority_bars(card.priority)}<span class="grow"></span>{labels}</div>'
        f'<h3 class="card__title" dir="auto"><a href="/cards/{ref}/{tab}">{escape(card.title)}</a></h3>'
        f"{look.strip}{look.acts}{_meta(face)}{look.line}</li>"
    )


def _meta(face: BoardCard) -> str:
    card, run = face.card, face.card.run
    bits = [*_queue_words(face)]
    if run and run.cost_microusd:
        bits.append(
            f'<span>{icon("coin")}<span class="clip">{money(run.cost_microusd)}</span></span>'
        )
    if run and (
        used := run.input_tokens
        + run.output_tokens
        + run.cache_read_tokens
        + run.cache_write_tokens
    ):
        bits.append(f'<span><span class="clip">{tokens(used)} tok</span></span>')
    if card.status == CardStatus.BACKLOG and card.checks:
        bits.append(
            f'<span>{icon("plan")}<span class="clip">{plural(len(card.checks), "check")}</span></span>'
        )
    if card.status == CardStatus.DONE:
        bits.append(_done_words(card))
    if card.status == CardStatus.CANCELLED:
        bits.append(f'<span>{icon("x")}<span class="clip">Cancelled</span></span>')
    if face.comments:
        bits.append(
            f'<span>{icon("comment")}<span class="clip">{face.comments}'
            '<span class="sr"> comments</span></span></span>'
        )
    who = agent_face(run.agent) if run and run.agent and run.is_live else ""
    who += _person(card)
    if not bits and not who:
        return ""
    return f'<div class="card__meta">{"".join(bits)}<span class="grow"></span>{who}</div>'


def _person(card: Card) -> str:
    return face(card.assignee) if card.assignee else ""


def _done_words(card: Card) -> str:
    if card.merged_sha:
        sha = escape(card.merged_sha[:7])
        return f'<span>{icon("merge")}<span class="clip">Merged <code>{sha}</code></span></span>'
    return f'<span>{icon("check")}<span class="clip">Done by hand</span></span>'


def _queue_words(face: BoardCard) -> list[str]:
    """Say why a queued card is not at work yet. Which one is next, and whether there is a key, CSS shows."""
    card = face.card
    if face.waits_for:
        more = f" and {len(face.waits_for) - 1} more" if len(face.waits_for) > 1 else ""
        return [
            f'<span>{icon("blocked")}<span class="clip">Waits for {face.waits_for[0]}{more}</span></span>'
        ]
    if card.status != CardStatus.QUEUED:
        return []
    if face.shares:
        name, other = face.shares
        return [
            f'<span title="{escape(name)}">{icon("file")}<span class="clip">Shares a file with {other}</span></span>'
        ]
    return [
        f'<span class="ready">{icon("agent")}<span class="clip ready__next">Next to be claimed</span>'
        '<span class="clip ready__later">Waits for an agent</span>'
        '<span class="clip ready__keyless">Waits for a model key</span></span>'
    ]
