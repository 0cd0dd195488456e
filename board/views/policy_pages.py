"""What the page of a policy shows: the text as it is typed, the rules in force, what a call would get."""

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from board.actions import policies
from board.actions.policies import EMPTY, Scope, scope_texts
from board.forms import sent
from board.gate import Explanation, ScopeText, TriedCall, gate
from board.models import Approval, Grant
from board.states import ApprovalStatus
from board.templatetags.markup import PROFILES
from board.views.card_forms import whole

MOST_TRIED = 20_000  # characters of a call
MOST_GRANTS = 200
MOST_QUESTIONS = 500  # that are looked at for what is asked often
MOST_OFTEN = 5
TOOLS = {
    "bash": ("Command", "command"),
    "write_file": ("Write a file", "path"),
    "read_file": ("Read a file", "path"),
}
KINDS = {
    "commands": "command",
    "writes": "change",
    "reads": "read",
    "tools": "tool",
    "rules": "built-in rule",
}


@dataclass(frozen=True)
class Draft:
    """What a person has typed: nothing of it is lost on the way back."""

    text: str
    base: int  # the version that it was made from, 0 for none
    comment: str = ""
    call: str = ""
    tool: str = "bash"
    sandbox: bool = True
    imported: str = ""

    @classmethod
    def of(cls, scope: Scope) -> "Draft":
        """The version that is in force."""
        newest = scope.versions().last()
        return cls(newest.text, newest.number) if newest else cls(EMPTY, 0)

    @classmethod
    def sent(cls, request: HttpRequest) -> "Draft":
        """What a form has sent."""
        return cls(
            text=sent(request, "text").replace("\r\n", "\n"),
            base=whole(sent(request, "base")) or 0,
            comment=sent(request, "comment"),
            call=sent(request, "call")[:MOST_TRIED],
            tool=sent(request, "tool") if sent(request, "tool") in TOOLS else "bash",
            sandbox=sent(request, "sandbox") != "none",
            imported=sent(request, "imported"),
        )

    def on_top(self, scope: Scope) -> "Draft":
        """The same as an edit of the version that is in force now."""
        newest = scope.versions().last()
        return replace(self, base=newest.number if newest else 0)

    def with_more(self, policy: str) -> "Draft":
        """The same with another policy behind the text."""
        return replace(self, text=f"{self.text.rstrip()}\n---\n{policy}")


@dataclass
class Often:
    """A call that is asked about again and again, and how often people said yes."""

    what: str
    times: int = 0
    approved: int = 0


def asked_often(approvals: QuerySet[Approval], scope: Scope) -> list[Often]:
    """The calls that were asked about most in a scope, of the latest questions that are answered."""
    if scope.project is None or scope.card is not None:
        return []
    answered = approvals.filter(project=scope.project, decided_by__isnull=False)
    counts: dict[str, Often] = {}
    for given, tool, status in answered.order_by("-pk").values_list("input", "tool", "status")[
        :MOST_QUESTIONS
    ]:
        what = str(given.get("command") or "") if tool == "bash" else ""
        if what:
            row = counts.setdefault(what, Often(what))
            row.times += 1
            row.approved += status == ApprovalStatus.APPROVED
    often = sorted(counts.values(), key=lambda row: -row.times)
    return [row for row in often if row.times > 1][:MOST_OFTEN]


def tried(scope: Scope, draft: Draft) -> Explanation | None:
    """What the gate would say of the call that was typed; None if there is none."""
    call = _call(scope, draft)
    if call is None:
        return None
    return gate().explain(call, policies.binding_with(scope, draft.text))


def _call(scope: Scope, draft: Draft) -> TriedCall | None:
    text = draft.call.strip()
    if not text:
        return None
    sandbox = "bubblewrap" if draft.sandbox else "none"
    checks = [scope.project.setup_command] if scope.project else []
    checks += scope.card.checks if scope.card else []
    pasted = _pasted(text)
    if pasted is not None:
        return TriedCall(pasted[0], pasted[1], sandbox, tuple(filter(None, checks)))
    _, name = TOOLS[draft.tool]
    given = {name: draft.call if name == "command" else text}
    if draft.tool == "write_file":
        given["content"] = ""
    return TriedCall(draft.tool, given, sandbox, tuple(filter(None, checks)))


def _pasted(text: str) -> tuple[str, dict[str, Any]] | None:
    """A whole call as JSON, as the journal has it: {"tool": ..., "input": {...}}."""
    try:
        whole_call = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole_call, dict) or not isinstance(whole_call.get("input"), dict):
        return None
    tool = whole_call.get("tool")
    return (tool, whole_call["input"]) if isinstance(tool, str) else None


def page_context(scope: Scope, draft: Draft) -> dict[str, Any]:
    """The whole page but for what a button asks for."""
    newest = scope.versions().select_related("author").last()
    others = [one for one in scope_texts(scope) if one.origin != scope.origin]
    saved = [ScopeText(scope.origin, newest.text)] if newest else []
    rules = gate().rules([*gate().standing(), *others, *saved])
    counted = Counter(rule.tier for rule in rules)
    grants = _grants(scope)
    return {
        "draft": draft,
        "newest": newest,
        "rules": [(rule, KINDS[rule.kind], rule.origin == scope.origin) for rule in rules],
        "counts": {
            "allow": counted["allow"] + len(grants),
            "ask": counted["ask"],
            "deny": counted["deny"],
        },
        "grants": grants,
        "profiles": list(PROFILES.items()),
        "profile": policies.profile_of(scope),
        "profile_name": PROFILES[policies.profile_of(scope)],
        "tools": [(name, words) for name, (words, _) in TOOLS.items()],
        "warnings": gate().warn(newest.text) if newest else [],
        "lines": range(1, max(draft.text.count("\n") + 2, 14)),
        "above": [one.origin for one in scope.above()],
    }


def _grants(scope: Scope) -> list[Grant]:
    if scope.project is None:
        return []
    rows = Grant.objects.filter(project=scope.project, withdrawn_at__isnull=True)
    return list(rows.select_related("granted_by", "approval").order_by("-pk")[:MOST_GRANTS])
