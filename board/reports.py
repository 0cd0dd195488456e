"""What a project's agents did and asked in the last days, in numbers."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import median

from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from board.models import Approval, Project, Run, Usage
from board.states import ApprovalStatus, RunStatus

PERIODS = (7, 14, 90)  # days that the page offers
MOST_DAYS = 366
BUSIEST = 5  # runs that asked most


@dataclass
class Answers:
    """How one person answered: counts, and the median of the seconds until the answer (None: no answer)."""

    name: str
    approved: int = 0
    denied: int = 0
    asked_back: int = 0
    median_seconds: float | None = None

    @property
    def total(self) -> int:
        """All answers."""
        return self.approved + self.denied + self.asked_back


@dataclass(frozen=True)
class Asking:
    """How often a rule asked, and what became of it."""

    rule: str
    questions: int
    approved: int
    denied: int


@dataclass(frozen=True)
class Report:
    """The last `days` days of a project. Questions count when they were asked, runs when they began."""

    days: int
    runs: int
    succeeded: int
    failed: int
    questions: int
    open: int
    approved: int
    denied: int
    expired: int
    asked_back: int
    median_seconds: float | None
    cost_microusd: int
    people: list[Answers] = field(default_factory=list)
    rules: list[Asking] = field(default_factory=list)
    busiest: list[Run] = field(default_factory=list)

    @property
    def questions_per_run(self) -> float:
        """Questions for each run, to two places."""
        return round(self.questions / self.runs, 2) if self.runs else 0.0


def report(project: Project, *, days: int) -> Report:
    """Return the numbers of the last `days` days. Seven queries, whatever there is."""
    since = timezone.now() - timedelta(days=days)
    runs = Run.objects.filter(project=project, created_at__gte=since)
    statuses = Counter(runs.values_list("status", flat=True))
    asked = list(_asked(project, since=since))
    ends = Counter(approval.status for approval in asked)
    cost = Usage.objects.filter(run__project=project, created_at__gte=since).aggregate(
        all=Sum("cost_microusd")
    )
    busiest = runs.filter(questions__gt=0).select_related("card__project")
    return Report(
        days=days,
        runs=sum(statuses.values()),
        succeeded=statuses[RunStatus.SUCCEEDED],
        failed=statuses[RunStatus.FAILED],
        questions=len(asked),
        open=ends[ApprovalStatus.PENDING],
        approved=ends[ApprovalStatus.APPROVED],
        denied=ends[ApprovalStatus.DENIED],
        expired=ends[ApprovalStatus.EXPIRED],
        asked_back=ends[ApprovalStatus.RETURNED],
        median_seconds=_median(_seconds(each) for each in asked if each.decided_by_id),
        cost_microusd=cost["all"] or 0,
        people=_people(asked),
        rules=_rules(asked),
        busiest=list(busiest.order_by("-questions", "-pk")[:BUSIEST]),
    )


def _asked(project: Project, *, since: object) -> QuerySet[Approval]:
    rows = Approval.objects.filter(project=project, created_at__gte=since)
    return rows.select_related("decided_by", "first_by").only(
        "status", "rule", "created_at", "decided_at", "first_at", "decided_by", "first_by"
    )


def _seconds(approval: Approval) -> float:
    end = approval.decided_at or approval.created_at
    return max((end - approval.created_at).total_seconds(), 0.0)


def _median(seconds: Iterable[float]) -> float | None:
    found = list(seconds)
    return round(median(found), 1) if found else None


def _people(asked: Iterable[Approval]) -> list[Answers]:
    """Return each person with their answers; the first of two approvers has given one, too."""
    rows: dict[int, Answers] = {}
    waits: dict[int, list[float]] = defaultdict(list)
    for each in asked:
        if each.decided_by is not None:
            row = rows.setdefault(each.decided_by.pk, Answers(str(each.decided_by)))
            row.approved += each.status == ApprovalStatus.APPROVED
            row.denied += each.status == ApprovalStatus.DENIED
            row.asked_back += each.status == ApprovalStatus.RETURNED
            waits[each.decided_by.pk].append(_seconds(each))
        if each.first_by is not None and each.first_at is not None:
            row = rows.setdefault(each.first_by.pk, Answers(str(each.first_by)))
            row.approved += 1
            waits[each.first_by.pk].append((each.first_at - each.created_at).total_seconds())
    for pk, row in rows.items():
        row.median_seconds = _median(waits[pk])
    return sorted(rows.values(), key=lambda row: (-row.total, row.name))


def _rules(asked: Iterable[Approval]) -> list[Asking]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for each in asked:
        counts[each.rule][each.status] += 1
    found = [
        Asking(
            rule,
            sum(ends.values()),
            ends[ApprovalStatus.APPROVED],
            ends[ApprovalStatus.DENIED],
        )
        for rule, ends in counts.items()
    ]
    return sorted(found, key=lambda row: (-row.questions, row.rule))


def refused_of(run: Run) -> list[Approval]:
    """Return the calls of a run that nobody approved: denied, or expired; for who reviews its work."""
    ends = Q(status=ApprovalStatus.DENIED) | Q(status=ApprovalStatus.EXPIRED)
    rows = Approval.objects.select_related("decided_by", "run__card__project", "project")
    return list(rows.filter(ends, run=run).order_by("pk"))
