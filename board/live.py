"""Events -> what open browsers do about them: always the present state of what an event touched.

Everything here is the same for all viewers of a project, so it is made once and sent to all of them.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db.models import Count, Q

from board import fragments
from board.actions.claims import overlap
from board.models import Card, Column, Dependency, Event, Project
from board.states import CardStatus

Op = dict[str, Any]

MAX_TOASTS = 20  # sentences in one frame; a browser that slept hears a summary instead

# Events after which the approval banner may look different.
CORD_KINDS = frozenset(
    {
        "ApprovalRequested",
        "ApprovalDecided",
        "ApprovalLookedAt",
        "FirstApprovalGiven",
        "CardArchived",
        "CardCancelled",
        "CardEdited",
        "CardFailed",
        "RunChanged",
    }
)
# Events that ask for attention: shown, not only spoken.
LOUD_KINDS = frozenset({"ApprovalRequested", "CardFailed", "MergeRefused"})


def frame(kind: str, **fields: Any) -> str:
    """Return one frame as the text that goes over the wire."""
    return json.dumps({"type": kind, **fields}, separators=(",", ":"), default=str)


def ops_for(project: Project, events: Sequence[Event]) -> list[Op]:
    """Return what a browser must do so that it shows the present state of all that `events` touched.

    However many events touch a card, it is drawn once. Later events may be in the result already;
    the `rev` of each card lets a browser apply them again without harm.
    """
    touched = {event.card_id for event in events if event.card_id is not None}
    kinds = {event.kind for event in events}
    refs: dict[int, str] = {}
    ops: list[Op] = []
    if touched:
        ops, refs = _card_ops(project, touched, _kinds_of(events))
        ops += count_ops(project)
    if kinds & CORD_KINDS:
        html, number = fragments.render_cord(project)
        ops.append({"op": "cord", "html": html, "n": number})
    if "ProjectChanged" in kinds:
        ops.append({"op": "notices", "html": fragments.render_notices(project)})
        if any(event.payload.get("what") == "columns" for event in events):
            ops.append({"op": "col"})
    return ops + [_toast(event, refs) for event in events[-MAX_TOASTS:]]


def count_ops(project: Project) -> list[Op]:
    """Return how many cards each column of the board holds."""
    on_board = Count("cards", filter=Q(cards__archived_at__isnull=True))
    columns = Column.objects.filter(project=project).annotate(n=on_board).order_by("position", "pk")
    return [
        {"op": "count", "column": pk, "n": n, "limit": limit}
        for pk, n, limit in columns.values_list("pk", "n", "limit")
    ]


def _card_ops(
    project: Project, ids: Collection[int], kinds: dict[int, list[str]]
) -> tuple[list[Op], dict[int, str]]:
    ops = put_ops(project, {*ids, *neighbours(project, ids)})
    shown = {op["id"] for op in ops}
    refs: dict[int, str] = {}
    # Read after the cards: one that came back in between is drawn by the event that brought it back.
    rows = Card.objects.filter(project=project, pk__in=ids).order_by("pk")
    for pk, number, rev, archived_at in rows.values_list("pk", "number", "rev", "archived_at"):
        refs[pk] = f"{project.key}-{number}"
        if pk not in shown and archived_at is not None:
            ops.append({"op": "del", "id": pk, "rev": rev})
        ops.append({"op": "card", "id": pk, "ref": refs[pk], "rev": rev, "kinds": kinds[pk]})
    return ops, refs


def put_ops(project: Project, ids: Collection[int]) -> list[Op]:
    """Return the cards of `ids` that are on the board, drawn."""
    return [
        {
            "op": "put",
            "id": card.pk,
            "rev": card.rev,
            "column": card.column_id,
            "rank": card.rank,
            "html": fragments.render_card(card),
        }
        for card in fragments.board_cards(project, ids=ids)
    ]


def neighbours(project: Project, ids: Collection[int]) -> set[int]:
    """Return the other cards whose face tells of these: they need one, or wait for one's files."""
    found = set(Dependency.objects.filter(needs__in=ids).values_list("card_id", flat=True))
    files = Card.objects.filter(pk__in=ids).exclude(files=[]).values_list("files", flat=True)
    named = [name for names in files for name in names]
    if named:
        waiting = Card.objects.filter(project=project, status=CardStatus.QUEUED).exclude(files=[])
        rows = waiting.values_list("pk", "files")
        found |= {pk for pk, names in rows if overlap(names, named)}
    return found


def _kinds_of(events: Iterable[Event]) -> dict[int, list[str]]:
    kinds: dict[int, list[str]] = {}
    for event in events:
        if event.card_id is not None and event.kind not in kinds.setdefault(event.card_id, []):
            kinds[event.card_id].append(event.kind)
    return kinds


def _toast(event: Event, refs: dict[int, str]) -> Op:
    ref = refs.get(event.card_id or 0, "")
    return {
        "op": "toast",
        "text": sentence(event, ref),
        "ref": ref,
        "user": event.user_id,
        "loud": event.kind in LOUD_KINDS,
    }


SENTENCES = {
    "CardCreated": "{actor} added {ref}.",
    "CardEdited": "{actor} edited {ref}.",
    "CardMoved": "{actor} moved {ref} to {column}.",
    "CardArchived": "{actor} archived {ref}.",
    "CardQueued": "{actor} queued {ref}.",
    "CardUnqueued": "{actor} moved {ref} to the backlog.",
    "CardClaimed": "{actor} started on {ref}, attempt {attempt}.",
    "CardUnblocked": "{ref} is no longer blocked.",
    "CardBlocked": "What {ref} needs has changed.",
    "CardSentBack": "{actor} sent {ref} back.",
    "CardReviewed": "{ref} is ready for review.",
    "CardFailed": "{ref} failed.",
    "CardRestored": "{ref} is back on the board.",
    "CardCancelled": "{actor} cancelled {ref}.",
    "CardDone": "{ref} is done.",
    "CardCommented": "{actor} commented on {ref}.",
    "ApprovalRequested": "{actor} asks about {ref}: {what}",
    "FirstApprovalGiven": "{actor} approved a question of {ref}; a second person must too.",
    "ApprovalLookedAt": "{actor} looks at a question of {ref}.",
    "MergeRequested": "{ref} waits to be merged.",
    "MergeRefused": "{ref} could not be merged.",
}
DECISIONS = {
    "approved": "{actor} approved a question of {ref}.",
    "denied": "{actor} denied a question of {ref}.",
    "returned": "{actor} asked the agent something about {ref}.",
    "expired": "A question of {ref} expired.",
}
RUNS = {
    "waiting": "{ref} waits.",
    "ready": "{ref} can go on.",
    "running": "{actor} works on {ref} again.",
    "cancelling": "{actor} cancels {ref}.",
}


def sentence(event: Event, ref: str) -> str:
    """Say in one sentence what happened, for a screen reader and for notices."""
    payload = event.payload
    match event.kind:
        case "ApprovalDecided":
            text = DECISIONS.get(str(payload.get("status")), "A question of {ref} was closed.")
        case "RunChanged":
            text = RUNS.get(str(payload.get("status")), "{ref} has changed.")
        case "PolicyChanged":
            text = f"{{actor}} changed what agents may do{' on {ref}' if ref else ''}: {{what}}."
        case kind:
            text = SENTENCES.get(kind, "The project has changed.")
    words = {
        "actor": event.actor,
        "ref": ref,
        "column": payload.get("column", ""),
        "attempt": payload.get("attempt", ""),
        "what": str(payload.get("what", ""))[:120],
    }
    return text.format(**words)
