"""Policies and what else people have said once for all: new versions, profiles, grants withdrawn."""

from dataclasses import dataclass

from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from board import events
from board.actions import audit
from board.actions.audit import Act
from board.errors import NotAllowedError, PolicyRefusedError, TransitionError, ValidationError
from board.events import Actor, publish
from board.gate import Binding, GrantedCall, Problem, ScopeText, gate
from board.models import Card, Grant, PolicyVersion, Project, Run, User
from board.states import PolicyScope, ToolProfile

MAX_TEXT = 100_000  # characters of a policy
MAX_COMMENT = 500  # characters
EMPTY = "version: 1\n"


@dataclass(frozen=True)
class Scope:
    """Whose rules: of the organisation (neither), of a project, or of a card of it."""

    project: Project | None = None
    card: Card | None = None

    @property
    def kind(self) -> PolicyScope:
        """Which of the three it is."""
        if self.card is not None:
            return PolicyScope.CARD
        return PolicyScope.PROJECT if self.project is not None else PolicyScope.ORGANISATION

    @property
    def origin(self) -> str:
        """How reasons call it."""
        if self.card is not None:
            return f"card {self.card.ref}"
        return f"project {self.project.key}" if self.project is not None else "the organisation"

    def versions(self) -> QuerySet[PolicyVersion]:
        """The versions of this scope, oldest first."""
        return PolicyVersion.objects.filter(
            scope=self.kind, project=self.project, card=self.card
        ).order_by("number")

    def above(self) -> list["Scope"]:
        """The scopes whose rules also hold here, highest first."""
        scopes = [Scope()] if self.project is not None else []
        return [*scopes, *([Scope(self.project)] if self.card is not None else [])]


def save_policy(
    scope: Scope, text: str, *, by: User, base: int, comment: str = "", op_id: str = ""
) -> PolicyVersion:
    """Add a version to a scope. `base` is the number that the person edited, 0 for the first one.

    Raises PolicyRefusedError with the lines if the text is not valid or an example fails, and
    TransitionError if another version was saved since `base`.
    """
    text = text.replace("\r\n", "\n").replace("\x00", "")
    check_policy(text)
    try:
        with transaction.atomic():
            return _add(scope, text, by=by, base=base, comment=comment, op_id=op_id)
    except IntegrityError as error:
        raise _someone_was_first(scope) from error


def check_policy(text: str) -> None:
    """Raise PolicyRefusedError if a policy may not be saved."""
    if len(text) > MAX_TEXT:
        raise PolicyRefusedError([Problem(0, f"is longer than {MAX_TEXT:,} characters")])
    problems = gate().check(text)
    if problems:
        raise PolicyRefusedError(problems)


def _add(
    scope: Scope, text: str, *, by: User, base: int, comment: str, op_id: str
) -> PolicyVersion:
    before = scope.versions().last()
    if (before.number if before else 0) != base:
        raise _someone_was_first(scope)
    if before is not None and before.text == text:
        raise TransitionError("This is the version that is in force already. Nothing was saved.")
    version = PolicyVersion.objects.create(
        scope=scope.kind,
        project=scope.project,
        card=scope.card,
        number=base + 1,
        text=text,
        comment=comment.replace("\x00", "").strip()[:MAX_COMMENT],
        author=by,
        before=before,
    )
    _announce(scope, f"version {version.number}", by=by, comment=version.comment, op_id=op_id)
    _record(scope, "policy_saved", by=by, number=version.number, text=text)
    return version


def _someone_was_first(scope: Scope) -> TransitionError:
    newest = scope.versions().select_related("author").last()
    who = f"{newest.author} saved version {newest.number}" if newest else "Somebody saved one"
    return TransitionError(
        f"{who} while you were writing. Your text is kept: compare it with theirs, then save again."
    )


def set_profile(project: Project, profile: ToolProfile, *, by: User) -> None:
    """Set the widest set of tools that the cards of a project may have."""
    with transaction.atomic():
        changed = Project.objects.filter(pk=project.pk).exclude(tool_profile=profile)
        if not changed.update(tool_profile=profile):
            return
        _announce(Scope(project), f"tools: {profile}", by=by)
        _record(Scope(project), "tool_profile_set", by=by, profile=profile.value)
    project.refresh_from_db()


def withdraw_grant(grant: Grant, *, by: User) -> None:
    """Let an answer "always" count no more. Raises TransitionError if somebody did so before."""
    with transaction.atomic():
        found = Grant.objects.filter(pk=grant.pk, withdrawn_at__isnull=True)
        if not found.update(withdrawn_at=Now(), withdrawn_by=by):
            raise TransitionError("This answer was withdrawn before.")
        _announce(Scope(grant.project), "an answer that no longer lasts", by=by)
        _record(
            Scope(grant.project), "grant_withdrawn", by=by, grant=grant.pk, tool=grant.tool,
            input=grant.input,
        )  # fmt: skip


def add_grant(grant: Grant) -> None:
    """Keep an answer that lasts, unless the project has the very same one in force."""
    known = Grant.objects.filter(
        project_id=grant.project_id, tool=grant.tool, withdrawn_at__isnull=True
    )
    if not any(one.input == grant.input and one.scripts == grant.scripts for one in known):
        grant.save()


def _announce(scope: Scope, what: str, *, by: User, comment: str = "", op_id: str = "") -> None:
    if scope.project is None:  # of no board; the versions themselves say who and when
        return
    event = events.PolicyChanged(
        card_id=scope.card.pk if scope.card else None, what=what, comment=comment
    )
    publish(scope.project.pk, event, by=Actor.person(by), op_id=op_id)


def _record(scope: Scope, kind: str, *, by: User, **data: object) -> None:
    card = scope.card.ref if scope.card else ""
    audit.record(
        Act(
            kind,
            Actor.person(by),
            project=scope.project,
            card=card,
            data={"scope": scope.origin, **data},
        )
    )


def scope_texts(scope: Scope) -> list[ScopeText]:
    """The policies that hold in a scope, the highest first; without the files of the installation."""
    found = [(one, one.versions().last()) for one in [*scope.above(), scope]]
    return [ScopeText(one.origin, version.text) for one, version in found if version is not None]


def binding_with(scope: Scope, text: str) -> Binding:
    """What would bind a call in a scope if `text` were its policy."""
    others = [one for one in scope_texts(scope) if one.origin != scope.origin]
    project = scope.project
    return Binding(
        (*others, ScopeText(scope.origin, text)),
        profile_of(scope),
        tuple(project_grants(project.pk)) if project else (),
    )


def profile_of(scope: Scope) -> str:
    """The tools that a card in a scope may have at most."""
    if scope.project is None:
        return ToolProfile.FULL.value
    return narrower(scope.project.tool_profile, scope.card.tool_profile if scope.card else "")


_NEWEST = "(SELECT text FROM board_policyversion WHERE {} ORDER BY number DESC LIMIT 1)"
# One statement for each call of each agent; the ORM takes several times as long to write it.
_BINDING = f"""
    SELECT p.key, c.number, p.tool_profile, c.tool_profile,
        {_NEWEST.format("scope = 'organisation'")},
        {_NEWEST.format("scope = 'project' AND project_id = r.project_id")},
        {_NEWEST.format("scope = 'card' AND card_id = r.card_id")}
    FROM board_run r
    JOIN board_project p ON p.id = r.project_id
    JOIN board_card c ON c.id = r.card_id
    WHERE r.id = %s
"""  # noqa: S608  made of constants


def binding_of(run_id: int) -> Binding:
    """What binds the calls of a run at this moment, without grants. One small read."""
    with connection.cursor() as cursor:
        cursor.execute(_BINDING, [run_id])
        row = cursor.fetchone()
    if row is None:
        raise Run.DoesNotExist(f"There is no run {run_id}.")
    key, number, of_project, of_card, *texts = row
    origins = ("the organisation", f"project {key}", f"card {key}-{number}")
    scopes = [
        ScopeText(origin, text)
        for origin, text in zip(origins, texts, strict=True)
        if text is not None
    ]
    return Binding(tuple(scopes), narrower(of_project, of_card))


def narrower(first: str, second: str) -> str:
    """The narrower of two profiles; empty is the widest."""
    order = [*ToolProfile]
    one, other = ToolProfile(first or ToolProfile.FULL), ToolProfile(second or ToolProfile.FULL)
    return min(one, other, key=order.index).value


def project_grants(project_id: int) -> list[GrantedCall]:
    """The calls that people allowed for ever in a project."""
    rows = Grant.objects.filter(project_id=project_id, withdrawn_at__isnull=True)
    return [GrantedCall(grant.tool, grant.input, grant.scripts) for grant in rows]


def clean_profile(text: str) -> ToolProfile:
    """The profile called so, or ValidationError."""
    try:
        return ToolProfile(text)
    except ValueError as error:
        known = ", ".join(ToolProfile)
        raise ValidationError(
            f"There is no tool profile {text!r}. There are {known}.",
            fields={"tool_profile": f"One of {known}."},
        ) from error


def check_scope_right(scope: Scope, *, by: User) -> None:
    """Raise NotAllowedError unless `by` may change the rules of the organisation."""
    if scope.project is None and not by.is_owner:
        raise NotAllowedError("Only an owner of this installation may change its policy.")
