"""The life of one run on one worker: claim -> workspace -> executor -> checks -> review.

Ends in exactly one of: finished, failed, cancelled, put aside, given back, or lost to another worker.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

from django.conf import settings

from agents import verification
from agents.bridge import Lease, RunGate, RunJournal, RunSteering
from agents.briefing import Brief, load_brief
from agents.database import DATABASE_IS_AWAY, Database, RedactedDatabase
from agents.desk import Desk, Places, places
from agents.executors import Executor, Job, Links, ModelAccess
from agents.harness.errors import FailureKind as HarnessFailure
from agents.harness.errors import FatalError, Waiting
from agents.harness.policy.profiles import Profile
from agents.harness.ports import EntryKind
from agents.harness.redaction import Secret
from agents.harness.tools.registry import seen_in
from agents.known_secrets import (
    learn,
    learn_from_repository,
    learn_from_worktree,
    redactor_of_run,
)
from agents.local_files import bring_local_files
from agents.log_sink import LogSink
from agents.policies import policy_context
from agents.process_trees import kill_left_in
from agents.rehearsal.server import RehearsalServer
from agents.saving import Saver
from agents.starts import Start, conflict_note, find_start
from agents.unboxed_checks import CheckPermission
from agents.workspaces.errors import WorkspaceError
from agents.workspaces.hub import fetch_hub
from agents.workspaces.worktrees import Worktree, add_worktree, find_worktree
from board.actions import runs, workers
from board.actions.claims import Claim
from board.errors import LeaseLostError, TransitionError
from board.states import FailureKind, WaitingFor

log = logging.getLogger(__name__)

SETUP_SECONDS = 1800.0  # of the project's set-up command
AGAIN_SECONDS = 1.0  # before the end of a run is written again


class StopReason(StrEnum):
    """Why the coroutine of a run is cancelled."""

    CANCELLED = "cancelled"  # by a person
    DRAIN = "drain"  # this worker is stopping
    LOST = "lost"  # the lease is gone: nothing may be written any more


class RunWork:
    """One claimed run. `run()` is the coroutine in a slot; `stop()` ends it early."""

    def __init__(
        self, claim: Claim, *, db: Database, executor: Executor, rehearsal: RehearsalServer
    ) -> None:
        self.claim = claim
        self._redactor = redactor_of_run()
        self._plain_db = db  # for the log, which is redacted as it is streamed
        self._db = RedactedDatabase(db, self._redactor)
        self._executor = executor
        self._rehearsal = rehearsal
        self._reason: StopReason | None = None
        self.since = time.monotonic()
        self.task: asyncio.Task[None] | None = None
        self._desk: Desk | None = None
        self._saver: Saver | None = None
        self._start: Start | None = None  # None: at a worktree that was here already

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
        try:
            await self._work()
        except LeaseLostError:
            log.info("Run %s is held by another worker now", run_id)
        except Waiting as wait:
            await self._put_aside(wait)
        except asyncio.CancelledError:
            await self._end_early()
        except DATABASE_IS_AWAY as error:
            await self._let_go(error)
        except Exception as error:  # noqa: BLE001  a bug must end its own run only, and be seen
            await self._fail(error)
        finally:
            await self._sink.close()

    async def _work(self) -> None:
        brief = await self._db(load_brief, self.claim.run_id, self.claim.fence)
        self._learn(brief)
        desk = self._desk = await self._sit_down(brief)
        saver = self._saver = Saver(lambda message: self._save(desk, message))
        journal = RunJournal(self._lease, self._db)
        desk.context.seen = seen_in(
            entry.response
            for entry in await journal.load()
            if entry.response and entry.kind is EntryKind.TOOL
        )
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
        await self._within_time_limit(brief, lambda: self._attempt(brief, desk, links, saver))

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
        job = Job(self._prompt(brief), await self._access(brief), Profile(brief.profile))
        while True:
            outcome = await self._executor(job, links)
            await saver.settle()
            head = await self._save(desk, "The agent's report")
            if outcome.status == "failed":
                raise _UnfinishedError(outcome.summary, outcome.remaining)
            permission = CheckPermission(links.journal, links.gate)
            if brief.checks and desk.shell.sandbox_level == "none":
                await permission.obtain(brief.checks, head=head, cwd=str(desk.worktree.path))
            results = await verification.run_checks(
                brief.checks, shell=desk.shell, context=desk.context, sink=self._sink
            )
            evidence = verification.evidence(results)
            await permission.close(evidence)
            await self._db(runs.note_progress, *self._key, evidence=evidence)
            if all(result.is_passed for result in results):
                summary = outcome.summary or "The agent ended without a report."
                await self._finish(brief, desk, head, summary, evidence)
                return
            await self._send_back(links, results)

    @property
    def _key(self) -> tuple[int, int]:
        return self.claim.run_id, self.claim.fence

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
            level="warn",
        )

    async def _finish(
        self, brief: Brief, desk: Desk, head: str, summary: str, evidence: list[dict[str, Any]]
    ) -> None:
        changes = await desk.changes(self._base(brief), head)
        await self._sink.flush()
        await self._db(
            runs.finish_run,
            *self._key,
            head_sha=head,
            summary=summary,
            evidence=evidence,
            changes=changes,
            active_seconds=self._lease.active_seconds(),
        )

    async def _sit_down(self, brief: Brief) -> Desk:
        """Find the run's worktree on this machine, or make it, and run the set-up command once."""
        where = places(settings.HUBS, settings.WORKSPACES, brief.project_key)
        desk = await asyncio.to_thread(self._open_desk, brief, where)
        # Whatever ends this run early kills what runs at its desk.
        self._desk = desk
        await self._db(
            runs.begin_work,
            *self._key,
            branch=desk.worktree.branch,
            base_sha=self._base(brief),
            workspace=str(desk.worktree.path),
            host=socket.gethostname(),
        )
        self._sink.emit("note", text=f"Working in {desk.worktree.path.name}", level="info")
        if brief.setup_command and not desk.is_set_up:
            await self._set_up(brief, desk)
        return desk

    def _open_desk(self, brief: Brief, where: Places) -> Desk:
        worktree = find_worktree(where.root, brief.branch) if brief.branch else None
        if worktree is None:
            self._refresh_hub(brief, where)
            start = self._start = find_start(
                where.hub,
                branch=brief.branch,
                base_sha=brief.base_sha,
                sent_back_sha=brief.start_sha,
                target_branch=brief.target_branch,
            )
            worktree = add_worktree(
                where.clone,
                where.hub,
                where.root / f"{brief.card_key}-{brief.attempt}-{self.claim.fence}",
                branch=brief.branch or f"cards/{brief.card_key}-{brief.attempt}",
                base_sha=start.sha,
                target_branch=brief.target_branch,
            )
        elif left := kill_left_in(worktree.path):
            log.warning("Killed %s processes that were left in %s", left, worktree.path)
        self._bring_local_files(brief, worktree)
        return Desk(worktree, where, hidden=[settings.DATA], redactor=self._redactor)

    def _bring_local_files(self, brief: Brief, worktree: Worktree) -> None:
        bring_local_files(
            worktree,
            brief.repository,
            brief.secret_files,
            redactor=self._redactor,
            say=lambda text: self._sink.emit("note", text=text, level="warn"),
        )

    def _base(self, brief: Brief) -> str:
        """Return the commit from which the attempt's changes are counted."""
        return self._start.base_sha if self._start else brief.base_sha

    def _prompt(self, brief: Brief) -> str:
        if self._start is None or not self._start.conflicts:
            return brief.prompt
        note = conflict_note(
            self._start, target_branch=brief.target_branch, sent_back_sha=brief.start_sha
        )
        return f"{brief.prompt}\n\n{note}"

    def _refresh_hub(self, brief: Brief, where: Places) -> None:
        """Take in what people have committed since; what cannot be reached now is no reason to stop."""
        try:
            fetch_hub(
                where.hub,
                brief.repository,
                brief.target_branch,
                environment=settings.REMOTE_ENVIRONMENT,
            )
        except WorkspaceError as error:
            self._sink.emit(
                "note",
                text=f"The repository could not be fetched, so this begins from the hub: {error}",
                level="warn",
            )

    async def _set_up(self, brief: Brief, desk: Desk) -> None:
        self._sink.emit("note", text=f"Setting up: {brief.setup_command}", level="info")
        result = await verification.run_command(
            brief.setup_command,
            shell=desk.shell_for_setup(),
            context=desk.context,
            seconds=SETUP_SECONDS,
        )
        self._sink.emit("check", **verification.evidence([result])[0])
        if not result.is_passed:
            raise FatalError(
                f"The set-up command failed: {brief.setup_command}. Correct it in the project's settings, then retry.",
                kind=HarnessFailure.INFRASTRUCTURE,
            )
        desk.note_set_up()

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
            self._sink.emit("note", text=f"Cannot be part of the work: {files}", level="warn")
        await self._db(runs.note_progress, *self._key, head_sha=sha)
        return sha

    async def _put_aside(self, wait: Waiting) -> None:
        if wait.reason == "approval":  # the question is committed, the run is let go already
            return
        self._sink.emit("note", text=f"{wait} Tried again in {wait.seconds:.0f} s.", level="warn")
        await self._try_end(
            runs.put_aside,
            waiting_for=WaitingFor.RETRY,
            seconds=wait.seconds,
            reason=str(wait),
        )

    async def _let_go(self, error: Exception) -> None:
        """Leave the run to whichever worker claims it next: the database was away and steps are missing."""
        log.warning("Run %s is given back, the database was away: %s", self.claim.run_id, error)
        self.kill()
        await self._try_end(runs.give_back)

    async def _end_early(self) -> None:
        match self._reason:
            case StopReason.CANCELLED:
                await self._try_end(runs.end_cancelled, **await self._leave())
            case StopReason.DRAIN:
                await self._leave()
                await self._try_end(runs.give_back)
            case StopReason.LOST | None:
                log.warning(
                    "Run %s was stopped, because its lease could not be renewed", self.claim.run_id
                )

    async def _fail(self, error: Exception) -> None:
        """End the run as failed, with the reason that a person can act on."""
        remaining = ""
        if await self._db(workers.cancelled_among, [self.claim.run_id]):
            # A person cancelled it in the moment in which it ended.
            await self._try_end(runs.end_cancelled, **await self._leave())
            return
        match error:
            case _UnfinishedError():
                kind, message, remaining = FailureKind.REPORTED, str(error), error.remaining
            case FatalError():
                kind, message = FailureKind(error.kind), str(error)
            case WorkspaceError():
                kind, message = FailureKind.INFRASTRUCTURE, str(error)
            case _:
                log.error("Run %s ended by a fault of ours", self.claim.run_id, exc_info=error)
                kind = FailureKind.INTERNAL
                message = f"A fault of Pullcord's own: {error!r}. See the worker's log."
        self._sink.emit("note", text=message, level="error")
        left = await self._leave()
        await self._try_end(runs.fail_run, kind=kind, message=message, remaining=remaining, **left)

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

    async def _try_end(self, action: Callable[..., None], **values: Any) -> None:
        """Write the end of this run's stay here, unless another worker holds it now.

        Tried for the length of a lease: an end that is not written is a run done twice.
        """
        seconds = self._lease.active_seconds()
        deadline = time.monotonic() + settings.LEASE_SECONDS
        while True:
            try:
                await self._sink.flush()
                await self._db(action, *self._key, active_seconds=seconds, **values)
            except (LeaseLostError, TransitionError) as error:
                log.info("Run %s: %s", self.claim.run_id, error)
            except DATABASE_IS_AWAY as error:
                if time.monotonic() < deadline:
                    await asyncio.sleep(AGAIN_SECONDS)
                    continue
                log.warning("Run %s is left to its lease: %s", self.claim.run_id, error)
            return


def _duration(seconds: int) -> str:
    """Return a time limit in words."""
    return f"{seconds // 60} minutes" if seconds >= 120 else f"{seconds} seconds"  # noqa: PLR2004


class _UnfinishedError(FatalError):
    """The agent itself reported that it could not do it."""

    def __init__(self, summary: str, remaining: str) -> None:
        super().__init__(summary or "The agent reported that it could not do this.")
        self.remaining = remaining
