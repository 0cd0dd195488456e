"""Open questions in words: who wants what, the call itself, and whether it may be answered at a glance."""

from dataclasses import dataclass
from datetime import timedelta
from html import escape

from django.utils import timezone

from board.ansi import visible
from board.links import links_in
from board.models import Approval, Project, User
from board.states import ApprovalStatus
from board.templatetags.markup import agent_face, face, icon, plural, since
from board.unseen import is_unseen

SHOWN = 2  # questions in the banner; the others are one click away
MAX_SEEN = 100  # characters that fit the banner also where it is narrow
MAX_LINES, MAX_CHARACTERS = 3, 280  # what a person takes in whole before answering from the banner

LEVELS = {"landlock": "second level of sandbox", "none": "no sandbox", "broken": "broken sandbox"}
WANTS = {
    "bash": "run a command",
    "write_file": "write a file",
    "edit_file": "change a file",
    "read_file": "read a file",
}


def open_questions(project: Project) -> list[Approval]:
    """Return the project's open questions, oldest first, with their run and card. One query."""
    rows = Approval.objects.select_related(
        "run__card__project", "project", "looked_by", "first_by"
    ).defer("run__evidence", "run__changes", "run__plan")
    return list(rows.filter(project=project, status=ApprovalStatus.PENDING).order_by("id"))


def wants(question: Approval) -> str:
    """Return what the agent wants, as the end of a sentence."""
    if question.facts.get("scripts"):
        return "run a script"
    return WANTS.get(question.tool, f"use {question.tool}")


def call_text(question: Approval) -> str:
    """Return the call in one piece: the command, or the tool with what it is pointed at."""
    command = question.input.get("command")
    if isinstance(command, str):
        return command
    target = question.input.get("path") or question.input.get("pattern") or ""
    return f"{question.tool} {target}".strip()


def is_short(question: Approval) -> bool:
    """Return whether the whole call fits the banner and hides nothing, so that it may be answered there.

    A critical one is answered where everything about it is seen; so is one that goes through a link,
    or whose files say what it does.
    """
    if question.critical or question.first_by_id is not None or links_in(question.facts):
        return False
    command = question.input.get("command")
    if not isinstance(command, str) or question.facts.get("scripts") or question.facts.get("files"):
        return False
    if len(command) > MAX_CHARACTERS or len(command.splitlines()) > MAX_LINES:
        return False
    return not any(map(is_unseen, command))


def is_overdue(question: Approval) -> bool:
    """Return whether an open question waits for longer than its project wants. Needs its project."""
    waits = timezone.now() - question.created_at
    is_open = question.status == ApprovalStatus.PENDING
    return is_open and waits >= timedelta(minutes=question.project.overdue_minutes)


def looker(question: Approval) -> User | None:
    """Return who is looking at an open question now."""
    until = question.looked_until
    if question.status != ApprovalStatus.PENDING or until is None or until <= timezone.now():
        return None
    return question.looked_by


@dataclass(frozen=True)
class Buttons:
    """The answers to one question; the server checks who may give them, CSS hides them for viewers."""

    question: Approval
    size: str = ""
    keys: bool = False

    def __str__(self) -> str:
        pk, small = self.question.pk, self.size
        closer = f'<a class="btn{small}" href="/approvals/{pk}/">Look closer</a>'
        if not is_short(self.question):
            return closer
        deny_key, approve_key = ("<kbd>D</kbd>", "<kbd>A</kbd>") if self.keys else ("", "")
        between = closer if self.keys else ""
        return (
            f'<button class="btn{small} for-member" type="button" data-answer="deny"'
            f' data-approval="{pk}">Deny{deny_key}</button>{between}'
            f'<button class="btn{small} btn--cord for-member" type="button" data-answer="approve"'
            f' data-approval="{pk}">Approve once{approve_key}</button>'
        )


def render_cord(project: Project) -> tuple[str, int]:
    """Return the banner of the board and the number of open questions."""
    questions = open_questions(project)
    return cord(questions), len(questions)


def cord(questions: list[Approval]) -> str:
    """Return the banner: two questions at most, oldest first."""
    if not questions:
        return '<section class="cord" id="cord" data-count="0" hidden></section>'
    count = len(questions)
    more = ""
    if count > SHOWN:
        rest = count - SHOWN
        more = (
            f'<p class="cord__more"><a class="link" href="/approvals/">{rest} more '
            f"{'waits' if rest == 1 else 'wait'} for an answer</a></p>"
        )
    rows = "".join(_row(question) for question in questions[:SHOWN])
    return (
        f'<section class="cord" id="cord" data-count="{count}"'
        f' aria-label="{plural(count, "question")} from agents">'
        f'<div class="cord__rope" aria-hidden="true">{icon("cord-notch")}</div>'
        f'<ol class="cord__list">{rows}</ol>{more}</section>'
    )


def _row(question: Approval) -> str:
    run, card = question.run, question.run.card
    who = run.agent or "The agent"
    short = "" if is_short(question) else " ask-row__acts--short"
    text = call_text(question)
    # What does not fit is scrolled, by keys too.
    scrolls = ' tabindex="0" role="region" aria-label="The call"' if len(text) > MAX_SEEN else ""
    why = visible(str(question.reasons[0])) if question.reasons else ""
    return (
        f'<li class="ask-row" data-question="{question.pk}" tabindex="-1">'
        f'<p class="ask-row__who">{agent_face(who)}<strong>{escape(who)}</strong> wants to {escape(wants(question))}'
        f' for <a class="link" href="/cards/{card.ref}/run/">{card.ref}</a> · '
        f"{since(question.created_at)}{_marks(question)}</p>"
        f'<p class="ask-row__what"><code dir="ltr"{scrolls}>{visible(text)}</code>'
        f'<span class="ask-row__why">{why}</span></p>'
        f'<div class="ask-row__acts{short}">{Buttons(question, keys=True)}</div></li>'
    )


def _marks(question: Approval) -> str:
    """Return what else a person wants to know before answering: who is at it, and how far it is."""
    marks = ""
    if question.sandbox in LEVELS:
        marks += (
            f' · <span class="mark-note">{icon("warning", "s")}{LEVELS[question.sandbox]}</span>'
        )
    if question.first_by is not None:
        marks += f' · <span class="mark-note">{icon("check", "s")}1 of 2: {escape(str(question.first_by))}</span>'
    person = looker(question)
    if person is not None and question.looked_until is not None:
        until = question.looked_until.isoformat(timespec="seconds")
        # Everybody gets the same banner; the page of that person leaves this out.
        marks += (
            f'<span data-until="{until}" data-who="{person.pk}"> · '
            f'<span class="mark-note">{face(person)}is looking</span></span>'
        )
    return marks
