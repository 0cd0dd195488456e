"""The inbox of all projects' questions, one question in full, and the answer."""

import json
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from board.access import check_role, get_approval, list_approvals
from board.actions import approvals
from board.errors import AlreadyDecidedError, ValidationError
from board.forms import sent
from board.models import Approval, Membership, Project
from board.states import ROLE_ORDER, ApprovalScope, ApprovalStatus, Role
from board.views.accounts import next_page
from board.views.context import open_questions, stamp_of
from board.views.errors import wants_page
from board.views.people import person
from board.views.questions import EDITED_AS_TEXT, QUICK_REASONS, Question

ANSWERED_SHOWN = 8  # of the recently answered, below the open ones
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
def inbox(request: HttpRequest) -> HttpResponse:
    """Show the questions that wait, by project, and what was answered lately."""
    user = person(request)
    found = list_approvals(user)
    pending = list(found.filter(status=ApprovalStatus.PENDING).order_by("project__name", "id"))
    answered = found.exclude(status=ApprovalStatus.PENDING).order_by("-decided_at", "-id")
    roles = dict(Membership.objects.filter(user=user).values_list("project_id", "role"))
    groups = [
        (project, [Question(each) for each in rows], _may_answer(roles[project.pk]))
        for project, rows in _by_project(pending)
    ]
    context = {
        "place": "approvals",
        "tab": "waiting",
        "groups": groups,
        "waiting": len(pending),
        "answered": [Question(each) for each in answered[:ANSWERED_SHOWN]],
        "me": user,
    }
    name = "approvals/_inbox.html" if "HX-Request" in request.headers else "approvals/inbox.html"
    return render(request, name, context)


@require_safe
def answered(request: HttpRequest) -> HttpResponse:
    """Show what was answered, newest first."""
    user = person(request)
    before = request.GET.get("before", "")
    rows = list_approvals(user).exclude(status=ApprovalStatus.PENDING).order_by("-id")
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
    """Say how many questions wait, and a stamp that changes with them."""
    ids = open_questions(person(request))
    return JsonResponse({"waiting": len(ids), "stamp": stamp_of(ids)})


@require_safe
def show(request: HttpRequest, approval_id: int) -> HttpResponse:
    """Show one question in full."""
    return _page(request, get_approval(person(request), approval_id))


@require_POST
def decide(request: HttpRequest, approval_id: int) -> HttpResponse:
    """Answer a question; the first answer wins, and a later one is told whose it was."""
    user = person(request)
    approval = get_approval(user, approval_id, role=Role.MEMBER)
    answer = _answer(request)
    approve, scope = ANSWERS[answer]
    try:
        approvals.decide(
            approval,
            by=user,
            role=check_role(user, approval.project_id, Role.MEMBER),
            approve=approve,
            scope=scope,
            edited_input=_edited(request, approval) if answer == "edit" else None,
            comment=_comment(request),
            op_id=sent(request, "op_id"),
        )
    except ValidationError as error:
        if not wants_page(request):
            raise
        return _page(request, approval, refused=error.message)
    except AlreadyDecidedError as error:
        if not wants_page(request):
            raise
        messages.warning(request, error.message)
        return redirect("approval", approval_id=approval.pk)
    question = Question(approval)
    if not wants_page(request):
        return JsonResponse({"status": approval.status, "message": f"You {question.outcome}."})
    messages.success(request, f"You {question.outcome}. {question.agent} goes on.")
    following = next_page(request)
    return HttpResponseRedirect(following if following != "/" else "/approvals/")


def _answer(request: HttpRequest) -> str:
    """Return which button it was; scripts send a verdict and how far it reaches, as the API has it."""
    answer = sent(request, "answer")
    if not answer:
        verdict = sent(request, "verdict")
        answer = (sent(request, "scope") or "once") if verdict == "approve" else verdict
    if answer not in ANSWERS:
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


def _page(request: HttpRequest, approval: Approval, *, refused: str = "") -> HttpResponse:
    user = person(request)
    role = check_role(user, approval.project_id, Role.VIEWER)
    open_ids = open_questions(user)
    context = {
        "place": "approvals",
        "question": Question(approval),
        "approval": approval,
        "project": approval.project,
        "role": role,
        "me": user,
        "may_answer": _may_answer(role),
        "may_always": ROLE_ORDER[role] >= ROLE_ORDER[Role.MAINTAINER],
        "quick_reasons": QUICK_REASONS,
        "refused": refused,
        "typed": sent(request, "input") if refused else "",
        "comment": sent(request, "comment") if refused else "",
        "next_id": next((pk for pk in open_ids if pk > approval.pk), None),
        "previous_id": next((pk for pk in reversed(open_ids) if pk < approval.pk), None),
    }
    return render(request, "approvals/question.html", context, status=422 if refused else 200)


def _by_project(pending: list[Approval]) -> list[tuple[Project, list[Approval]]]:
    grouped = groupby(pending, key=lambda each: each.project_id)
    return [(rows[0].project, rows) for rows in (list(each) for _, each in grouped)]


def _may_answer(role: str) -> bool:
    return ROLE_ORDER[Role(role)] >= ROLE_ORDER[Role.MEMBER]
