"""The worker: a Celery bootstep that owns one event loop with slots; each run is a coroutine in one.

The only module that knows both Celery and the event loop. Celery starts, stops and inspects it;
cards never travel as Celery tasks.
"""

import asyncio
import logging
import os
import random
import socket
import threading
import time
from typing import Any
from uuid import uuid4

from celery import bootsteps
from django.conf import settings

from agents import chores, janitor, sandbox_watch, wakes
from agents.database import Database
from agents.endings import StopReason
from agents.errands import ErrandWork
from agents.executors.builtin import BuiltinExecutor
from agents.heartbeat import Heart
from agents.process_trees import hide_own_environment
from agents.rehearsal.server import RehearsalServer
from agents.sandbox_probe import probe
from agents.spares import Spares
from agents.worker import RunWork
from board.actions import claims, errands, workers
from board.actions.credentials import model_access
from board.models import Worker

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0  # a lost wake-up costs at most this
WATCH_SECONDS = 1.0  # how soon a cancelled run hears of it
ERRANDS_AT_ONCE = 2
DRAIN_SECONDS = 8.0  # the supervisor kills after 10
DATABASE_PAUSE_SECONDS = 2.0  # after a database error, so that logs do not fill the disk


class AgentsStep(bootsteps.StartStopStep):
    """Runs the agents' loop beside Celery's consumer, in a worker that listens to `agents`."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._thread: threading.Thread | None = None
        self._loop: AgentLoop | None = None
        self.enabled = "agents" in parent.app.amqp.queues.consume_from

    def start(self, parent: Any) -> None:
        """Start the loop in a thread of its own."""
        del parent
        hide_own_environment()
        self._loop = AgentLoop()
        self._thread = threading.Thread(target=self._loop.run, name="agents-loop", daemon=True)
        self._thread.start()

    def stop(self, parent: Any) -> None:
        """Give the runs back and end the loop."""
        del parent
        if self._loop is not None and self._thread is not None:
            self._loop.stop()
            self._thread.join(DRAIN_SECONDS + 1)
            self._loop = None

    terminate = stop


class AgentLoop:
    """Claims work and does it in slots until it is stopped."""

    def __init__(self) -> None:
        self.worker_id = uuid4()
        self._slots: list[RunWork | None] = [None] * settings.WORKER_SLOTS
        self._errands: dict[asyncio.Task[None], int] = {}
        self._beside: list[asyncio.Task[None]] = []
        self._stopping = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken: asyncio.Event | None = None

    def run(self) -> None:
        """Run until `stop` is called; the thread's whole life."""
        try:
            asyncio.run(self._main())
        except (
            Exception
        ):  # without this line the worker would be alive and deaf, and nobody knew why
            log.exception("The agents' loop ended by a fault")
            os._exit(70)  # the supervisor starts a new worker; leases heal the rest

    def stop(self) -> None:
        """Ask the loop to end; called from any thread."""
        self._stopping.set()
        self._wake()

    def _wake(self) -> None:
        if self._loop is not None and self._woken is not None:
            self._loop.call_soon_threadsafe(self._woken.set)

    async def _main(self) -> None:
        self._loop, self._woken = asyncio.get_running_loop(), asyncio.Event()
        self._db = Database()
        self._executor = BuiltinExecutor(threads=settings.WORKER_SLOTS + 4)
        self._rehearsal = RehearsalServer()
        self._spares = Spares()
        # Before all else: the first run waits for it, and registering waits for processes meanwhile.
        warming = asyncio.create_task(asyncio.to_thread(self._executor.warm_up))
        await self._register()
        heart = Heart(self.worker_id, self)
        heart.start()
        forget = wakes.listen(self._wake)
        self._beside = [warming] + [
            asyncio.create_task(work)
            for work in (
                self._watch(heart),
                chores.keep_house_forever(self._db),
                chores.prepare_sandbox(),
                janitor.tidy_forever(self._db),
                sandbox_watch.watch(self.worker_id, probe(), self._db),
            )
        ]
        try:
            while not self._stopping.is_set():
                await self._fill_slots()
                await self._sleep(POLL_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311
        finally:
            forget()
            await self._drain()
            for task in self._beside:
                task.cancel()
            heart.stop()
            await self._close()

    async def _register(self) -> None:
        level = await asyncio.to_thread(probe)
        row = Worker(
            id=self.worker_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=settings.VERSION,
            slots=len(self._slots),
            sandbox=level.name,
            sandbox_message=level.message,
        )
        while not self._stopping.is_set():
            try:
                await self._db(workers.register_worker, row)
            except Exception as error:  # noqa: BLE001  the database may come up after us
                log.warning("The database does not answer (%s); trying again", error)
                await asyncio.sleep(DATABASE_PAUSE_SECONDS)
            else:
                log.info(
                    "Worker %s with %s slots. Sandbox level %s: %s",
                    self.worker_id,
                    len(self._slots),
                    level.name,
                    level.message,
                )
                return

    async def _sleep(self, seconds: float) -> None:
        """Sleep until a wake-up, at most `seconds`."""
        assert self._woken is not None  # noqa: S101  set before anything runs
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()

    async def _fill_slots(self) -> None:
        """Claim until there is no free slot or no work."""
        try:
            if not await self._db(is_anything_waiting):
                return
            await self._take_errands()
            while (slot := self._free_slot()) is not None and not self._stopping.is_set():
                claim = await self._db(self._claim, f"agent-{slot + 1}")
                if claim is None:
                    return
                self._occupy(slot, claim)
        except Exception:
            log.exception("No work could be claimed; trying again")
            await asyncio.sleep(DATABASE_PAUSE_SECONDS)

    def _claim(self, agent: str) -> claims.Claim | None:
        return claims.claim_next(
            self.worker_id, agent=agent, with_credential=model_access() is not None
        )

    def _free_slot(self) -> int | None:
        return next((number for number, work in enumerate(self._slots) if work is None), None)

    def _occupy(self, slot: int, claim: claims.Claim) -> None:
        work = RunWork(
            claim,
            db=self._db,
            executor=self._executor,
            rehearsal=self._rehearsal,
            spares=self._spares,
        )
        self._slots[slot] = work
        work.start().add_done_callback(lambda _task: self._free(slot))

    def _free(self, slot: int) -> None:
        self._slots[slot] = None
        self._wake()

    async def _take_errands(self) -> None:
        while len(self._errands) < ERRANDS_AT_ONCE:
            errand = await self._db(errands.claim_errand, self.worker_id)
            if errand is None:
                return
            task = asyncio.create_task(
                ErrandWork(errand, self._db, self._spares).run(), name=f"errand-{errand.pk}"
            )
            self._errands[task] = errand.pk
            task.add_done_callback(self._errand_done)

    def _errand_done(self, task: "asyncio.Task[None]") -> None:
        self._errands.pop(task, None)
        self._wake()

    async def _watch(self, heart: Heart) -> None:
        """Feed the heart, measure how late this loop wakes, and stop runs that people cancel."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(WATCH_SECONDS)
            lag = time.monotonic() - before - WATCH_SECONDS
            heart.feed(busy=len(self.works()), lag_ms=max(round(lag * 1000), 0))
            held = [work.claim.run_id for work in self.works()]
            if not held:
                continue
            try:
                cancelled = await self._db(workers.cancelled_among, held)
            except Exception as error:  # noqa: BLE001  the heart notices a database that stays away
                log.warning("Cancellations could not be read: %s", error)
                continue
            for work in self.works():
                if work.claim.run_id in cancelled:
                    work.stop(StopReason.CANCELLED)

    def works(self) -> list[RunWork]:
        """Return the runs in the slots."""
        return [work for work in self._slots if work is not None]

    def held(self) -> dict[int, float]:
        """Return the runs in the slots with the time of their claim, for the heart."""
        return {work.claim.run_id: work.since for work in self.works()}

    def held_errands(self) -> list[int]:
        """Return the errands under way, for the heart."""
        return list(self._errands.values())

    def abandon(self, run_ids: set[int] | None) -> None:
        """Stop runs whose lease is gone, or all; nothing of them may be written. From any thread."""
        for work in self.works():
            if run_ids is None or work.claim.run_id in run_ids:
                work.kill()
                if self._loop is not None:
                    self._loop.call_soon_threadsafe(work.stop, StopReason.LOST)

    async def _drain(self) -> None:
        """Give every run and errand back; what takes too long is left to its lease."""
        for work in self.works():
            work.stop(StopReason.DRAIN)
        for task in self._errands:
            task.cancel()
        waiting = [work.task for work in self.works() if work.task is not None]
        waiting += list(self._errands)
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=DRAIN_SECONDS - 1)
            for task in late:
                task.cancel()

    async def _close(self) -> None:
        await self._spares.close()
        await self._rehearsal.close()
        await self._executor.close()
        try:
            await self._db(workers.stop_worker, self.worker_id)
        except Exception as error:  # noqa: BLE001  nothing is left to be done about it
            log.warning("The end of this worker was not recorded: %s", error)
        await self._db.close()


def is_anything_waiting() -> bool:
    """Return whether it is worth to claim. Only reads, because idle workers ask each second."""
    return errands.is_errand_waiting() or claims.is_work_waiting()
