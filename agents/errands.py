"""Errands of the board: fetch a project's hub, merge a card's work, try a container. Work runs in threads."""

import asyncio
import logging
import socket
import threading
from typing import Any

from django.conf import settings

from agents import merging
from agents.container_probe import find_engine
from agents.containers import ContainerError
from agents.database import DATABASE_IS_AWAY, Database, RedactedDatabase
from agents.desk import places
from agents.instructions import find_instructions
from agents.known_secrets import learn_from_repository, redactor_of_run
from agents.rehearsal.repository import create_rehearsal_repository
from agents.spares import Spares
from agents.workspaces.errors import WorkspaceError
from agents.workspaces.hub import fetch_hub
from agents.workspaces.repositories import check_repository, create_first_commit
from board.actions import merges, projects
from board.actions.containers import finish_try
from board.actions.errands import give_back_errand
from board.actions.instructions import note_instructions
from board.errors import BoardError
from board.events import Actor
from board.models import Errand
from board.states import ErrandKind

log = logging.getLogger(__name__)

BY = Actor.PULLCORD


class ErrandWork:
    """One claimed errand. `run()` is its coroutine."""

    def __init__(self, errand: Errand, db: Database, spares: Spares) -> None:
        self.errand = errand
        self._spares = spares
        redactor = redactor_of_run()
        learn_from_repository(redactor, errand.project.repository)
        self._db = RedactedDatabase(db, redactor)
        self._cancel = threading.Event()

    async def run(self) -> None:
        """Do the errand, and say on the board what became of it."""
        try:
            match ErrandKind(self.errand.kind):
                case ErrandKind.FETCH:
                    await self._fetch()
                case ErrandKind.MERGE:
                    await self._merge()
                case ErrandKind.TRY:
                    await self._try()
        except BoardError as error:  # another worker has it now, or a person was quicker
            log.info("Errand %s: %s", self.errand.pk, error)
        except asyncio.CancelledError:
            # Each step of an errand can be done again, also one that is still ending in its thread.
            self._cancel.set()
            await self._db(give_back_errand, self.errand, fence=self.errand.fence)
        except DATABASE_IS_AWAY as error:
            log.warning("Errand %s is left to its lease: %s", self.errand.pk, error)
        except Exception as error:  # a bug must end its own errand only, and be seen
            log.exception("Errand %s ended by a fault of ours", self.errand.pk)
            await self._report_fault(f"A fault of Pullcord's own: {error!r}. See the worker's log.")

    async def _fetch(self) -> None:
        try:
            target = await asyncio.to_thread(self._fetch_now)
        except WorkspaceError as error:
            await self._db(
                projects.fail_fetch,
                self.errand,
                fence=self.errand.fence,
                message=str(error),
                field=error.field or "repository",
                code=error.code,
            )
            return
        await self._db(
            projects.finish_fetch, self.errand, fence=self.errand.fence, target_branch=target
        )
        self._spares.want(self.errand.project.key, target, pause=0)
        await self._look_for_instructions(target)

    async def _look_for_instructions(self, target: str) -> None:
        """Show people what the repository tells agents before the first of them begins."""
        project = self.errand.project
        hub = places(settings.HUBS, settings.WORKSPACES, project.key).hub
        found = await asyncio.to_thread(find_instructions, hub, f"refs/heads/{target}")
        if found is not None and not found.problem:
            await self._db(note_instructions, project.pk, found.path, found.content)

    def _fetch_now(self) -> str:
        project, environment = self.errand.project, settings.REMOTE_ENVIRONMENT
        repository = project.repository
        if project.is_rehearsal:
            create_rehearsal_repository(settings.DATA, repository)
        if self.errand.options.get("create_first_commit"):
            create_first_commit(repository, project.target_branch, environment=environment)
        source = check_repository(repository, project.target_branch, environment=environment)
        hub = places(settings.HUBS, settings.WORKSPACES, project.key).hub
        hub.parent.mkdir(parents=True, exist_ok=True)
        fetch_hub(
            hub,
            source.location,
            source.target_branch,
            on_progress=self._tell_progress,
            environment=environment,
        )
        return source.target_branch

    def _tell_progress(self, percent: int, text: str) -> None:
        # Called in a thread of asyncio's, which has a database connection of its own.
        projects.note_fetch_progress(self.errand.project_id, percent=percent, message=text)

    async def _merge(self) -> None:
        card = await self._db(merging.load_card, self.errand)
        try:
            merged = await merging.merge(card, db=self._db, cancel=self._cancel)
        except WorkspaceError as error:
            await self._refuse(str(error))
            return
        if isinstance(merged, merging.Refused):
            await self._refuse(merged.reason, files=merged.files)
            return
        await self._db(
            merges.finish_merge,
            self.errand,
            fence=self.errand.fence,
            sha=merged.sha,
            delivery=merged.delivery,
            by=BY,
        )
        await asyncio.to_thread(merging.clean_up, card)
        self._spares.want(card.project_key, card.target_branch)

    async def _try(self) -> None:
        name, image = self.errand.options["engine"], self.errand.options["image"]
        try:
            engine = await asyncio.to_thread(find_engine, name, image)
        except ContainerError as error:
            await self._end_try(str(error), works=False)
            return
        hosts = (
            "" if engine.has_python else " It has no python3, so listed hosts cannot be reached."
        )
        await self._end_try(
            f"Commands run in {image}, without network or rights, inside its limits.{hosts}",
            works=True,
        )

    async def _end_try(self, message: str, *, works: bool) -> None:
        await self._db(
            finish_try,
            self.errand,
            fence=self.errand.fence,
            works=works,
            message=message,
            host=socket.gethostname(),
        )

    async def _refuse(self, reason: str, **details: Any) -> None:
        await self._db(
            merges.refuse_merge,
            self.errand,
            fence=self.errand.fence,
            reason=reason,
            by=BY,
            **details,
        )

    async def _report_fault(self, message: str) -> None:
        try:
            if self.errand.kind == ErrandKind.FETCH:
                await self._db(
                    projects.fail_fetch, self.errand, fence=self.errand.fence, message=message
                )
            elif self.errand.kind == ErrandKind.TRY:
                await self._end_try(message, works=False)
            else:
                await self._refuse(message)
        except BoardError as error:
            log.info("Errand %s: %s", self.errand.pk, error)
