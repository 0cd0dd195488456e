"""One question in full, the answer to it, and what was answered before."""

import json
from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from board.access import check_role, get_approval, list_approvals
from board.actions import approvals, approvers, endings, looking
from board.errors import (
    AlreadyDecidedError,
    NotAllowedError,
    TransitionError,
    ValidationError,
)
from board.forms import sent
from board.models import Approval, User
from board.states import ROLE_ORDER, ApprovalScope, ApprovalStatus, Role
from board.views.accounts import next_page
from board.views.context import open_questions, stamp_of
from board.views.errors import wants_page
from board.views.people import person
from board.views.questions import EDITED_AS_TEXT, QUICK_REASONS, Question

PER_PAGE = 50

# The buttons of the page -> approve?, how far
ANSWERS = {
    "once": (True, ApprovalScope.ONCE),
    "run": (True, ApprovalScope.RUN),
    "always": (True, ApprovalScope.ALWAYS),
    "edit": (True, ApprovalScope.ONCE),
    "deny": (False, ApprovalScope.ONCE),
}


@require_safe
def answered(request: HttpRequest) -> HttpResponse:
    """Show what was answered, newest first."""
    user = person(request)
    before = request.GET.get("before", "")
    rows = list_approvals(user).exclude(status=ApprovalStatus.PENDING).order_by("-id")
    run = request.GET.get("run", "")
    if run.isascii() and run.isdigit():
        rows = rows.filter(run_id=int(run[:18]))
    if before.isascii() and before.isdigit():
        rows = rows.filter(pk__lt=int(before[:18]))
    page = [Question(each) for each in rows[: PER_PAGE + 1]]
    context = {
        "place": "approvals",
        "tab": "answered",
        "answered": page[:PER_PAGE],
        "before": page[PER_PAGE - 1].approval.pk if len(page) > PER_PAGE else None,
        "me": user,
    }
    return render(request, "approvals/answered.html", context)


@require_safe
def waiting(request: HttpRequest) -> HttpResponse:
    """Say how many questions wait, which is the newest, and a stamp that changes with them."""
    user = person(request)
    questions = open_questions(user)
    newest = get_approval(user, questions[-1].pk) if questions else None
    return JsonResponse(
        {
            "waiting": len(questions),
            "newest": newest.pk if newest else None,
            "words": f"{newest.run.agent} asks about {newest.run.card.ref}" if newest else "",
            "stamp": stamp_of(questions),
        }
    )


@require_safe
def show(request: HttpRequest, approval_id: int) -> HttpResponse:
    """Show one question in full."""
    return _page(request, get_approval(person(request), approval_id))


@require_POST
def look(request: HttpRequest, approval_id: int) -> HttpResponse:
    """Say that this person looks at the question; an open page does so again and again."""
    user = person(request)
    looking.look_at(get_approval(user, approval_id, role=Role.MEMBER), by=user)
    return HttpResponse(status=204)


@require_POST
def decide(request: HttpRequest, approval_id: int) -> HttpResponse:
    """Answer a question; the first answer wins, and a later one is told whose it was."""
    user = person(request)
    approval = get_approval(user, approval_id, role=Role.MEMBER)
    answer = _answer(request)
    try:
        _carry_out(request, approval, user, answer)
    except (ValidationError, NotAllowedError, TransitionError) as error:
        if not wants_page(request):
            raise
        again = get_approval(user, approval_id)
        return _page(request, again, refused=error.message, status=error.status)
    except AlreadyDecidedError as error:
        if not wants_page(request):
            raise
        messages.warning(request, error.message)
        return redirect("approval", approval_id=approval.pk)
    question = Question(approval)
    if not wants_page(request):
        return JsonResponse({"status": approval.status, "message": f"You {question.outcome}."})
    after = "A second person must too." if question.is_open else f"{question.agent} goes on."
    messages.success(request, f"You {question.outcome}. {after}")
    following = next_page(request)
    return HttpResponseRedirect(following if following != "/" else "/approvals/")


def _carry_out(request: HttpRequest, approval: Approval, user: User, answer: str) -> None:
    """Do what the button says. Raises what the actions raise."""
    if answer == "ask":
        endings.ask_agent(
            approval, by=user, question=_comment(request), op_id=sent(request, "op_id")
        )
        return
    approve, scope = ANSWERS[answer]
    approvals.decide(
        approval,
        by=user,
        role=check_role(user, approval.project_id, Role.MEMBER),
        approve=approve,
        scope=scope,
        edited_input=_edited(request, approval) if answer == "edit" else None,
        comment=_comment(request),
        op_id=sent(request, "op_id"),
        digest=sent(request, "digest"),
    )


def _answer(request: HttpRequest) -> str:
    """Return which button it was; scripts send a verdict and how far it reaches, as the API has it."""
    answer = sent(request, "answer")
    if not answer:
        verdict = sent(request, "verdict")
        answer = (sent(request, "scope") or "once") if verdict == "approve" else verdict
    if answer not in {*ANSWERS, "ask"}:
        raise BadRequest("no such answer")
    return answer


def _edited(request: HttpRequest, approval: Approval) -> dict[str, Any]:
    """Return the call's input as the person changed it."""
    text = sent(request, "input").replace("\r\n", "\n")
    if isinstance(approval.input.get(EDITED_AS_TEXT), str):
        return {**approval.input, EDITED_AS_TEXT: text}
    try:
        changed = json.loads(text)
    except ValueError as error:
        raise ValidationError(f"This is not JSON: {error}. Correct it, or deny.") from error
    if not isinstance(changed, dict):
        raise ValidationError("The input is a JSON object, with the same names as before.")
    return changed


def _comment(request: HttpRequest) -> str:
    """Return the chosen reason and the person's own words as one text for the agent."""
    parts = (sent(request, "reason").strip(), sent(request, "comment").strip())
    return " ".join(part for part in parts if part)


def _page(
    request: HttpRequest, approval: Approval, *, refused: str = "", status: int = 200
) -> HttpResponse:
    user = person(request)
    role = check_role(user, approval.project_id, Role.VIEWER)
    open_ids = [each.pk for each in open_questions(user)]
    context = {
        "place": "approvals",
        "question": Question(approval),
        "approval": approval,
        "project": approval.project,
        "role": role,
        "me": user,
        "may_answer": ROLE_ORDER[role] >= ROLE_ORDER[Role.MEMBER],
        "may_always": ROLE_ORDER[role] >= ROLE_ORDER[Role.MAINTAINER],
        "hindrance": _hindrance(approval, user, role),
        "quick_reasons": QUICK_REASONS,
        "refused": refused,
        "typed": sent(request, "input") if refused else "",
        "comment": sent(request, "comment") if refused else "",
        "next_id": next((pk for pk in open_ids if pk > approval.pk), None),
        "previous_id": next((pk for pk in reversed(open_ids) if pk < approval.pk), None),
    }
    return render(request, "approvals/question.html", context, status=status)


def _hindrance(approval: Approval, user: User, role: Role) -> str:
    """Return why this person may not approve the question, or nothing."""
    card = approval.run.card
    try:
        approvers.check_may_approve(approval, card, by=user, role=role, scope=ApprovalScope.ONCE)
    except NotAllowedError as error:
        return error.message
    return ""
