"""Routes of a project's policy: what is in force, a new version, and what the gate would say of a call."""

from datetime import datetime
from typing import Any, Literal

from ninja import Router, Schema
from pydantic import StrictInt

from board import access
from board.actions import policies
from board.actions.policies import EMPTY, Scope
from board.api.answers import answers
from board.api.bodies import Body
from board.api.tokens import ApiRequest
from board.gate import TriedCall, gate
from board.models import Project
from board.states import Role

router = Router(tags=["policies"])


class RuleAnswer(Schema):
    """A rule of people; `origin` is whose, `line` where it stands there."""

    tier: str
    kind: str
    text: str
    origin: str
    line: int
    because: str


class PolicyAnswer(Schema):
    """The policy of a project; `version` is 0 while nobody has saved one. `rules` are all in force."""

    version: int
    text: str
    comment: str
    author: str | None
    created_at: datetime | None
    tool_profile: str
    rules: list[RuleAnswer]


class NewPolicy(Body):
    """A new version; `base` is the version that it was made from, 0 for the first one."""

    text: str
    base: StrictInt
    comment: str = ""


class Trial(Body):
    """A call, and the text under which it is judged if that is not the one in force."""

    tool: str = "bash"
    input: dict[str, Any]
    sandbox: Literal["bubblewrap", "landlock", "none"] = "bubblewrap"
    text: str | None = None


class ReasonAnswer(Schema):
    """One reason; `origin` is empty for a built-in rule."""

    rule: str
    text: str
    origin: str
    line: int


class VerdictAnswer(Schema):
    """What the gate would say: allow, ask or deny, the reasons with the deciding one first."""

    verdict: str
    rule: str
    reasons: list[ReasonAnswer]
    effects: list[Any]
    paths: dict[str, str]


@router.get("/projects/{key}/policy", response=answers(PolicyAnswer))
def show(request: ApiRequest, key: str) -> PolicyAnswer:
    """Show the policy of a project, and the rules of people that are in force there."""
    return _describe(access.get_project(request.auth, key))


@router.put("/projects/{key}/policy", response=answers(PolicyAnswer))
def save(request: ApiRequest, key: str, body: NewPolicy) -> PolicyAnswer:
    """Save a new version. It counts at the next call of every run; 409 if another came before."""
    project = access.get_project(request.auth, key, role=Role.MAINTAINER)
    policies.save_policy(
        Scope(project), body.text, by=request.auth, base=body.base, comment=body.comment
    )
    return _describe(project)


@router.post("/projects/{key}/policy/test", response=answers(VerdictAnswer))
def try_call(request: ApiRequest, key: str, body: Trial) -> VerdictAnswer:
    """Say what the gate would say of a call in an empty workspace. Nothing runs."""
    scope = Scope(access.get_project(request.auth, key))
    text = body.text if body.text is not None else _text(scope)
    policies.check_policy(text)
    setup = scope.project.setup_command if scope.project else ""
    call = TriedCall(body.tool, body.input, body.sandbox, (setup,) if setup else ())
    found = gate().explain(call, policies.binding_with(scope, text))
    reasons = [
        ReasonAnswer(rule=one.rule, text=one.text, origin=one.origin, line=one.line)
        for one in found.reasons
    ]
    return VerdictAnswer(
        verdict=found.tier,
        rule=found.rule,
        reasons=reasons,
        effects=list(found.effects),
        paths=dict(found.paths),
    )


def _text(scope: Scope) -> str:
    newest = scope.versions().last()
    return newest.text if newest else EMPTY


def _describe(project: Project) -> PolicyAnswer:
    scope = Scope(project)
    newest = scope.versions().select_related("author").last()
    in_force = gate().rules([*gate().standing(), *policies.scope_texts(scope)])
    return PolicyAnswer(
        version=newest.number if newest else 0,
        text=newest.text if newest else EMPTY,
        comment=newest.comment if newest else "",
        author=str(newest.author) if newest else None,
        created_at=newest.created_at if newest else None,
        tool_profile=project.tool_profile,
        rules=[
            RuleAnswer(
                tier=rule.tier,
                kind=rule.kind,
                text=rule.text,
                origin=rule.origin,
                line=rule.line,
                because=rule.because,
            )
            for rule in in_force
        ],
    )
