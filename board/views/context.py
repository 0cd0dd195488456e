"""What every page shows around its content: who is signed in, which board, how many questions wait."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from board.access import list_approvals
from board.models import Membership, Project, User
from board.states import ApprovalStatus

LAST_BOARD = "board"  # the session's name for the key of the board that was open last


class Shell:
    """The parts of the shell, each computed when a template asks for it."""

    version = settings.VERSION

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @cached_property
    def user(self) -> User | None:
        """The person who is signed in."""
        user = getattr(self._request, "user", None)
        return user if isinstance(user, User) or getattr(user, "is_authenticated", False) else None

    @cached_property
    def questions(self) -> "list[Open]":
        """The questions that wait in the person's projects."""
        return open_questions(self.user) if self.user else []

    @property
    def waiting(self) -> int:
        """How many questions wait."""
        return len(self.questions)

    @property
    def stamp(self) -> str:
        """A short text that changes when the set of open questions does."""
        return stamp_of(self.questions)

    @cached_property
    def memberships(self) -> list[Membership]:
        """The person's projects with the role in each."""
        if self.user is None:
            return []
        return list(
            Membership.objects.select_related("project")
            .filter(user=self.user, project__archived_at__isnull=True)
            .order_by("project__name")
        )

    @cached_property
    def membership(self) -> Membership | None:
        """The membership in the project whose page this is."""
        key = self._key()
        return next((row for row in self.memberships if row.project.key == key), None)

    @property
    def role(self) -> str:
        """The person's role in the project whose page this is, or nothing."""
        return self.membership.role if self.membership else ""

    @cached_property
    def board(self) -> Project | None:
        """Where the rail's "Board" leads: this page's project, else the last one, else the first."""
        if self.membership is not None:
            if self._request.session.get(LAST_BOARD) != self.membership.project.key:
                self._request.session[LAST_BOARD] = self.membership.project.key
            return self.membership.project
        last = self._request.session.get(LAST_BOARD) if self.memberships else None
        projects = [row.project for row in self.memberships]
        return next((p for p in projects if p.key == last), projects[0] if projects else None)

    def _key(self) -> str:
        match = self._request.resolver_match
        if match is None:
            return ""
        ref = str(match.kwargs.get("ref", ""))
        return str(match.kwargs.get("key", "")).upper() or ref.rpartition("-")[0].upper()


@dataclass(frozen=True)
class Open:
    """An open question, and what others do with it now."""

    pk: int
    first_by: int | None
    looked_by: int | None


def open_questions(user: User) -> list[Open]:
    """Return the questions that wait in the person's projects, oldest first."""
    pending = list_approvals(user).filter(status=ApprovalStatus.PENDING)
    rows = pending.values_list("pk", "first_by_id", "looked_by_id", "looked_until")
    now = timezone.now()
    return [
        Open(pk, first_by, looked_by if until is not None and until > now else None)
        for pk, first_by, looked_by, until in rows
    ]


def stamp_of(questions: Iterable[Open]) -> str:
    """Return a short text that is the same for the same questions in the same state only."""
    rows = [(each.pk, each.first_by, each.looked_by) for each in questions]
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:12]


def shell(request: HttpRequest) -> dict[str, Shell]:
    """Give the shell to every template."""
    return {"shell": Shell(request)}
