"""The instructions for agents in a project's repository: everyone in it reads them, maintainers trust them."""

from collections.abc import Callable

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from board.access import get_project, get_role
from board.actions import instructions
from board.ansi import visible
from board.errors import BoardError
from board.models import Instruction, User
from board.states import ROLE_ORDER, Role
from board.views.people import person


@require_safe
def show(request: HttpRequest, key: str) -> HttpResponse:
    """Show the content that was seen last, and who trusts it."""
    user = person(request)
    project = get_project(user, key)
    found = instructions.current_instruction(project)
    context = {
        "project": project,
        "place": "board",
        "tab": "settings",
        "may_change": ROLE_ORDER[get_role(user, project.pk)] >= ROLE_ORDER[Role.MAINTAINER],
        "found": found,
        "content": visible(found.content) if found else "",
        "was_trusted": found is not None
        and found.trusted_by is None
        and Instruction.objects.filter(
            project=project, path=found.path, trusted_by__isnull=False
        ).exists(),
    }
    return render(request, "projects/instructions.html", context)


@require_POST
def trust(request: HttpRequest, key: str, instruction_id: int) -> HttpResponse:
    """Trust one content."""
    said = "Runs that begin from now on read it."
    return _change(request, key, instruction_id, instructions.trust_instruction, said)


@require_POST
def withdraw(request: HttpRequest, key: str, instruction_id: int) -> HttpResponse:
    """Trust it no longer."""
    said = "Runs that begin from now on do not read it."
    return _change(request, key, instruction_id, instructions.withdraw_trust, said)


def _change(
    request: HttpRequest, key: str, instruction_id: int, act: Callable[..., None], said: str
) -> HttpResponse:
    user: User = person(request)
    project = get_project(user, key, role=Role.MAINTAINER)
    found = Instruction.objects.filter(project=project, pk=instruction_id).first()
    if found is None:
        raise Http404
    try:
        act(found, by=user)
    except BoardError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, said)
    return redirect("instructions", key=project.key)
