"""The state of a card in a word, a shape and a colour: its classes, its strip, its line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING, Any

from board.ansi import visible
from board.fragments.questions import Buttons, call_text
from board.models import Run
from board.states import HELD, CardStatus, FailureKind, RunStatus, WaitingFor
from board.templatetags.markup import MINUS, URGENT, icon, plural, since

if TYPE_CHECKING:
    from board.fragments.cards import BoardCard

WHY = 150  # characters of a reason on a card; the drawer has the whole
PULSE = '<span class="pulse" aria-hidden="true"></span>'
ROPE = f'<svg class="card__cord" aria-hidden="true">{icon("cord-notch").partition(">")[2]}'
FAILURES = {
    FailureKind.AUTH: "The model key is refused",
    FailureKind.QUOTA: "The model account is used up",
    FailureKind.RATE_LIMIT: "The model is busy",
    FailureKind.TIMEOUT: "Out of time",
    FailureKind.LOOP: "It went in circles",
    FailureKind.CONTEXT_OVERFLOW: "Too much for one conversation",
    FailureKind.VERIFICATION: "Checks are red",
    FailureKind.POLICY: "Against the policy",
    FailureKind.BUDGET: "Over the budget",
    FailureKind.INFRASTRUCTURE: "The machine failed",
    FailureKind.INTERNAL: "Pullcord failed",
    FailureKind.UPSTREAM: "A card it needs failed",
    FailureKind.REPORTED: "The agent gave up",
}
PUT_ASIDE = {
    WaitingFor.INPUT: "Waits for a word from you",
    WaitingFor.RETRY: "The model is away",
    WaitingFor.LIMIT: "Waits for its turn at the model",
    WaitingFor.PAUSE: "Paused",
}


@dataclass(frozen=True)
class Look:
    """The parts of a card that its state decides."""

    classes: str = ""
    strip: str = ""
    acts: str = ""
    line: str = ""
    rope: str = ""


def strip(face: "BoardCard") -> Look:
    """Return how a card of this state looks."""
    return LOOKS[CardStatus(face.card.status)](face)


def _backlog(face: "BoardCard") -> Look:
    return Look(" card--blocked" if face.waits_for else "")


def _queued(face: "BoardCard") -> Look:
    if face.waits_for or face.shares:
        return Look(" card--blocked")
    return Look(f" card--ready p{min(face.card.priority, URGENT)}")


def _running(face: "BoardCard") -> Look:
    run = face.card.run
    if run is None:
        return Look(" is-running")
    if face.question:
        words = f"{run.agent or 'The agent'} pulled the cord"
        return Look(
            " card--waiting is-waiting",
            _strip(
                icon("cord"),
                words,
                when=since(face.question.created_at, "for"),
                what=f'<code class="strip__what">{visible(call_text(face.question))}</code>',
            ),
            acts=f'<div class="card__acts">{Buttons(face.question, size=" btn--s")}</div>',
            rope=ROPE,
        )
    line = _line(run)
    if run.status == RunStatus.WAITING:
        words = (
            PUT_ASIDE.get(WaitingFor(run.waiting_for), "Put aside")
            if run.waiting_for
            else "Put aside"
        )
        when = since(run.not_before) if run.not_before else ""
        return Look(" card--paused is-paused", _strip(icon("paused"), words, when=when), line=line)
    if run.status not in HELD:
        return Look(
            " card--running is-running",
            _strip(icon("queued"), "Goes on when a worker is free"),
            line=line,
        )
    if run.cancel_requested_at:
        return Look(" is-idle", _strip(icon("stop"), "Stopping"), line=line)
    return Look(" card--running is-running", _at_work(run), line=line)


def _merging(face: "BoardCard") -> Look:
    words = _strip(PULSE, "Merging", why="Testing it again on the target branch")
    return Look(" card--running is-running", words)


def _at_work(run: Run) -> str:
    started = run.held_since
    if started is not None:
        started -= timedelta(seconds=run.active_seconds)
    if run.status == RunStatus.STARTING:
        step = "sets up"
    elif run.plan:
        done = plan_done(run)
        step = f"step {min(done + 1, len(run.plan))} of {len(run.plan)}"
    else:
        step = plural(run.steps_done, "step")
    activity = escape(
        run.activity or ("Making a worktree" if run.status == RunStatus.STARTING else "")
    )
    return _strip(
        PULSE,
        f'{escape(run.agent)} · <span data-step="{run.pk}">{step}</span>',
        when=since(started, "clock"),
        what=f'<code class="strip__what" data-activity="{run.pk}">{activity}</code>',
    )


def plan_state(item: Mapping[str, Any]) -> str:
    """Return how far one item of a to-do list is: done, in_progress or pending."""
    return str(item.get("status") or item.get("state") or "")


def plan_done(run: Run) -> int:
    """Return how many items of the run's to-do list are done."""
    return sum(1 for item in run.plan if plan_state(item) == "done")


def _line(run: Run) -> str:
    if not run.plan:
        return ""
    done = plan_done(run)
    total = len(run.plan)
    return (
        f'<progress class="line card__line" value="{done}" max="{total}" aria-label="Plan">'
        f"{done} of {total}</progress>"
    )


def _review(face: "BoardCard") -> Look:
    card = face.card
    if card.failure:
        return Look(
            " card--failed is-failed",
            _strip(icon("conflict"), "Not merged", why=_why(card.failure)),
            line=_whole_line("Not merged"),
        )
    if card.run is None:
        return Look("", "")
    count = len(card.checks)
    words = f"{count} of {plural(count, 'check')} passed" if count else "Finished, without a check"
    why = ""
    if face.churn:
        files, added, taken = face.churn
        why = f"{plural(files, 'file')}, +{added} {MINUS}{taken}" if files else "No file changed"
    return Look(
        " card--done is-done",
        _strip(icon("done"), words, why=why),
        line=_whole_line("Checks passed"),
    )


def _failed(face: "BoardCard") -> Look:
    card = face.card
    kind = FAILURES.get(FailureKind(card.failure_kind), "Failed") if card.failure_kind else "Failed"
    return Look(
        " card--failed is-failed",
        _strip(icon("failed"), f"Failed: {kind[0].lower()}{kind[1:]}", why=_why(card.failure)),
        line=_whole_line("Failed"),
    )


def _whole_line(words: str) -> str:
    return f'<progress class="line card__line" value="1" max="1" aria-label="{words}"></progress>'


def _why(reason: str) -> str:
    text = reason if len(reason) <= WHY else reason[:WHY].rsplit(" ", 1)[0] + " …"
    return escape(text)


def _strip(glyph: str, words: str, *, when: str = "", what: str = "", why: str = "") -> str:
    reason = f'<span class="strip__why">{why}</span>' if why else ""
    return f'<div class="strip">{glyph}<b>{words}</b>{when}{what}{reason}</div>'


LOOKS: dict[CardStatus, Callable[["BoardCard"], Look]] = {
    CardStatus.BACKLOG: _backlog,
    CardStatus.QUEUED: _queued,
    CardStatus.RUNNING: _running,
    CardStatus.REVIEW: _review,
    CardStatus.MERGING: _merging,
    CardStatus.DONE: lambda _face: Look(" card--merged"),
    CardStatus.FAILED: _failed,
    CardStatus.CANCELLED: lambda _face: Look(" card--merged card--cancelled"),
}
