"""Where a run works: its worktree on this machine, found or made, with the set-up command done."""

import asyncio
import logging
import socket
from collections.abc import Callable

from django.conf import settings

from agents import verification
from agents.bridge import Lease
from agents.briefing import Brief
from agents.database import RedactedDatabase
from agents.desk import Desk, Places, engine_of, places
from agents.harness.errors import FailureKind, FatalError
from agents.harness.redaction import Redactor
from agents.instructions import as_briefing, find_instructions
from agents.local_files import bring_local_files
from agents.log_sink import LogSink
from agents.process_trees import kill_left_in
from agents.starts import Start, conflict_note, find_start
from agents.workspaces.errors import WorkspaceError
from agents.workspaces.hub import fetch_hub
from agents.workspaces.records import Worktree, find_worktree
from agents.workspaces.worktrees import add_worktree
from board.actions import runs
from board.actions.instructions import note_instructions

log = logging.getLogger(__name__)

SETUP_SECONDS = 1800.0  # of the project's set-up command


class Seating:
    """Finds one run its desk."""

    def __init__(
        self, lease: Lease, *, db: RedactedDatabase, sink: LogSink, redactor: Redactor
    ) -> None:
        self._lease = lease
        self._db = db
        self._sink = sink
        self._redactor = redactor
        self._start: Start | None = None  # None: at a worktree that was here already
        self._instructions = ""  # of the repository, trusted

    async def sit_down(self, brief: Brief, note: Callable[[Desk], None]) -> Desk:
        """Find the run's worktree on this machine, or make it, and run the set-up command once.

        `note` hears of the desk as soon as something may run at it.
        """
        where = places(settings.HUBS, settings.WORKSPACES, brief.project_key)
        desk = await asyncio.to_thread(self._open_desk, brief, where)
        note(desk)
        await self._db(
            runs.begin_work,
            *self._lease.key,
            branch=desk.worktree.branch,
            base_sha=self.base(brief),
            workspace=str(desk.worktree.path),
            host=socket.gethostname(),
        )
        self._sink.emit("note", text=f"Working in {desk.worktree.path.name}", level="info")
        await self._look_for_instructions(brief, where)
        if brief.setup_command and not desk.is_set_up:
            await self._set_up(brief, desk)
        return desk

    def _open_desk(self, brief: Brief, where: Places) -> Desk:
        engine = engine_of(brief.container)  # first: without it nothing is to be made
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
                where.root / f"{brief.card_key}-{brief.attempt}-{self._lease.fence}",
                branch=brief.branch or f"cards/{brief.card_key}-{brief.attempt}",
                base_sha=start.sha,
                target_branch=brief.target_branch,
            )
        elif left := kill_left_in(worktree.path):
            log.warning("Killed %s processes that were left in %s", left, worktree.path)
        self._bring_local_files(brief, worktree)
        return Desk(
            worktree,
            where,
            hidden=[settings.DATA],
            redactor=self._redactor,
            hosts=brief.network_hosts,
            engine=engine,
        )

    def _bring_local_files(self, brief: Brief, worktree: Worktree) -> None:
        bring_local_files(
            worktree,
            brief.repository,
            brief.secret_files,
            redactor=self._redactor,
            say=lambda text: self._sink.emit("note", text=text, level="warning"),
        )

    async def _look_for_instructions(self, brief: Brief, where: Places) -> None:
        """Take the repository's instructions into the briefing, if a person trusts what they say now."""
        if self._start is None:  # the agent was briefed when its worktree was made
            return
        found = await asyncio.to_thread(find_instructions, where.hub, self._start.base_sha)
        if found is None:
            return
        why = found.problem
        if not why:
            row = await self._db(note_instructions, brief.project_id, found.path, found.content)
            if row.trusted_by is not None:
                # What the person has read, which may hide a secret that the file holds.
                self._instructions = as_briefing(
                    row.path, row.content, trusted_by=row.trusted_by.name
                )
                return
            why = "nobody has trusted its content; see the project's settings"
        text = f"{found.path} of the repository is not read: {why}"
        self._sink.emit("note", text=text, level="warning")

    def base(self, brief: Brief) -> str:
        """Return the commit from which the attempt's changes are counted."""
        return self._start.base_sha if self._start else brief.base_sha

    def prompt(self, brief: Brief) -> str:
        """Return the task, what the repository says, and what conflicts with the agent's earlier work."""
        parts = [brief.prompt, self._instructions]
        if self._start is not None and self._start.conflicts:
            parts.append(
                conflict_note(
                    self._start, target_branch=brief.target_branch, sent_back_sha=brief.start_sha
                )
            )
        return "\n\n".join(part for part in parts if part)

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
                level="warning",
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
                kind=FailureKind.INFRASTRUCTURE,
            )
        desk.note_set_up()
