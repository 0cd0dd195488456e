"""The harness's ports made of board actions: the journal, the gate and the steering of one run."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NoReturn

from agents.database import Database
from agents.harness.errors import Waiting
from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide
from agents.harness.ports import (
    Answer,
    Decision,
    Entry,
    EntryKind,
    EntryStatus,
    Json,
    Tier,
    ToolCall,
    Usage,
    Verdict,
)
from agents.log_sink import LogSink
from agents.policies import grants, in_force
from agents.saving import Saver
from agents.shown import shown
from board.actions import approvals, journal, steering
from board.models import Approval, Step
from board.states import ApprovalStatus, StepKind, StepStatus

# Calls after which the working tree may differ, unless one of these rules allowed them.
CHANGING = frozenset({"bash", "write_file", "edit_file"})
READING_RULES = frozenset({"L1", "L6"})


class Lease:
    """The run that this worker holds: its id, its fence, and the time it has worked on it."""

    def __init__(self, run_id: int, fence: int) -> None:
        self.run_id = run_id
        self.fence = fence
        self._since = asyncio.get_running_loop().time()

    @property
    def key(self) -> tuple[int, int]:
        """What every write of the run names: its id and fence."""
        return self.run_id, self.fence

    def active_seconds(self) -> float:
        """Return the seconds since this worker took the run up."""
        return round(asyncio.get_running_loop().time() - self._since, 3)


class RunJournal:
    """The journal of a run in the database; see `agents.harness.ports.Journal`."""

    def __init__(self, lease: Lease, db: Database) -> None:
        self._lease = lease
        self._db = db
        self.taken = 0  # the last message to the agent that the next steering note holds

    async def load(self) -> list[Entry]:
        """All entries by seq."""
        rows = await self._db(journal.load_steps, self._lease.run_id)
        return [_entry(step, question) for step, question in rows]

    async def begin(self, kind: EntryKind, request: Json) -> int:
        """Add an entry that is about to act."""
        return await self._db(
            journal.begin_step,
            self._lease.run_id,
            self._lease.fence,
            kind=StepKind(kind),
            request=request,
        )

    async def add(self, kind: EntryKind, request: Json, *, response: Json | None = None) -> int:
        """Add an entry that is done at once."""
        step: Json = {
            "kind": StepKind(kind),
            "request": request,
            "response": response,
            "status": StepStatus.DONE,
        }
        if kind is EntryKind.NOTE and request.get("source") == "steering":
            add = partial(steering.deliver, up_to=self.taken)
        else:
            add = partial(journal.begin_step)
        return await self._db(add, self._lease.run_id, self._lease.fence, **step)

    async def resume(self, seq: int) -> None:
        """Start an answered entry: once."""
        await self._db(journal.resume_step, self._lease.run_id, self._lease.fence, seq=seq)

    async def finish(
        self,
        seq: int,
        response: Json,
        *,
        status: EntryStatus = EntryStatus.DONE,
        usage: Usage | None = None,
        model: str = "",
    ) -> None:
        """Close an entry with its outcome and usage."""
        await self._db(
            journal.finish_step,
            self._lease.run_id,
            self._lease.fence,
            seq=seq,
            response=response,
            status=StepStatus(status),
            usage=None if usage is None else {**asdict(usage), "model": model},
        )


class RunGate:
    """The gate of a run: the policy, a person's grants, and the cord; see `ports.Gate`."""

    def __init__(
        self, lease: Lease, db: Database, *, context: Context, sink: LogSink, saver: Saver
    ) -> None:
        self._lease = lease
        self._db = db
        self._context = context
        self._sink = sink
        self._saver = saver

    async def check(self, call: ToolCall) -> Verdict:
        """Judge the call. What people allowed for this run or for ever counts as allowed."""
        # A version that was saved since the last call counts from here on.
        self._context = (await self._db(in_force, self._lease.run_id)).on(self._context)
        verdict = await asyncio.to_thread(decide, call, self._context)
        if verdict.tier is Tier.ASK:
            granted = await self._db(approvals.grants_of, self._lease.run_id)
            if granted:
                context = replace(self._context, grants=grants(granted))
                verdict = await asyncio.to_thread(decide, call, context)
        if verdict.tier is not Tier.DENY and may_change(call, verdict):
            # The commit of the turn before must hold that turn's files and no later ones.
            await self._saver.settle()
            self._saver.note_change()
        return verdict

    async def ask(self, call: ToolCall, verdict: Verdict, *, seq: int | None) -> NoReturn:
        """Commit the question, let go of the run, and end this coroutine."""
        await self._saver.settle()
        await self._sink.flush()
        question = approvals.Question(
            call_id=call.id,
            tool=call.tool,
            input=call.input,
            rule=verdict.rule,
            reasons=verdict.reasons,
            digest=verdict.digest,
            facts=verdict.facts,
            effects=verdict.effects,
            sandbox=self._context.sandbox,
            record=verdict.record,
            shown=await asyncio.to_thread(shown, call, verdict, self._context.files),
            critical=verdict.critical,
        )
        await self._db(
            approvals.request_approval,
            self._lease.run_id,
            self._lease.fence,
            question,
            seq=seq,
            active_seconds=self._lease.active_seconds(),
        )
        raise Waiting("approval")


def may_change(call: ToolCall, verdict: Verdict) -> bool:
    """Return whether the working tree may differ after `call`; if in doubt, it may."""
    only_reads = verdict.tier is Tier.ALLOW and verdict.rule in READING_RULES
    return call.tool in CHANGING and not only_reads


class RunSteering:
    """What people say to the running agent; delivered when it is in the journal."""

    def __init__(self, lease: Lease, db: Database, sink: LogSink, journal: RunJournal) -> None:
        self._lease = lease
        self._db = db
        self._sink = sink
        self._journal = journal

    async def take(self) -> list[str]:
        """Messages that are not in the journal yet, oldest first."""
        waiting = await self._db(steering.undelivered, self._lease.run_id)
        for comment in waiting:
            self._sink.emit("said", who=str(comment.author), text=comment.body)
            self._journal.taken = comment.pk
        return [comment.body for comment in waiting]


def _entry(step: Step, question: Approval | None) -> Entry:
    answer = None
    if question is not None and question.status != ApprovalStatus.PENDING:
        answer = Answer(
            decision=Decision(question.status),
            by=_names(question),
            comment=question.comment,
            input=_approved_input(step, question),
            digest=question.digest,
            facts=_mapping(question.facts),
            critical=question.critical,
        )
    return Entry(
        seq=step.seq,
        kind=EntryKind(step.kind),
        status=EntryStatus(step.status),
        request=step.request,
        response=step.response,
        answer=answer,
    )


def _approved_input(step: Step, question: Approval) -> Mapping[str, Any] | None:
    """Return what is to run where it differs from the model's own input: edited now, or before."""
    given = question.edited_input or question.input
    return given if given != step.request.get("input") else None


def _names(question: Approval) -> str:
    """Return who decided; both people where it took two."""
    last = str(question.decided_by or "Pullcord")
    first = question.first_by if question.status == ApprovalStatus.APPROVED else None
    return f"{first} and {last}" if first else last


def _mapping(facts: Any) -> Mapping[str, Any]:
    return facts if isinstance(facts, dict) else {}
