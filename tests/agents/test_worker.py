"""How a run's stay at a worker ends: real git and a real database, with an agent that does what a test says."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models.functions import Now

from agents.database import Database
from agents.endings import StopReason
from agents.executors import Job, Links
from agents.harness.ports import Outcome
from agents.rehearsal.server import RehearsalServer
from agents.spares import Spares
from agents.worker import RunWork
from agents.workspaces.hub import fetch_hub
from board.actions import cards
from board.actions.claims import claim_next
from board.models import Card, Run, User, Worker
from tests.product import make_repository

pytestmark = pytest.mark.django_db(transaction=True)

Executor = Callable[[Job, Links], Awaitable[Outcome]]
Work = Callable[..., RunWork]


@pytest.fixture
def claimed(
    new_card: Callable[..., Card], alice: User, worker: Worker, tmp_path: Path, settings: Any
) -> Any:
    """A claim of a card whose repository is in the hub."""
    settings.HUBS, settings.WORKSPACES = tmp_path / "hubs", tmp_path / "workspaces"
    settings.ANTHROPIC_API_KEY = "a-key"
    settings.HUBS.mkdir()
    fetch_hub(settings.HUBS / "BIL.git", str(make_repository(tmp_path / "origin.git")), "main")
    card = new_card("Work", checks=["test ! -e forbidden"])
    cards.queue_card(card, by=alice)
    claim = claim_next(worker.pk, agent="agent-1", with_credential=True)
    assert claim is not None
    return claim


async def carry_out(
    claim: Any,
    executor: Executor,
    *stops: StopReason,
    meanwhile: Callable[[], object] = lambda: None,
) -> Run:
    """Work on a claimed run until its stay is over; `meanwhile` and `stops` come once the agent is at work."""
    db, spares, at_work = Database(), Spares(), asyncio.Event()

    async def observed(job: Job, links: Links) -> Outcome:
        at_work.set()
        return await executor(job, links)

    work = RunWork(claim, db=db, executor=observed, rehearsal=RehearsalServer(), spares=spares)
    task = work.start()
    if stops:
        await at_work.wait()
        await db(meanwhile)
        for reason in stops:
            work.stop(reason)
            await asyncio.sleep(0)
    await task
    await spares.close()
    run = await db(Run.objects.select_related("card").get, pk=claim.run_id)
    await db.close()
    return run


async def for_ever(_job: Job, links: Links) -> Outcome:
    """Write a file, then work without an end."""
    (links.context.workspace / "begun.txt").write_text("begun\n")
    await asyncio.Event().wait()
    raise AssertionError


def raises(error: Exception) -> Executor:
    async def executor(_job: Job, _links: Links) -> Outcome:
        raise error

    return executor


def reports(status: str) -> Executor:
    async def executor(_job: Job, _links: Links) -> Outcome:
        return Outcome(status)

    return executor


async def test_a_run_that_works_past_its_time_fails_and_its_work_is_kept(
    claimed: Any, settings: Any
) -> None:
    settings.RUN_TIME_LIMIT_SECONDS = 2
    run = await carry_out(claimed, for_ever)
    assert (run.status, run.failure_kind) == ("failed", "timeout")
    assert run.failure == "It worked for 2 seconds, the limit for one attempt."
    assert run.card.status == "failed"
    assert [file["path"] for file in run.changes["diff"]] == ["begun.txt"]


async def test_a_run_that_loses_the_database_is_given_back_and_not_failed(claimed: Any) -> None:
    run = await carry_out(claimed, raises(OperationalError("server closed the connection")))
    assert (run.status, run.failure, run.worker) == ("ready", "", None)
    assert run.losses == 0
    assert run.card.status == "running"


async def test_a_fault_of_ours_fails_its_run_only_and_says_so(claimed: Any) -> None:
    run = await carry_out(claimed, raises(RuntimeError("a bug")))
    assert (run.status, run.failure_kind) == ("failed", "internal")
    assert "a bug" in run.failure


async def test_a_cancelled_run_keeps_its_work_however_often_it_is_told(claimed: Any) -> None:
    def cancel() -> None:
        Run.objects.update(cancel_requested_at=Now())

    run = await carry_out(claimed, for_ever, *[StopReason.CANCELLED] * 5, meanwhile=cancel)
    assert (run.status, run.card.status) == ("cancelled", "cancelled")
    assert run.changes["files"] == 1


async def test_a_run_of_a_worker_that_stops_is_ready_for_another(claimed: Any) -> None:
    run = await carry_out(claimed, for_ever, StopReason.DRAIN)
    assert (run.status, run.worker, run.losses) == ("ready", None, 0)


async def test_nothing_is_written_of_a_run_whose_lease_is_gone(claimed: Any) -> None:
    def taken_by_another() -> None:
        Run.objects.update(fence=claimed.fence + 1)

    run = await carry_out(claimed, for_ever, StopReason.LOST, meanwhile=taken_by_another)
    assert (run.status, run.fence) == ("running", claimed.fence + 1)
    assert run.changes == {}


async def test_the_checks_decide_when_an_agent_ends_without_a_report(claimed: Any) -> None:
    run = await carry_out(claimed, reports("silent"))
    assert (run.status, run.card.status) == ("succeeded", "review")
    assert run.summary == "The agent ended without a report."


async def test_an_agent_that_gives_up_fails_the_card_with_its_words(claimed: Any) -> None:
    async def gives_up(_job: Job, _links: Links) -> Outcome:
        return Outcome("failed", "There is no such table.", "Make the table.")

    run = await carry_out(claimed, gives_up)
    assert (run.status, run.failure_kind) == ("failed", "reported")
    assert run.failure == "There is no such table."
    assert run.card.remaining == "Make the table."
