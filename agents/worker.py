"""The life of one run on one worker: claim -> workspace -> executor -> checks -> review.

Ends in exactly one of: finished, failed, cancelled, put aside, given back, or lost to another worker.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from agents import verification
from agents.bridge import Lease, RunGate, RunJournal, RunSteering
from agents.briefing import Brief, load_brief
from agents.database import DATABASE_IS_AWAY, Database, RedactedDatabase
from agents.desk import Desk
from agents.endings import Endings, StopReason, UnfinishedError
from agents.executors import Executor, Job, Links, ModelAccess
from agents.harness.errors import FailureKind as HarnessFailure
from agents.harness.errors import FatalError, Waiting
from agents.harness.policy.profiles import Profile
from agents.harness.ports import EntryKind
from agents.harness.redaction import Secret
from agents.known_secrets import (
    learn,
    learn_from_repository,
    learn_from_worktree,
    redactor_of_run,
)
from agents.log_sink import LogSink
from agents.policies import policy_context
from agents.rehearsal.server import RehearsalServer
from agents.saving import Saver
from agents.seating import Seating
from agents.spares import Spares
from agents.unboxed_checks import CheckPermission
from agents.workspaces.errors import WorkspaceError
from board.actions import runs
from board.actions.claims import Claim
from board.errors import LeaseLostError

log = logging.getLogger(__name__)


class RunWork:
    """One claimed run. `run()` is the coroutine in a slot; `stop()` ends it early."""

    def __init__(
        self,
        claim: Claim,
        *,
        db: Database,
        executor: Executor,
        rehearsal: RehearsalServer,
        spares: Spares,
    ) -> None:
        self.claim = claim
        self._redactor = redactor_of_run()
        self._plain_db = db  # for the log, which is redacted as it is streamed
        self._db = RedactedDatabase(db, self._redactor)
        self._executor = executor
        self._rehearsal = rehearsal
        self._spares = spares
        self._reason: StopReason | None = None
        self.since = time.monotonic()
        self.task: asyncio.Task[None] | None = None
        self._desk: Desk | None = None
        self._saver: Saver | None = None

    def start(self) -> "asyncio.Task[None]":
        """Begin, and return the task."""
        self.task = asyncio.create_task(self._run(), name=f"run-{self.claim.run_id}")
        return self.task

    def stop(self, reason: StopReason) -> None:
        """End the run early, once; its processes are killed before the task ends."""
        if self._reason is None and self.task is not None and not self.task.done():
            self._reason = reason
            self.kill()
            self.task.cancel()

    def kill(self) -> None:
        """Kill what runs at the run's desk now. From any thread, also when the loop is stuck."""
        if self._desk is not None:
            self._desk.context.cancel.set()

    async def _run(self) -> None:
        run_id, fence = self.claim.run_id, self.claim.fence
        self._lease = Lease(run_id, fence)
        self._sink = LogSink(run_id, fence, self._plain_db, redactor=self._redactor)
        self._endings = Endings(self._lease, db=self._db, sink=self._sink)
        self._seating = Seating(self._lease, db=self._db, sink=self._sink, redactor=self._redactor)
        try:
            await self._work()
        except LeaseLostError:
            log.info("Run %s is held by another worker now", run_id)
        except Waiting as wait:
            await self._endings.put_aside(wait)
        except asyncio.CancelledError:
            await self._endings.end_early(self._reason, self._leave)
        except DATABASE_IS_AWAY as error:
            self.kill()
            await self._endings.give_back(error)
        except Exception as error:  # noqa: BLE001  a bug must end its own run only, and be seen
            await self._endings.fail(error, self._leave)
        finally:
            await self._sink.close()

    async def _work(self) -> None:
        brief = await self._db(load_brief, self.claim.run_id, self.claim.fence)
        self._learn(brief)
        desk = await self._seating.sit_down(brief, self._take_desk)
        self._spares.want(brief.project_key, brief.target_branch)
        saver = self._saver = Saver(lambda message: self._save(desk, message))
        journal = RunJournal(self._lease, self._db)
        links = Links(
            journal=journal,
            gate=RunGate(
                self._lease,
                self._db,
                context=policy_context(brief, desk),
                sink=self._sink,
                saver=saver,
            ),
            sink=self._sink,
            steering=RunSteering(self._lease, self._db, self._sink, journal),
            context=desk.context,
            after_turn=saver.after_turn,
            redactor=self._redactor,
        )
        try:
            async with desk.network(self._sink):
                await self._within_time_limit(
                    brief, lambda: self._attempt(brief, desk, links, saver)
                )
        finally:  # before the run is put aside: while it waits, nothing of it is here
            await asyncio.to_thread(desk.shell.close)

    def _take_desk(self, desk: Desk) -> None:
        """From now on whatever ends this run early kills what runs at its desk."""
        self._desk = desk

    def _learn(self, brief: Brief) -> None:
        """Hide this run's own secrets, and log none of them either."""
        if brief.access is not None:
            learn(self._redactor, Secret("model key", brief.access.api_key))
        learn_from_repository(self._redactor, brief.repository)

    async def _within_time_limit(self, brief: Brief, work: Callable[[], Awaitable[None]]) -> None:
        left = settings.RUN_TIME_LIMIT_SECONDS - brief.active_seconds
        try:
            async with asyncio.timeout(max(left, 0)) as limit:
                await work()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise FatalError(
                f"It worked for {_duration(settings.RUN_TIME_LIMIT_SECONDS)}, the limit for one attempt.",
                kind=HarnessFailure.TIMEOUT,
            ) from error

    async def _attempt(self, brief: Brief, desk: Desk, links: Links, saver: Saver) -> None:
        """Let the agent work and check its work, until it passes or the rounds are used up."""
        job = Job(self._seating.prompt(brief), await self._access(brief), Profile(brief.profile))
        while True:
            outcome = await self._executor(job, links)
            await saver.settle()
            head = await self._save(desk, "The agent's report")
            if outcome.status == "failed":
                raise UnfinishedError(outcome.summary, outcome.remaining)
            permission = CheckPermission(links.journal, links.gate)
            if brief.checks and desk.shell.sandbox_level == "none":
                await permission.obtain(brief.checks, head=head, cwd=str(desk.worktree.path))
            results = await verification.run_checks(
                brief.checks, shell=desk.shell, context=desk.context, sink=self._sink
            )
            evidence = verification.evidence(results)
            await permission.close(evidence)
            await self._db(runs.note_progress, *self._lease.key, evidence=evidence)
            if all(result.is_passed for result in results):
                summary = outcome.summary or "The agent ended without a report."
                await self._finish(brief, desk, head, summary, evidence)
                return
            await self._send_back(links, results)

    async def _send_back(self, links: Links, results: list[verification.CheckResult]) -> None:
        """Tell the agent what failed, or fail the run when it has been told often enough."""
        entries = await links.journal.load()
        told = sum(
            entry.kind is EntryKind.NOTE and entry.request.get("source") == "verification"
            for entry in entries
        )
        if told >= verification.ROUNDS:
            raise FatalError(verification.summary(results), kind=HarnessFailure.VERIFICATION)
        text = verification.feedback(results, round_number=told + 1)
        await links.journal.add(EntryKind.NOTE, {"source": "verification", "text": text})
        self._sink.emit(
            "note",
            text=f"Sent back to the agent, round {told + 1} of {verification.ROUNDS}",
            level="warning",
        )

    async def _finish(
        self, brief: Brief, desk: Desk, head: str, summary: str, evidence: list[dict[str, Any]]
    ) -> None:
        context = policy_context(brief, desk)
        changes = await desk.changes(self._seating.base(brief), head, context)
        await self._sink.flush()
        await self._db(
            runs.finish_run,
            *self._lease.key,
            head_sha=head,
            summary=summary,
            evidence=evidence,
            changes=changes,
            active_seconds=self._lease.active_seconds(),
        )

    async def _access(self, brief: Brief) -> ModelAccess:
        if brief.is_rehearsal:
            access = await self._rehearsal.access()
            learn(self._redactor, Secret("rehearsal key", access.api_key))
            return access
        if brief.access is None:
            raise FatalError(
                "There is no model key. Set ANTHROPIC_API_KEY or enter a key in the settings, then retry.",
                kind=HarnessFailure.AUTH,
            )
        return brief.access

    async def _save(self, desk: Desk, message: str) -> str:
        known = desk.left_out
        await asyncio.to_thread(learn_from_worktree, self._redactor, desk.worktree.path)
        sha = await desk.save(message)
        if desk.left_out and desk.left_out != known:
            files = "; ".join(desk.left_out[:5])
            self._sink.emit("note", text=f"Cannot be part of the work: {files}", level="warning")
        await self._db(runs.note_progress, *self._lease.key, head_sha=sha)
        return sha

    async def _leave(self) -> dict[str, Any]:
        """Save what there is and return it for the run's row; nothing of the work is lost."""
        desk = self._desk
        if desk is None:
            return {}
        if self._saver is not None:
            await self._saver.close()
        try:
            head = await desk.save("Work so far")
            changes = await desk.changes(desk.worktree.base_sha, head)
        except WorkspaceError as error:
            log.warning(
                "Work of run %s stays in %s only: %s", self.claim.run_id, desk.worktree.path, error
            )
            return {}
        return {"head_sha": head, "changes": changes}


def _duration(seconds: int) -> str:
    """Return a time limit in words."""
    return f"{seconds // 60} minutes" if seconds >= 120 else f"{seconds} seconds"  # noqa: PLR2004
