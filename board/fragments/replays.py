"""What a policy would have said to the calls that agents have made, beside the one that is in force."""

import difflib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from board.actions import policies
from board.actions.approvals import grants_of
from board.actions.policies import Scope
from board.gate import Binding, Change, Reason, RecordedCall, Replay, ScopeText, gate
from board.models import Approval, Run, Step
from board.states import ApprovalStatus

MOST_CALLS = 500  # of one replay; takes a fraction of a second
MOST_RUNS = 4  # that one row names
TELLING = ("command", "path", "pattern", "url", "summary")
STRICTNESS = ("allow", "ask", "deny")


@dataclass
class Row:
    """Calls that are the same, and whose answer changes in the same way."""

    tool: str
    what: str
    before: str
    after: str
    reason: Reason
    answers: set[str] = field(default_factory=set)  # what people had said: approved, denied
    runs: list[Run] = field(default_factory=list)
    times: int = 0

    @property
    def is_stricter(self) -> bool:
        """Whether the policy would get in the way more than now."""
        return STRICTNESS.index(self.after) > STRICTNESS.index(self.before)

    @property
    def was_denied(self) -> bool:
        """Whether a person had denied what would run at once."""
        return self.after == "allow" and ApprovalStatus.DENIED in self.answers


@dataclass(frozen=True)
class Replayed:
    """A replay for people: the rows, worst first, and the sums."""

    rows: Sequence[Row]
    result: Replay
    seconds: float

    @property
    def changed(self) -> int:
        """How many calls would get another answer."""
        return len(self.result.changes)

    @property
    def unknown(self) -> int:
        """How many calls cannot be judged again."""
        return len(self.result.unknown)

    @property
    def more_questions(self) -> int:
        """How many more calls would ask; negative if there are fewer."""
        return self.result.after.get("ask", 0) - self.result.before.get("ask", 0)

    @property
    def more_refusals(self) -> int:
        """How many more calls would be denied; negative if there are fewer."""
        return self.result.after.get("deny", 0) - self.result.before.get("deny", 0)

    @property
    def fewer_questions(self) -> int:
        """The same the other way round, for words."""
        return -self.more_questions

    @property
    def fewer_refusals(self) -> int:
        """The same the other way round, for words."""
        return -self.more_refusals

    @property
    def were_denied(self) -> int:
        """How many calls would run at once although a person had denied them."""
        return sum(row.times for row in self.rows if row.was_denied)


def replay(steps: Sequence[Step], scope: Scope, text: str) -> Replayed:
    """Judge recorded calls under the rules in force, and with `text` as those of `scope`."""
    began = time.perf_counter()
    of_run = _once(_binding)
    before = [of_run(step.run) for step in steps]
    with_text = _once(lambda run: _edited(of_run(run), scope, text))
    after = [with_text(step.run) for step in steps]
    result = gate().replay([_recorded(step) for step in steps], before, after)
    rows = _rows(steps, result.changes)
    return Replayed(rows, result, time.perf_counter() - began)


_T = TypeVar("_T")


def _once(work: Callable[[Run], _T]) -> Callable[[Run], _T]:
    """Do the work once for each run."""
    known: dict[int, _T] = {}

    def of(run: Run) -> _T:
        if run.pk not in known:
            known[run.pk] = work(run)
        return known[run.pk]

    return of


def _binding(run: Run) -> Binding:
    return replace(policies.binding_of(run.pk), grants=tuple(grants_of(run.pk)))


def _edited(binding: Binding, scope: Scope, text: str) -> Binding:
    """The same with another text for one scope. Their order does not count: the strictest wins."""
    others = [one for one in binding.scopes if one.origin != scope.origin]
    return replace(binding, scopes=(*others, ScopeText(scope.origin, text)))


def _recorded(step: Step) -> RecordedCall:
    request: Mapping[str, Any] = step.request
    return RecordedCall(
        str(request.get("tool", "")), request.get("input") or {}, request.get("gate") or {}
    )


def _rows(steps: Sequence[Step], changes: Sequence[Change]) -> list[Row]:
    answers = _answers([steps[change.index].pk for change in changes])
    rows: dict[tuple[str, ...], Row] = {}
    for change in changes:
        step = steps[change.index]
        tool, what = str(step.request.get("tool", "")), _what(step)
        key = (tool, what, change.before, change.after, change.reason.text)
        row = rows.setdefault(key, Row(tool, what, change.before, change.after, change.reason))
        row.times += 1
        row.answers |= answers.get(step.pk, set())
        if step.run not in row.runs and len(row.runs) < MOST_RUNS:
            row.runs.append(step.run)
    return sorted(rows.values(), key=_weight)


def _weight(row: Row) -> tuple[bool, bool, int, int]:
    """What becomes looser first: it is what one must look at."""
    return not row.was_denied, row.is_stricter, -STRICTNESS.index(row.after), -row.times


def _what(step: Step) -> str:
    given = step.request.get("input") or {}
    return next((str(given[name]) for name in TELLING if given.get(name)), "")[:2000]


def _answers(step_ids: Sequence[int]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    rows = Approval.objects.filter(step_id__in=step_ids, decided_by__isnull=False)
    for step_id, status in rows.values_list("step_id", "status"):
        found.setdefault(step_id, set()).add(status)
    return found


def changed_lines(before: str, after: str) -> Iterator[Mapping[str, Any]]:
    """The differences of two texts as hunks for `diffs.file_rows`."""
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(3):
        lines: list[tuple[str, int, int, str]] = []
        for kind, a, b, c, d in group:
            if kind == "equal":
                lines += [(" ", a + n + 1, c + n + 1, old[a + n]) for n in range(b - a)]
                continue
            lines += [("-", n + 1, 0, old[n]) for n in range(a, b)]
            lines += [("+", 0, n + 1, new[n]) for n in range(c, d)]
        yield {"header": f"line {group[0][3] + 1}", "lines": lines}
