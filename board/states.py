"""Every status of the product and what may follow it. Plain Python; the diagram is docs/reference/states.md."""

from enum import StrEnum


class CardStatus(StrEnum):
    """Where a card stands in its life."""

    BACKLOG = "backlog"
    QUEUED = "queued"
    RUNNING = "running"
    REVIEW = "review"
    MERGING = "merging"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Lane(StrEnum):
    """What a column stands for; several columns may share a lane."""

    BACKLOG = "backlog"
    QUEUED = "queued"
    RUNNING = "running"
    REVIEW = "review"
    MERGING = "merging"
    DONE = "done"


class RunStatus(StrEnum):
    """Where one attempt at a card stands."""

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    READY = "ready"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class WaitingFor(StrEnum):
    """Why a run was put aside."""

    APPROVAL = "approval"
    INPUT = "input"
    RETRY = "retry"
    LIMIT = "limit"
    PAUSE = "pause"


class FailureKind(StrEnum):
    """Why a run or a card failed."""

    AUTH = "auth"
    QUOTA = "quota"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    LOOP = "loop"
    CONTEXT_OVERFLOW = "context_overflow"
    VERIFICATION = "verification"
    POLICY = "policy"
    BUDGET = "budget"
    INFRASTRUCTURE = "infrastructure"
    INTERNAL = "internal"
    UPSTREAM = "upstream"  # of a card only: a card that it needs has failed
    REPORTED = "reported"  # the agent itself said that it could not do it


class StepKind(StrEnum):
    """What one step of the journal records; the same words as `agents.harness.ports.EntryKind`."""

    START = "start"
    MODEL = "model"
    TOOL = "tool"
    NOTE = "note"


class StepStatus(StrEnum):
    """How far one step came."""

    STARTED = "started"
    PENDING = "pending"
    DONE = "done"
    UNKNOWN = "unknown"


class ApprovalStatus(StrEnum):
    """What became of a question to a person."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    RETURNED = "returned"  # a person asked the agent something instead; it may ask again


class ApprovalScope(StrEnum):
    """How far an approval reaches."""

    ONCE = "once"
    RUN = "run"
    ALWAYS = "always"


class ToolProfile(StrEnum):
    """The least set of tools that a task needs, narrowest first; see docs/reference/policy.md."""

    READ_ONLY = "read-only"
    EDIT = "edit"
    EDIT_TEST = "edit-test"
    FULL = "full"


class PolicyScope(StrEnum):
    """For whom the rules of people hold."""

    ORGANISATION = "organisation"
    PROJECT = "project"
    CARD = "card"


class ProjectState(StrEnum):
    """Whether the project's hub can be worked from."""

    FETCHING = "fetching"
    READY = "ready"
    ERROR = "error"


class ErrandKind(StrEnum):
    """Short work that a worker does for the board: git, and a try of the project's container."""

    FETCH = "fetch"
    MERGE = "merge"
    TRY = "try"


class ContainerEngine(StrEnum):
    """What a project's agents may run in, in place of the worker's own sandbox."""

    PODMAN = "podman"
    DOCKER = "docker"


class ErrandStatus(StrEnum):
    """Where an errand stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Role(StrEnum):
    """What a member may do, each including the ones behind it."""

    OWNER = "owner"
    MAINTAINER = "maintainer"
    MEMBER = "member"
    VIEWER = "viewer"


# Who may do at least what a role may: ROLE_ORDER[have] >= ROLE_ORDER[need].
ROLE_ORDER = {Role.VIEWER: 0, Role.MEMBER: 1, Role.MAINTAINER: 2, Role.OWNER: 3}

_C = CardStatus
CARD_TRANSITIONS: dict[CardStatus, frozenset[CardStatus]] = {
    _C.BACKLOG: frozenset({_C.QUEUED, _C.REVIEW, _C.DONE, _C.CANCELLED}),
    _C.QUEUED: frozenset({_C.BACKLOG, _C.RUNNING, _C.FAILED, _C.CANCELLED}),
    _C.RUNNING: frozenset({_C.REVIEW, _C.QUEUED, _C.FAILED, _C.CANCELLED}),
    _C.REVIEW: frozenset({_C.MERGING, _C.QUEUED, _C.BACKLOG, _C.DONE, _C.CANCELLED}),
    _C.MERGING: frozenset({_C.DONE, _C.REVIEW}),
    _C.DONE: frozenset(),
    _C.FAILED: frozenset({_C.QUEUED, _C.BACKLOG, _C.CANCELLED}),
    _C.CANCELLED: frozenset({_C.BACKLOG}),
}

_R = RunStatus
RUN_TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    _R.STARTING: frozenset({_R.RUNNING, _R.READY, _R.WAITING, _R.FAILED, _R.CANCELLED}),
    _R.RUNNING: frozenset({_R.WAITING, _R.READY, _R.SUCCEEDED, _R.FAILED, _R.CANCELLED}),
    _R.WAITING: frozenset({_R.READY, _R.FAILED, _R.CANCELLED}),
    _R.READY: frozenset({_R.RUNNING, _R.FAILED, _R.CANCELLED}),
    _R.SUCCEEDED: frozenset(),
    _R.FAILED: frozenset(),
    _R.CANCELLED: frozenset(),
}

_A = ApprovalStatus
APPROVAL_TRANSITIONS: dict[ApprovalStatus, frozenset[ApprovalStatus]] = {
    _A.PENDING: frozenset({_A.APPROVED, _A.DENIED, _A.EXPIRED, _A.CANCELLED, _A.RETURNED}),
    _A.APPROVED: frozenset(),
    _A.DENIED: frozenset(),
    _A.EXPIRED: frozenset(),
    _A.CANCELLED: frozenset(),
    _A.RETURNED: frozenset(),
}

_S = StepStatus
STEP_TRANSITIONS: dict[StepStatus, frozenset[StepStatus]] = {
    _S.STARTED: frozenset({_S.DONE, _S.UNKNOWN, _S.PENDING}),
    _S.PENDING: frozenset({_S.STARTED, _S.DONE}),
    _S.DONE: frozenset(),
    _S.UNKNOWN: frozenset(),
}

_E = ErrandStatus
ERRAND_TRANSITIONS: dict[ErrandStatus, frozenset[ErrandStatus]] = {
    _E.QUEUED: frozenset({_E.RUNNING}),
    _E.RUNNING: frozenset({_E.DONE, _E.FAILED, _E.QUEUED}),
    _E.DONE: frozenset(),
    _E.FAILED: frozenset(),
}

# A run that holds a slot and a lease.
HELD = (RunStatus.STARTING, RunStatus.RUNNING)
# A run that is not over; at most one for each card, by constraint.
LIVE = (*HELD, RunStatus.WAITING, RunStatus.READY)

# The lane in which a card of each status is shown: failed cards wait for a person beside the reviews.
LANE_OF: dict[CardStatus, Lane] = {
    _C.BACKLOG: Lane.BACKLOG,
    _C.QUEUED: Lane.QUEUED,
    _C.RUNNING: Lane.RUNNING,
    _C.REVIEW: Lane.REVIEW,
    _C.MERGING: Lane.MERGING,
    _C.DONE: Lane.DONE,
    _C.FAILED: Lane.REVIEW,
    _C.CANCELLED: Lane.DONE,
}
