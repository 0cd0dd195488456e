"""The inbox of all projects' questions: what waits, filtered and grouped, and one answer to several alike."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from board.access import check_role, get_approval, list_approvals
from board.actions import batches
from board.errors import NotAllowedError
from board.forms import sent
from board.models import Approval, Membership, Project, User
from board.states import ROLE_ORDER, ApprovalStatus, Role
from board.templatetags.markup import plural
from board.views.errors import wants_page
from board.views.people import person
from board.views.questions import Question

ANSWERED_SHOWN = 8  # of the recently answered, below the open ones
LIKE = 2  # questions that make a group which may be answered together
# Programs whose first argument says more than they do.
WITH_VERB = frozenset(
    ["git", "npm", "pnpm", "yarn", "uv", "pip", "cargo", "go", "docker", "make", "poetry", "apt"]
)


@dataclass(frozen=True)
class Filters:
    """What the person wants to see, from the address of the page."""

    project: str = ""
    rule: str = ""
    overdue: bool = False
    mine: bool = False
    newest: bool = False

    @classmethod
    def read(cls, request: HttpRequest) -> "Filters":
        """Return the filters of an address; what makes no sense filters nothing."""
        given = request.GET
        return cls(
            project=given.get("project", "")[:10].upper(),
            rule=given.get("rule", "")[:40],
            overdue=given.get("overdue") == "1",
            mine=given.get("mine") == "1",
            newest=given.get("order") == "newest",
        )

    @property
    def query(self) -> str:
        """The part of an address that asks for the same again; empty if nothing is filtered."""
        pairs = {
            "project": self.project,
            "rule": self.rule,
            "overdue": "1" if self.overdue else "",
            "mine": "1" if self.mine else "",
            "order": "newest" if self.newest else "",
        }
        found = urlencode({name: value for name, value in pairs.items() if value})
        return f"?{found}" if found else ""

    @property
    def narrows(self) -> bool:
        """Whether something may be left out."""
        return bool(self.project or self.rule or self.overdue or self.mine)


@dataclass(frozen=True)
class Alike:
    """Questions that want the same kind of thing; several may be answered together."""

    title: str
    questions: Sequence[Question]
    may_answer: bool

    @property
    def together(self) -> list[Question]:
        """The questions that one answer may cover: each is seen whole right here, none is critical."""
        able = [each for each in self.questions if each.is_short]
        return able if self.may_answer and len(able) >= LIKE else []


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """Show the questions that wait, by project, and what was answered lately."""
    user = person(request)
    filters = Filters.read(request)
    found = list_approvals(user)
    pending = list(found.filter(status=ApprovalStatus.PENDING))
    shown = [Question(each) for each in narrowed(found, filters, user)]
    answered = found.exclude(status=ApprovalStatus.PENDING).order_by("-decided_at", "-id")
    context = {
        "place": "approvals",
        "tab": "waiting",
        "groups": list(groups_of(shown, user)),
        "waiting": len(pending),
        "shown": len(shown),
        "overdue": sum(Question(each).is_overdue for each in pending),
        "filters": filters,
        "projects": sorted({each.project.key: each.project for each in pending}.values(), key=str),
        "rules": sorted({each.rule for each in pending}),
        "answered": [Question(each) for each in answered[:ANSWERED_SHOWN]],
        "me": user,
    }
    name = "approvals/_inbox.html" if "HX-Request" in request.headers else "approvals/inbox.html"
    return render(request, name, context)


def narrowed(found: Any, filters: Filters, user: User) -> list[Approval]:
    """Return the open questions that the filters let through, oldest first unless told otherwise."""
    rows = found.filter(status=ApprovalStatus.PENDING)
    if filters.project:
        rows = rows.filter(project__key=filters.project)
    if filters.rule:
        rows = rows.filter(rule=filters.rule)
    if filters.mine:
        rows = rows.filter(Q(run__card__created_by=user) | Q(run__card__assignee=user))
    kept = [each for each in rows if not filters.overdue or Question(each).is_overdue]
    return kept[::-1] if filters.newest else kept


def groups_of(questions: Iterable[Question], user: User) -> Iterator[tuple[Project, list[Alike]]]:
    """Yield each project with its questions, those that are alike next to each other."""
    roles = dict(Membership.objects.filter(user=user).values_list("project_id", "role"))
    by_project: dict[int, dict[tuple[str, str, str], list[Question]]] = {}
    for each in questions:
        kinds = by_project.setdefault(each.approval.project_id, {})
        kinds.setdefault(kind_of(each.approval), []).append(each)
    for pk, kinds in by_project.items():
        may = ROLE_ORDER[Role(roles[pk])] >= ROLE_ORDER[Role.MEMBER]
        alike = [Alike(title_of(key), rows, may) for key, rows in kinds.items()]
        yield alike[0].questions[0].approval.project, alike


def kind_of(approval: Approval) -> tuple[str, str, str]:
    """Return what makes questions alike: the tool, the head of the command, and the rule."""
    command = approval.input.get("command")
    head = head_of(command) if isinstance(command, str) else ""
    return approval.tool, head, approval.rule


def head_of(command: str) -> str:
    """Return the program of a command, with its verb where that says more."""
    try:
        words = shlex.split(command, comments=False)[:2]
    except ValueError:
        words = command.split()[:2]
    if not words:
        return ""
    return " ".join(words if words[0] in WITH_VERB else words[:1])[:60]


def title_of(key: tuple[str, str, str]) -> str:
    """Return a name for a kind of question."""
    tool, head, _ = key
    return head or tool


@require_POST
def answer_all(request: HttpRequest) -> HttpResponse:
    """Answer several questions at once; each is decided on its own, and the page says what became of it."""
    user = person(request)
    verdict = sent(request, "verdict")
    if verdict not in {"approve", "deny"}:
        raise BadRequest("no such answer")
    asked = [_asked(user, each) for each in request.POST.getlist("question")[: batches.MOST]]
    if not asked:
        raise BadRequest("no question")
    results = batches.decide_all(
        asked,
        by=user,
        approve=verdict == "approve",
        comment=sent(request, "comment"),
        op_id=sent(request, "op_id"),
    )
    said = sentence(results, approve=verdict == "approve")
    if not wants_page(request):
        rows = [{"id": each.approval.pk, "refusal": each.refusal} for each in results]
        return JsonResponse({"message": said, "results": rows})
    messages.success(request, said)
    return redirect("/approvals/" + Filters.read(request).query)


def _asked(user: User, given: str) -> batches.Asked:
    """Return a question of the form, which names it as `12:digest`. Raises Http404 as `get_approval`."""
    pk, _, digest = given.partition(":")
    if not pk.isascii() or not pk.isdigit() or not digest:
        raise BadRequest("no such question")
    try:
        approval = get_approval(user, int(pk[:18]), role=Role.MEMBER)
    except NotAllowedError as error:  # of a project in which this person only looks
        raise Http404 from error
    return batches.Asked(approval, check_role(user, approval.project_id, Role.MEMBER), digest)


def sentence(results: Sequence[batches.Result], *, approve: bool) -> str:
    """Say how many answers counted, and why the others did not."""
    done = sum(not each.refusal for each in results)
    verb = "approved" if approve else "denied"
    said = f"You {verb} {plural(done, 'question')}." if done else "Nothing was answered by you."
    refusals = [f"{each.approval.run.card.ref}: {each.refusal}" for each in results if each.refusal]
    return " ".join([said, *refusals])
