"""The steps of a log: a bead on the line, and what hangs on it; above all the pulled cords."""

from html import escape

from board.ansi import visible
from board.fragments.pieces import Op, Place, place
from board.fragments.questions import Buttons, call_text, wants
from board.models import Approval
from board.states import ApprovalScope, ApprovalStatus
from board.templatetags.markup import face, icon, since


def step(key: str, bead: str | Place, *body: str | Place, dot: bool = False, looks: str = "") -> Op:
    """Return the op that adds one step: a bead on the line, and what hangs on it."""
    dotted = " step__bead--dot" if dot else ""
    element = place(
        key,
        f'<span class="step__bead{dotted}">',
        bead,
        '</span><div class="step__body">',
        *body,
        "</div>",
        tag="div",
        classes=f"step {looks}".strip(),
    )
    return Op("add", key, None, [element])


def question_step(question: Approval) -> Op:
    """Return the step of a pulled cord, as it stands now."""
    asked = visible(call_text(question))
    if question.status == ApprovalStatus.PENDING:
        reason = (
            f'<span class="small">{visible(str(question.reasons[0]))}</span>'
            if question.reasons
            else ""
        )
        body = (
            f'<div class="answer"><span>Pulled the cord: wants to <strong>{wants(question)}</strong></span>'
            f'<code class="prewrap">{asked}</code>{reason}'
            f'<span class="answer__acts">{Buttons(question, size=" btn--s")}</span></div>'
        )
        return step(f"q{question.pk}", icon("cord"), body, looks="is-waiting")
    edited = (question.edited_input or {}).get("command")
    to = f" changed it to <code>{visible(str(edited))}</code> and" if edited else ""
    said = (
        f'<q class="answer__said" dir="auto">{visible(question.comment)}</q>'
        if question.comment
        else ""
    )
    person = face(question.decided_by) if question.decided_by else ""
    who = escape(str(question.decided_by)) if question.decided_by else "Pullcord"
    body = (
        f'<div class="answer"><span>Pulled the cord: wanted to <strong>{wants(question)}</strong></span>'
        f'<code class="prewrap">{asked}</code><span class="row small">{person}<span>{who}{to} '
        f"{_verdict(question)} · {since(question.decided_at)}</span></span>{said}</div>"
    )
    return step(f"q{question.pk}", icon("cord"), body, looks="is-waiting")


def _verdict(question: Approval) -> str:
    match ApprovalStatus(question.status):
        case ApprovalStatus.APPROVED:
            scopes = {
                ApprovalScope.RUN: "approved it for this run",
                ApprovalScope.ALWAYS: "approved it for ever",
            }
            return scopes.get(ApprovalScope(question.scope or "once"), "approved it once")
        case ApprovalStatus.DENIED:
            return "denied it"
        case ApprovalStatus.EXPIRED:
            return "let it expire"
        case ApprovalStatus.RETURNED:
            return "asked the agent instead"
        case ApprovalStatus.CANCELLED | ApprovalStatus.PENDING:
            return "ended the run before an answer came"
