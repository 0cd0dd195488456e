"""The events of a card as sentences: who did what, when."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from board.models import Card, Event
from board.states import ApprovalStatus, RunStatus, WaitingFor

SENTENCES = {
    "CardCreated": ("plus", "made this card"),
    "CardUnqueued": ("undo", "moved it to the backlog"),
    "CardArchived": ("archive", "archived it"),
    "CardUnblocked": ("link", "has nothing left to wait for"),
    "CardReviewed": ("review", "handed it over for review"),
    "CardRestored": ("undo", "brought it back"),
    "CardCancelled": ("x", "cancelled it"),
    "MergeRequested": ("merge", "asked for the merge"),
}
FIELDS = {
    "no_check": "whether it needs a check",
    "checks": "the acceptance checks",
    "files": "the files",
    "goal": "the goal",
    "title": "the title",
    "constraints": "the constraints",
    "priority": "the priority",
}
WAITS = {
    WaitingFor.APPROVAL: "waits for an answer",
    WaitingFor.INPUT: "waits for a word from a person",
    WaitingFor.RETRY: "waits, because the model is away",
    WaitingFor.LIMIT: "waits for its turn at the model",
    WaitingFor.PAUSE: "was paused",
}


@dataclass(frozen=True)
class Sentence:
    """One line of a history."""

    event: Event
    icon: str
    text: str
    more: str = ""
    looks: str = ""

    @property
    def is_agent(self) -> bool:
        """Whether an agent did it."""
        return self.event.user_id is None and self.event.actor.startswith("agent")


def sentences(card: Card, events: Iterable[Event]) -> list[Sentence]:
    """Return one sentence for each event, in the given order."""
    return [_sentence(card, event) for event in events]


def _sentence(card: Card, event: Event) -> Sentence:
    data: dict[str, Any] = event.payload
    if event.kind in SENTENCES:
        glyph, text = SENTENCES[event.kind]
        return Sentence(event, glyph, text)
    match event.kind:
        case "CardEdited":
            names = [FIELDS.get(name, name) for name in data.get("fields", ())]
            return Sentence(event, "pen", f"changed {_and(names)}")
        case "CardMoved":
            return Sentence(event, "board", f"moved it within {data.get('column', '')}")
        case "CardQueued":
            return Sentence(event, "queued", f"queued it for attempt {data.get('attempt', 1)}")
        case "CardClaimed":
            return Sentence(
                event, "agent", f"began attempt {data.get('attempt', 1)}", looks="is-running"
            )
        case "CardBlocked":
            return Sentence(event, "blocked", "changed what it needs")
        case "CardSentBack":
            return Sentence(event, "undo", "sent it back", more=str(data.get("comment", "")))
        case "CardFailed":
            return Sentence(
                event, "failed", "failed", more=str(data.get("reason", "")), looks="is-failed"
            )
        case "CardDone":
            return _done(event, data)
        case "CardCommented":
            words = {"steer": "wrote to the agent", "send_back": "sent it back"}
            return Sentence(
                event, "comment", words.get(data.get("kind_of_comment", ""), "said something")
            )
        case "MergeRefused":
            files = ", ".join(data.get("files", ()))
            more = str(data.get("reason", "")) + (f" ({files})" if files else "")
            return Sentence(event, "conflict", "could not merge it", more=more, looks="is-failed")
        case "ApprovalRequested":
            return Sentence(
                event, "cord", "pulled the cord", more=str(data.get("what", "")), looks="is-waiting"
            )
        case "ApprovalDecided":
            return _decided(event, data)
        case "RunChanged":
            return _run(event, data)
        case _:
            return Sentence(event, "info", "changed it")


def _done(event: Event, data: dict[str, Any]) -> Sentence:
    sha = str(data.get("sha", ""))
    text = f"merged it as {sha[:9]}" if sha else "finished it by hand"
    return Sentence(event, "done", text, more=str(data.get("delivery", "")), looks="is-done")


def _decided(event: Event, data: dict[str, Any]) -> Sentence:
    match data.get("status"):
        case ApprovalStatus.APPROVED:
            scope = {"run": " for this run", "always": " for ever"}.get(
                str(data.get("scope")), " once"
            )
            text = f"{'edited and ' if data.get('edited') else ''}approved it{scope}"
        case ApprovalStatus.DENIED:
            text = "denied it"
        case _:
            text = "closed the question without an answer"
    return Sentence(event, "cord", text, more=str(data.get("comment", "")))


def _run(event: Event, data: dict[str, Any]) -> Sentence:
    reason = str(data.get("reason", ""))
    match data.get("status"):
        case RunStatus.WAITING:
            kind = data.get("waiting_for")
            text = WAITS[WaitingFor(kind)] if kind else "waits"
            return Sentence(event, "paused", text, more=reason)
        case RunStatus.READY:
            return Sentence(event, "play", "let the run go on", more=reason)
        case RunStatus.RUNNING:
            return Sentence(event, "running", "went on", more=reason, looks="is-running")
        case "cancelling":
            return Sentence(event, "stop", "stopped the agent")
        case status:
            return Sentence(event, "info", f"run: {status}", more=reason)


def _and(names: list[str]) -> str:
    if len(names) < 2:
        return "".join(names) or "it"
    return f"{', '.join(names[:-1])} and {names[-1]}"
