"""Policies: who may do what is written in three scopes, tried and replayed before it is saved."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from board.access import (
    get_card,
    get_grant,
    get_project,
    get_role,
    list_approvals,
    list_calls,
)
from board.actions import policies
from board.actions.policies import Scope, check_scope_right
from board.errors import BoardError, PolicyRefusedError, TransitionError
from board.forms import sent
from board.fragments.diffs import file_rows
from board.fragments.replays import MOST_CALLS, changed_lines, replay
from board.gate import gate
from board.models import PolicyVersion, User
from board.states import ROLE_ORDER, Role
from board.views.card_forms import whole
from board.views.people import person
from board.views.policy_pages import Draft, asked_often, page_context, tried

MOST_VERSIONS = 100  # in the list
FRAGMENT = "X-Fragment"  # the header with which our own script asks for a part of the page


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, key: str = "", ref: str = "") -> HttpResponse:
    """Show the policy of a scope; or do what a button of its page says."""
    user = person(request)
    scope = _scope(user, key, ref)
    if request.method != "POST":
        return _page(request, scope, user, Draft.of(scope))
    draft = Draft.sent(request)
    act = ACTS.get(sent(request, "do"))
    if act is None:
        raise Http404
    return act(request, scope, user, draft)


@require_safe
def versions(request: HttpRequest, key: str = "", ref: str = "") -> HttpResponse:
    """Show the versions of a scope, and what one of them changed."""
    user = person(request)
    scope = _scope(user, key, ref)
    rows = list(scope.versions().select_related("author", "before").reverse()[:MOST_VERSIONS])
    number = whole(request.GET.get("n", ""))
    chosen = next((row for row in rows if row.number == number), rows[0] if rows else None)
    context = {
        **_where(scope, user),
        "versions": rows,
        "chosen": chosen,
        "diff": _diff(chosen),
    }
    return render(request, "policies/versions.html", context)


def _diff(version: PolicyVersion | None) -> str:
    if version is None:
        return ""
    before = version.before.text if version.before else ""
    return file_rows(changed_lines(before, version.text))


def _scope(user: User, key: str, ref: str) -> Scope:
    """The scope of an address, for whoever may read it."""
    if ref:
        card = get_card(user, ref)
        return Scope(card.project, card)
    if key:
        return Scope(get_project(user, key))
    check_scope_right(Scope(), by=user)
    return Scope()


def _check_may_change(scope: Scope, user: User) -> None:
    if scope.project is None:
        check_scope_right(scope, by=user)
    else:
        get_project(user, scope.project.key, role=Role.MAINTAINER)


def _save(request: HttpRequest, scope: Scope, user: User, draft: Draft) -> HttpResponse:
    _check_may_change(scope, user)
    try:
        version = policies.save_policy(
            scope, draft.text, by=user, base=draft.base, comment=draft.comment
        )
    except TransitionError as error:
        # Who saves again has been told whose version that replaces.
        return _page(request, scope, user, draft.on_top(scope), error=error)
    except BoardError as error:
        return _page(request, scope, user, draft, error=error)
    messages.success(
        request, f"Version {version.number} is in force, also for runs that are under way."
    )
    return redirect(address(scope))


def _try(request: HttpRequest, scope: Scope, user: User, draft: Draft) -> HttpResponse:
    """Say what the gate would say of a call, under the text as it is typed."""
    try:
        policies.check_policy(draft.text)
        part: Mapping[str, Any] = {"tried": tried(scope, draft)}
    except BoardError as error:
        part = {"try_problem": _words(error)}
    return _part(request, scope, user, draft, template="policies/_tried.html", part=part)


def _replay(request: HttpRequest, scope: Scope, user: User, draft: Draft) -> HttpResponse:
    _check_may_change(scope, user)
    try:
        policies.check_policy(draft.text)
        steps = list_calls(user, project=scope.project, card=scope.card, limit=MOST_CALLS)
        replayed = replay(steps, scope, draft.text)
        part: Mapping[str, Any] = {"replayed": replayed, "most_calls": MOST_CALLS}
    except BoardError as error:
        part = {"replay_problem": _words(error)}
    return _part(request, scope, user, draft, template="policies/_replay.html", part=part)


def _import(request: HttpRequest, scope: Scope, user: User, draft: Draft) -> HttpResponse:
    """Convert lists of another program; with `add`, put the result behind the text."""
    _check_may_change(scope, user)
    found = gate().convert(draft.imported)
    if sent(request, "add") and not found.problem:
        draft = draft.with_more(found.policy)
    return _part(
        request, scope, user, draft, template="policies/_import.html", part={"converted": found}
    )


def _set_profile(request: HttpRequest, scope: Scope, user: User, draft: Draft) -> HttpResponse:
    _check_may_change(scope, user)
    if scope.project is None or scope.card is not None:
        raise Http404
    profile = policies.clean_profile(sent(request, "tool_profile"))
    policies.set_profile(scope.project, profile, by=user)
    messages.success(request, "The tools are set. Calls outside them are denied from now on.")
    return redirect(address(scope))


def _withdraw(request: HttpRequest, scope: Scope, user: User, draft: Draft) -> HttpResponse:
    number = whole(sent(request, "grant"))
    if number is None or scope.project is None:
        raise Http404
    grant = get_grant(user, number)
    if grant.project_id != scope.project.pk:
        raise Http404
    policies.withdraw_grant(grant, by=user)
    messages.success(request, "This answer lasts no longer. The next such call asks.")
    return redirect(address(scope))


def _restore(request: HttpRequest, scope: Scope, user: User, draft: Draft) -> HttpResponse:
    _check_may_change(scope, user)
    number = whole(sent(request, "version"))
    old = scope.versions().filter(number=number).first() if number is not None else None
    if old is None:
        raise Http404
    newest = scope.versions().last()
    version = policies.save_policy(
        scope,
        old.text,
        by=user,
        base=newest.number if newest else 0,
        comment=f"Brings back version {old.number}",
    )
    messages.success(
        request, f"Version {version.number} is in force. It says what version {old.number} said."
    )
    return redirect(address(scope))


ACTS = {
    "save": _save,
    "try": _try,
    "replay": _replay,
    "import": _import,
    "profile": _set_profile,
    "withdraw": _withdraw,
    "restore": _restore,
}


def address(scope: Scope) -> str:
    """The page of a scope."""
    if scope.card is not None:
        return f"/cards/{scope.card.ref}/policy/"
    return f"/p/{scope.project.key}/policy/" if scope.project is not None else "/policy/"


def _words(error: BoardError) -> list[str]:
    return error.fields.get("text", error.message).split("\n")


def _part(
    request: HttpRequest,
    scope: Scope,
    user: User,
    draft: Draft,
    *,
    template: str,
    part: Mapping[str, Any],
) -> HttpResponse:
    """Answer with one part for our own script, else with the whole page around it."""
    if FRAGMENT in request.headers:
        return render(request, template, {**_where(scope, user), **part})
    return _page(request, scope, user, draft, part=part)


def _page(
    request: HttpRequest,
    scope: Scope,
    user: User,
    draft: Draft,
    *,
    error: BoardError | None = None,
    part: Mapping[str, Any] | None = None,
) -> HttpResponse:
    problems = error.problems if isinstance(error, PolicyRefusedError) else ()
    context = {
        **_where(scope, user),
        **page_context(scope, draft),
        "often": asked_often(list_approvals(user), scope),
        "problems": problems,
        "refusal": error.message if error and not problems else "",
        **(part or {}),
    }
    return render(request, "policies/show.html", context, status=error.status if error else 200)


def _where(scope: Scope, user: User) -> dict[str, Any]:
    """What every page of a scope needs: whose it is, and what the person may do."""
    role = get_role(user, scope.project.pk) if scope.project else Role.OWNER
    return {
        "scope": scope,
        "address": address(scope),
        "project": scope.project,
        "card": scope.card,
        "role": role,
        "place": "board" if scope.project else "settings",
        "tab": "policy",
        "may_change": ROLE_ORDER[role] >= ROLE_ORDER[Role.MAINTAINER],
    }
