"""What the feeds read from the database, in plain functions for a thread.

Who may see it is read last, after all that is sent: nobody gets a card that they could not fetch then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from board import fragments
from board.live import frame, ops_for, put_ops
from board.models import Event, LogItem, Membership, Project, Run, User
from board.states import HELD, ApprovalStatus, Role

MAX_GAP = 500  # events; a browser that missed more reads the whole page again
LOG_PAGE = 200  # items in one frame of a log
LOG_FRAME_CHARS = 48_000  # characters of log data after which a frame is full
TICK_FIELDS = ("card_id", "activity", "plan", "steps_done", "cost_microusd")
TOKEN_FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
HEAD_FIELDS = (
    "status", "waiting_for", "activity", "steps_done", "plan", "cost_microusd", "questions",
    "failure", "ended_at", "cancel_requested_at", *TOKEN_FIELDS,
)  # fmt: skip

Ticks = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class BoardReading:
    """What happened on a board after some seq, and who may know."""

    seq: int
    epoch: int
    members: Mapping[int, Role]  # empty when the project is archived or gone
    frame: str = ""  # "" if nothing happened
    has_questions: bool = False  # whether a question was asked or answered


def read_board(project_id: int, after: int) -> BoardReading:
    """Return what happened on the board after `after`."""
    project = Project.objects.filter(pk=project_id, archived_at__isnull=True).first()
    if project is None:
        return BoardReading(seq=after, epoch=0, members={})
    text, has_questions = "", False
    if project.seq > after:
        text, has_questions = _catch_up(project, after)
    return BoardReading(project.seq, project.epoch, members_of(project_id), text, has_questions)


def read_present(project_id: int, *, with_notices: bool) -> tuple[Ticks, str, Mapping[int, Role]]:
    """Return what is no event: what the runs do, the frame with the notices, and who may know."""
    ticks, text = read_ticks(project_id), ""
    if with_notices:
        html = fragments.render_notices(Project.objects.get(pk=project_id))
        text = frame("now", ops=[{"op": "notices", "html": html}])
    return ticks, text, members_of(project_id)


def catch_up(project_id: int, *, epoch: int, after: int, user_id: int) -> tuple[str, Role | None]:
    """Return the frame that brings a browser from `after` to now, and the person's role (None: none)."""
    project = Project.objects.filter(pk=project_id, archived_at__isnull=True).first()
    if project is None:
        return "", None
    if epoch != project.epoch:
        text = frame("resync", reason="epoch")
    elif after > project.seq:
        text = frame("resync", reason="ahead")
    elif after == project.seq:
        text = frame("batch", **{"from": after + 1, "to": after, "ops": []})
    else:
        text, _ = _catch_up(project, after)
    return text, members_of(project_id).get(user_id)


def _catch_up(project: Project, after: int) -> tuple[str, bool]:
    if project.seq - after > MAX_GAP:
        return frame("resync", reason="gap"), True
    events = list(Event.objects.filter(project=project, seq__gt=after, seq__lte=project.seq))
    ops = ops_for(project, events)
    has_questions = any(event.kind.startswith("Approval") for event in events)
    if len(events) == 1:
        (event,) = events
        who = {"actor": event.actor, "user": event.user_id, "op_id": event.op_id}
        return frame("ev", seq=project.seq, **who, ops=ops), has_questions
    op_ids = [event.op_id for event in events if event.op_id]
    span = {"from": after + 1, "to": project.seq}
    return frame("batch", **span, op_ids=op_ids, ops=ops), has_questions


def members_of(project_id: int) -> dict[int, Role]:
    """Return who may see the project now, and as what."""
    rows = Membership.objects.filter(
        project_id=project_id, project__archived_at__isnull=True, user__is_active=True
    )
    return {user: Role(role) for user, role in rows.values_list("user_id", "role")}


def read_ticks(project_id: int) -> Ticks:
    """Return what each run that is worked on does now, by run."""
    rows = Run.objects.filter(project_id=project_id, status__in=HELD)
    return {
        row["pk"]: {
            "run": row["pk"],
            "card": row["card_id"],
            "activity": row["activity"],
            "step": step_words(row["plan"], row["steps_done"]),
            "plan": [item.get("state") for item in row["plan"]],
            "cost": row["cost_microusd"],
            "tokens": sum(row[name] for name in TOKEN_FIELDS),
        }
        for row in rows.values("pk", *TICK_FIELDS, *TOKEN_FIELDS)
    }


def step_words(plan: list[dict[str, Any]], steps: int) -> str:
    """Say how far a run is, as its card does."""
    if plan:
        done = sum(1 for item in plan if item.get("status") == "done")
        return f"step {min(done + 1, len(plan))} of {len(plan)}"
    return f"{steps} step{'' if steps == 1 else 's'}"


def redraw(project_id: int, card_ids: list[int]) -> tuple[str, Mapping[int, Role]]:
    """Return the frame that draws these cards as they are now, and who may see it. It is not an event."""
    project = Project.objects.get(pk=project_id)
    return frame("now", ops=put_ops(project, card_ids)), members_of(project_id)


def count_questions(user_ids: list[int]) -> dict[int, int]:
    """Return how many questions of all their projects wait for an answer, for each person."""
    waiting = Q(
        memberships__project__approvals__status=ApprovalStatus.PENDING,
        memberships__project__archived_at__isnull=True,
    )
    rows = User.objects.filter(pk__in=user_ids).annotate(
        n=Count("memberships__project__approvals", filter=waiting, distinct=True)
    )
    return dict(rows.values_list("pk", "n"))


@dataclass(frozen=True)
class LogFrame:
    """The log items `first`..`last` of a run, as the text that is sent."""

    first: int
    last: int
    text: str


@dataclass(frozen=True)
class LogReading:
    """What a run's log says after some seq, and who may know."""

    members: Mapping[int, Role]
    last: int  # seq of the run's last item
    frame: LogFrame | None = None
    head: str = ""  # the frame of the run's head, if it looks different now
    state: tuple[Any, ...] = ()  # what `head` was drawn from


def read_log(
    run_id: int, after: int, *, until: int | None = None, state: tuple[Any, ...] | None = None
) -> LogReading:
    """Return the next page of a run's log. With `state`, also the head if it differs from that."""
    run = Run.objects.select_related("card__project", "project").get(pk=run_id)
    items = LogItem.objects.filter(run_id=run_id, seq__gt=after)
    if until is not None:
        items = items.filter(seq__lte=until)
    page = _fit(list(items[:LOG_PAGE])) if run.log_seq > after else []
    found = _log_frame(run, page) if page else None
    head, now = "", tuple(str(getattr(run, name)) for name in HEAD_FIELDS)
    if state is not None and state != now:
        head = frame("head", run=run_id, html=fragments.render_run_head(run))
    return LogReading(members_of(run.project_id), run.log_seq, found, head, now)


def read_log_before(run_id: int, before: int) -> tuple[str, Mapping[int, Role]]:
    """Return the page of the log that ends before `before`, as a frame, and who may see it."""
    run = Run.objects.select_related("card__project", "project").get(pk=run_id)
    newest_first = LogItem.objects.filter(run_id=run_id, seq__lt=before).order_by("-seq")
    page = _fit(list(newest_first[:LOG_PAGE]))[::-1]
    first = page[0].seq if page else before
    text = frame("log.page", run=run_id, first=first, ops=fragments.render_log(run, page))
    return text, members_of(run.project_id)


def _log_frame(run: Run, page: list[LogItem]) -> LogFrame:
    first, last = page[0].seq, page[-1].seq
    ops = fragments.render_log(run, page)
    return LogFrame(first, last, frame("log", run=run.pk, first=first, off=last, ops=ops))


def _fit(items: list[LogItem]) -> list[LogItem]:
    """Return the first items that fill one frame; at least one."""
    size = 0
    for place, item in enumerate(items):
        size += len(str(item.data))
        if size > LOG_FRAME_CHARS and place:
            return items[:place]
    return items
