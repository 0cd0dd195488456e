"""A worker whose sandbox gets worse says so, and takes no lower level by itself."""

import asyncio
from collections.abc import Iterator
from uuid import UUID

import pytest

from agents import sandbox_watch
from agents.database import Database
from agents.sandbox_levels import SandboxLevel
from board.actions import workers
from board.models import Worker

BEST = SandboxLevel(
    "bubblewrap", "Commands run in bubblewrap.", "/usr/bin/bwrap", ("--x",), filters=True
)
LANDLOCK = SandboxLevel("landlock", "Held by Landlock.", filters=True, abi=7)
NONE = SandboxLevel("none", "Nothing works.")


@pytest.mark.parametrize(
    ("start", "found", "name"),
    [
        (BEST, BEST, "bubblewrap"),
        (LANDLOCK, BEST, "landlock"),  # what is better counts from the next start on
        (BEST, LANDLOCK, "broken"),
        (
            BEST,
            SandboxLevel("bubblewrap", "Without a filter.", "/usr/bin/bwrap", ("--x",)),
            "broken",
        ),
        (LANDLOCK, NONE, "broken"),
        (NONE, NONE, "none"),
    ],
)
def test_only_what_is_worse_is_said(start: SandboxLevel, found: SandboxLevel, name: str) -> None:
    said, message = sandbox_watch.state(start, found)
    assert said == name
    assert (found.message in message) == (name == "broken" or start == found)


@pytest.mark.django_db(transaction=True)
async def test_the_row_of_the_worker_follows(
    monkeypatch: pytest.MonkeyPatch, worker: Worker
) -> None:
    looks: Iterator[SandboxLevel] = iter([BEST, NONE, BEST, NONE, NONE, NONE, NONE, BEST])
    monkeypatch.setattr(sandbox_watch, "look_again", lambda: next(looks, BEST))
    monkeypatch.setattr(sandbox_watch, "LOOK_SECONDS", 0)
    monkeypatch.setattr(sandbox_watch, "SURE_SECONDS", 0)
    told: list[tuple[str, str]] = []
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def note(worker_id: UUID, sandbox: str, message: str) -> None:
        workers.note_sandbox(worker_id, sandbox, message)
        row = Worker.objects.get(pk=worker_id)
        told.append((row.sandbox, row.sandbox_message))
        if sandbox == "bubblewrap":
            loop.call_soon_threadsafe(done.set)

    monkeypatch.setattr(sandbox_watch, "note_sandbox", note)
    db = Database()
    task = asyncio.create_task(sandbox_watch.watch(worker.pk, BEST, db))
    try:
        await asyncio.wait_for(done.wait(), 20)
    finally:
        task.cancel()
        await db.close()
    assert [name for name, _ in told] == ["broken", "bubblewrap"]
    assert "Nothing works." in told[0][1]
