"""What happens on a board, and `publish`, the one door to open browsers. Called only by `board.actions`."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

from django.db import connection, transaction

from board import bus
from board.models import Event, User
from board.redaction import redact


@dataclass(frozen=True)
class BoardEvent:
    """Something that happened. `card_id` is the card that shows it; `run_id` the run it is about."""

    card_id: int | None = None
    run_id: int | None = None


@dataclass(frozen=True)
class CardCreated(BoardEvent):
    """A card was added."""


@dataclass(frozen=True)
class CardEdited(BoardEvent):
    """A card's text changed; `fields` are the names of what did."""

    fields: tuple[str, ...] = ()
    rev: int = 0  # of the card, after the edit


@dataclass(frozen=True)
class CardMoved(BoardEvent):
    """A card changed its column or its place, without changing its status."""

    column: str = ""


@dataclass(frozen=True)
class CardArchived(BoardEvent):
    """A card left the board."""


@dataclass(frozen=True)
class CardQueued(BoardEvent):
    """A person put a card in the queue; `attempt` is the next one's number."""

    attempt: int = 1


@dataclass(frozen=True)
class CardUnqueued(BoardEvent):
    """A person took a card out of the queue."""


@dataclass(frozen=True)
class CardClaimed(BoardEvent):
    """A worker began an attempt."""

    attempt: int = 1


@dataclass(frozen=True)
class CardUnblocked(BoardEvent):
    """The last card that it needed is done."""


@dataclass(frozen=True)
class CardBlocked(BoardEvent):
    """What it needs changed: `unmet` cards are not done."""

    unmet: int = 0


@dataclass(frozen=True)
class CardSentBack(BoardEvent):
    """A person sent the work back with a comment."""

    comment: str = ""


@dataclass(frozen=True)
class CardReviewed(BoardEvent):
    """The work passed its checks and waits for a person."""


@dataclass(frozen=True)
class CardFailed(BoardEvent):
    """The card failed; `reason` is for people."""

    kind: str = ""
    reason: str = ""


@dataclass(frozen=True)
class CardRestored(BoardEvent):
    """A failed or cancelled card is back in the queue or the backlog."""


@dataclass(frozen=True)
class CardCancelled(BoardEvent):
    """A person cancelled the card."""


@dataclass(frozen=True)
class CardDone(BoardEvent):
    """The card is done; `delivery` says what became of the merge in the user's repository."""

    sha: str = ""
    delivery: str = ""


@dataclass(frozen=True)
class CardCommented(BoardEvent):
    """A person said something on the card or to the agent."""

    kind_of_comment: str = "comment"


@dataclass(frozen=True)
class RunChanged(BoardEvent):
    """A run began, was put aside, became ready, continued or ended; `status` says which."""

    status: str = ""
    waiting_for: str = ""
    reason: str = ""


@dataclass(frozen=True)
class ApprovalRequested(BoardEvent):
    """An agent pulled the cord."""

    approval_id: int = 0
    what: str = ""


@dataclass(frozen=True)
class ApprovalDecided(BoardEvent):
    """A question was answered, or ended without an answer."""

    approval_id: int = 0
    status: str = ""
    scope: str = ""
    comment: str = ""
    edited: bool = False


@dataclass(frozen=True)
class FirstApprovalGiven(BoardEvent):
    """The first of two people approved a critical call; the question stays open for the second."""

    approval_id: int = 0


@dataclass(frozen=True)
class ApprovalLookedAt(BoardEvent):
    """A person began to look at an open question; the others see it."""

    approval_id: int = 0


@dataclass(frozen=True)
class MergeRequested(BoardEvent):
    """The card waits to be merged."""


@dataclass(frozen=True)
class MergeRefused(BoardEvent):
    """The merge did not go through: `files` conflict, or `reason` says why."""

    files: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class ProjectChanged(BoardEvent):
    """The project's state, settings, columns or members changed."""

    what: str = ""


@dataclass(frozen=True)
class PolicyChanged(BoardEvent):
    """A person changed what agents may do in the project, or for one card."""

    what: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Actor:
    """Who did it: a person, or a name such as `agent-3` or `Pullcord`."""

    name: str
    user_id: int | None = None

    PULLCORD: ClassVar["Actor"]

    @classmethod
    def person(cls, user: User) -> "Actor":
        """Return the actor for a signed-in person."""
        return cls(name=str(user), user_id=user.pk)


Actor.PULLCORD = Actor(name="Pullcord")


def publish(project_id: int, event: BoardEvent, *, by: Actor, op_id: str = "") -> int:
    """Store `event`, ring the project's doorbell after commit, and return the event's seq.

    Call it last in a transaction: it locks the project's row until the commit, which is what makes
    the order of seq the order of commits, without gaps. `op_id` is the browser's own name for its act.
    """
    seq = next_seq(project_id)
    payload: dict[str, Any] = redact(asdict(event))
    card_id, run_id = payload.pop("card_id"), payload.pop("run_id")
    Event.objects.create(
        project_id=project_id,
        seq=seq,
        kind=type(event).__name__,
        card_id=card_id,
        run_id=run_id,
        user_id=by.user_id,
        actor=by.name,
        payload=payload,
        op_id=op_id[:40],
    )
    transaction.on_commit(partial(bus.ring, bus.project_group(project_id)))
    return seq


def next_seq(project_id: int) -> int:
    """Raise the project's event counter by one under its row lock and return it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE board_project SET seq = seq + 1 WHERE id = %s RETURNING seq", [project_id]
        )
        (seq,) = cursor.fetchone()
    return int(seq)
