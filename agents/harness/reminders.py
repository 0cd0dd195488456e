"""What the harness says by itself between two turns, and when a run is over.

Everything here is a function of the journal, so that a run that is continued elsewhere hears
the same, once.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from agents.harness import prompts
from agents.harness.errors import FailureKind, FatalError
from agents.harness.history import Conversation, Note, Turn, is_settled
from agents.harness.limits import AUTOMATIC, NUDGE_AT, RepetitionWatch
from agents.harness.ports import Entry, Json, Outcome

MOST_PAUSES = 10  # pause_turn in a row
MOST_CUT_OFF = 3  # turns in a row that ended at the output limit and called nothing
TODO_EVERY = 5  # turns between two looks at an unchanged to-do list


def outcome(conversation: Conversation) -> Outcome | None:
    """The agent's report, if it has given one and nobody has said anything since.

    Raises FatalError if the agent goes on without getting anywhere.
    """
    last = conversation.last
    if last is None or _has_news(last):
        return None
    report = _settled_call(last, "report_result")
    if report is not None:
        fields = report.request["input"]
        return Outcome(
            str(fields["status"]), str(fields.get("summary", "")), _text(fields.get("remaining"))
        )
    idle = _idle_turns(conversation)
    _check_idle(idle)
    if sum(_is_silent(turn) for turn in idle) > 1 and _is_silent(last):
        said = "\n".join(block["text"] for block in last.content if block["type"] == "text")
        return Outcome("silent", said)
    return None


def due_notes(conversation: Conversation, watch: RepetitionWatch) -> Iterator[Note]:
    """What is to be said now, and has not been said yet."""
    last = conversation.last
    if last is None:
        return
    said = {note.source for note in last.notes}
    if not last.calls and not last.notes and last.stop_reason != "pause_turn":
        yield Note("reminder", _reminder(last))
    if last.calls and "loop" not in said and watch.repeats and watch.repeats % NUDGE_AT == 0:
        latest = last.entries[last.calls[-1].id].request["tool"]
        yield Note("loop", prompts.repeated(latest, watch.repeats))
    if last.calls and "todo" not in said:
        items = _due_todo(conversation)
        if items:
            yield Note("todo", prompts.todo_state(items))


def todo_items(entries: Sequence[Entry]) -> list[Json]:
    """The to-do list as the agent last wrote it."""
    for entry in reversed(entries):
        if entry.request.get("tool") == "todo_write" and _succeeded(entry):
            return list(entry.request["input"].get("items", []))
    return []


def _reminder(turn: Turn) -> str:
    if turn.stop_reason != "max_tokens":
        return prompts.REPORT_REMINDER
    return prompts.SMALLER_PIECES if turn.lost_calls else prompts.CONTINUE


def _due_todo(conversation: Conversation) -> list[Json]:
    """The to-do list if it is not empty and was changed now, or was last seen TODO_EVERY ago."""
    for age, turn in enumerate(reversed(conversation.turns)):
        written = _settled_call(turn, "todo_write")
        if written is not None:
            is_due = age == 0 or age % TODO_EVERY == 0
            return list(written.request["input"].get("items", [])) if is_due else []
    return []


def _idle_turns(conversation: Conversation) -> list[Turn]:
    """The latest turns without a call and without news from outside, newest first."""
    turns = reversed(conversation.turns)
    return list(takewhile(lambda turn: not turn.calls and not _has_news(turn), turns))


def _check_idle(idle: Sequence[Turn]) -> None:
    limits = (("pause_turn", MOST_PAUSES), ("max_tokens", MOST_CUT_OFF))
    for reason, most in limits:
        count = len(list(takewhile(lambda turn: turn.stop_reason == reason, idle)))  # noqa: B023
        if count > most:
            raise FatalError(
                f"The model stopped {count} times in a row with {reason} and called no tool.",
                kind=FailureKind.LOOP,
            )


def _is_silent(turn: Turn) -> bool:
    return turn.stop_reason not in {"pause_turn", "max_tokens"}


def _has_news(turn: Turn) -> bool:
    return any(note.source not in AUTOMATIC for note in turn.notes)


def _settled_call(turn: Turn, tool: str) -> Entry | None:
    """The latest successful call of `tool` in this turn."""
    found = [entry for entry in turn.entries.values() if entry.request["tool"] == tool]
    return next((entry for entry in reversed(found) if _succeeded(entry)), None)


def _succeeded(entry: Entry) -> bool:
    return is_settled(entry) and not (entry.response or {}).get("is_error")


def _text(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(f"- {item}" for item in value)
    return "" if value is None else str(value)
