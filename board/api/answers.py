"""What callers get: the schemas of the answers. Fields are added to them, never renamed or removed."""

from datetime import datetime
from typing import Any

from ninja import Schema

Json = dict[str, Any]


class Refusal(Schema):
    """Why a request was not carried out; `fields` says what is wrong with which input."""

    code: str
    message: str
    fields: dict[str, str] | None = None


class ColumnAnswer(Schema):
    """A column of a board."""

    id: int
    name: str
    lane: str
    limit: int | None


class ProjectAnswer(Schema):
    """A project; `state` is fetching, ready or error, and `message` says more about it."""

    key: str
    name: str
    repository: str
    target_branch: str
    setup_command: str
    max_parallel: int
    auto_merge: bool
    model: str
    tool_profile: str
    is_rehearsal: bool
    state: str
    message: str
    progress: int
    seq: int
    role: str
    columns: list[ColumnAnswer]
    created_at: datetime


class Failure(Schema):
    """Why a card failed or came back from the merge."""

    kind: str
    message: str


class Attempt(Schema):
    """One run of a card, in short."""

    id: int
    attempt: int
    status: str
    waiting_for: str
    failure_kind: str
    failure: str
    created_at: datetime
    ended_at: datetime | None


class CardAnswer(Schema):
    """A card; `unmet` counts the cards of `blocked_by`, which must be done first."""

    ref: str
    number: int
    title: str
    goal: str
    files: list[str]
    constraints: str
    checks: list[str]
    no_check: bool
    priority: int
    tool_profile: str
    depends_on: list[str]
    status: str
    column: str
    lane: str
    unmet: int
    blocked_by: list[str]
    failure: Failure | None
    attempts: int
    delivery: str
    merged_sha: str
    created_at: datetime
    updated_at: datetime
    archived: bool
    runs: list[Attempt]


class StepAnswer(Schema):
    """One step of a run's journal. Long texts are cut; the log has them whole."""

    seq: int
    kind: str
    status: str
    tool: str | None = None
    input: Any = None
    response: Any = None
    started_at: datetime
    ended_at: datetime | None


class UsageAnswer(Schema):
    """Tokens that a run has used."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


class RunAnswer(Schema):
    """A run in full. `cost` is in dollars, `cost_microusd` the same in millionths."""

    id: int
    card: str
    attempt: int
    status: str
    waiting_for: str
    failure_kind: str
    failure: str
    summary: str
    remaining: str
    evidence: list[Any]
    plan: list[Any]
    activity: str
    branch: str
    base_sha: str
    head_sha: str
    agent: str
    model: str
    steps: list[StepAnswer]
    usage: UsageAnswer
    cost_microusd: int
    cost: str
    questions: int
    active_seconds: float
    created_at: datetime
    ended_at: datetime | None


class LogAnswer(Schema):
    """One item of a run's log."""

    seq: int
    at: datetime
    kind: str
    data: Json


class DiffAnswer(Schema):
    """What a run has changed: totals, each file, all of it as one patch, and what the policy objects to.

    A finding is {"path", "rule", "reason", "line"}; line 0 is the file as a whole.
    """

    files: int
    additions: int
    deletions: int
    diff: list[Any]
    patch: str
    findings: list[Any]


class ApprovalAnswer(Schema):
    """A question of an agent, and its answer once somebody gave one."""

    id: int
    card: str
    run: int
    status: str
    tool: str
    input: Any
    rule: str
    reasons: list[Any]
    sandbox: str
    effects: list[Any]
    created_at: datetime
    scope: str
    decided_by: str | None
    decided_at: datetime | None
    comment: str
    edited_input: Any = None
    critical: bool
    digest: str
    shown: Json
    first_by: str | None
    expires_at: datetime | None


class PersonAnswers(Schema):
    """How one person answered, and the median of the seconds that it took."""

    name: str
    approved: int
    denied: int
    asked_back: int
    median_seconds: float | None


class RuleQuestions(Schema):
    """How often a rule asked, and what became of it."""

    rule: str
    questions: int
    approved: int
    denied: int


class ReportAnswer(Schema):
    """The last `days` days of a project. Questions count when they were asked, runs when they began."""

    days: int
    runs: int
    succeeded: int
    failed: int
    questions: int
    questions_per_run: float
    open: int
    approved: int
    denied: int
    expired: int
    asked_back: int
    median_seconds: float | None
    cost_microusd: int
    cost: str
    people: list[PersonAnswers]
    rules: list[RuleQuestions]


class EventAnswer(Schema):
    """One change of a board; `seq` has no gaps."""

    seq: int
    kind: str
    card: str | None
    run: int | None
    actor: str
    payload: Json
    at: datetime


ERRORS: dict[Any, Any] = dict.fromkeys((401, 403, 404, 409, 422, 429), Refusal)


def answers(schema: Any, *, status: int = 200) -> dict[Any, Any]:
    """Return what ninja's `response` wants: the schema of the answer, and of every refusal."""
    return {status: schema, **ERRORS}
