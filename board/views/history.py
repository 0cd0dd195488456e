"""The events of a card as sentences: who did what, when."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from board.models import Event
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
    "FirstApprovalGiven": ("cord", "approved it, as the first of two"),
    "ApprovalLookedAt": ("search", "looked at the question"),
}
FIELDS = {
    "no_check": "whether it needs a check",
    "checks": "the acceptance checks",
    "files": "the files",
    "goal": "the goal",
    "title": "the title",
    "constraints": "the constraints",
    "priority": "the priority",
    "tool_profile": "the tools",
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


def sentences(events: Iterable[Event]) -> list[Sentence]:
    """Return one sentence for each event, in the given order."""
    return [_sentence(event) for event in events]


def _sentence(event: Event) -> Sentence:
    data: dict[str, Any] = event.payload
    if event.kind in SENTENCES:
        glyph, text = SENTENCES[event.kind]
        return Sentence(event, glyph, text)
    tell = TELLERS.get(event.kind)
    return tell(event, data) if tell else Sentence(event, "info", "changed it")


def _edited(event: Event, data: dict[str, Any]) -> Sentence:
    names = [FIELDS.get(name, name) for name in data.get("fields", ())]
    return Sentence(event, "pen", f"changed {_and(names)}")


def _moved(event: Event, data: dict[str, Any]) -> Sentence:
    return Sentence(event, "board", f"moved it within {data.get('column', '')}")


def _queued(event: Event, data: dict[str, Any]) -> Sentence:
    return Sentence(event, "queued", f"queued it for attempt {data.get('attempt', 1)}")


def _claimed(event: Event, data: dict[str, Any]) -> Sentence:
    return Sentence(event, "agent", f"began attempt {data.get('attempt', 1)}", looks="is-running")


def _sent_back(event: Event, data: dict[str, Any]) -> Sentence:
    return Sentence(event, "undo", "sent it back", more=str(data.get("comment", "")))


def _failed(event: Event, data: dict[str, Any]) -> Sentence:
    return Sentence(event, "failed", "failed", more=str(data.get("reason", "")), looks="is-failed")


def _commented(event: Event, data: dict[str, Any]) -> Sentence:
    words = {"steer": "wrote to the agent", "send_back": "sent it back"}
    return Sentence(event, "comment", words.get(data.get("kind_of_comment", ""), "said something"))


def _refused(event: Event, data: dict[str, Any]) -> Sentence:
    files = ", ".join(data.get("files", ()))
    more = str(data.get("reason", "")) + (f" ({files})" if files else "")
    return Sentence(event, "conflict", "could not merge it", more=more, looks="is-failed")


def _asked(event: Event, data: dict[str, Any]) -> Sentence:
    what = str(data.get("what", ""))
    return Sentence(event, "cord", "pulled the cord", more=what, looks="is-waiting")


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
        case ApprovalStatus.RETURNED:
            text = "asked the agent about it"
        case ApprovalStatus.EXPIRED:
            text = "let the question expire"
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


def _policy(event: Event, data: dict[str, Any]) -> Sentence:
    text = f"changed what agents may do here: {data.get('what', '')}"
    return Sentence(event, "lock", text, more=str(data.get("comment", "")))


def _and(names: list[str]) -> str:
    *others, last = names or ["it"]
    return f"{', '.join(others)} and {last}" if others else last


TELLERS: dict[str, Callable[[Event, dict[str, Any]], Sentence]] = {
    "CardEdited": _edited,
    "CardMoved": _moved,
    "CardQueued": _queued,
    "CardClaimed": _claimed,
    "CardBlocked": lambda event, _data: Sentence(event, "blocked", "changed what it needs"),
    "CardSentBack": _sent_back,
    "CardFailed": _failed,
    "CardDone": _done,
    "CardCommented": _commented,
    "MergeRefused": _refused,
    "ApprovalRequested": _asked,
    "ApprovalDecided": _decided,
    "RunChanged": _run,
    "PolicyChanged": _policy,
}
