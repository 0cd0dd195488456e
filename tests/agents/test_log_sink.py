"""What the log of a run keeps of what it is given."""

import pytest

from agents.database import Database
from agents.log_sink import MAX_OUTPUT, MAX_TEXT, NOT_KEPT, LogSink
from board.models import LogItem, Run

pytestmark = [pytest.mark.django_db(transaction=True)]


async def written(run: Run, *chunks: tuple[str, str]) -> list[LogItem]:
    """Emit chunks of output, each (call, text), and return what is stored."""
    db = Database()
    sink = LogSink(run.pk, run.fence, db)
    for call, text in chunks:
        sink.emit("output", call=call, text=text)
    await sink.close()
    await db.close()
    return [item async for item in LogItem.objects.filter(run=run, kind="output").order_by("seq")]


async def test_a_long_piece_of_output_becomes_several_items(running: Run) -> None:
    text = "0123456789" * 5_000
    items = await written(running, ("a", text))
    assert len(items) == 4
    assert max(len(item.data["text"]) for item in items) == MAX_TEXT
    assert "".join(item.data["text"] for item in items) == text
    assert {item.data["call"] for item in items} == {"a"}


async def test_of_endless_output_the_beginning_is_kept_and_the_rest_is_named(running: Run) -> None:
    chunk = "x" * 65_536
    items = await written(running, *[("a", chunk)] * 40, ("b", "short"))
    kept = "".join(item.data["text"] for item in items if item.data["call"] == "a")
    assert kept == "x" * MAX_OUTPUT + NOT_KEPT
    assert [item.data["text"] for item in items if item.data["call"] == "b"] == ["short"]


async def test_output_that_just_fits_is_kept_whole(running: Run) -> None:
    items = await written(running, ("a", "x" * MAX_OUTPUT))
    assert "".join(item.data["text"] for item in items) == "x" * MAX_OUTPUT
    again = await written(running, ("b", "x" * MAX_OUTPUT), ("b", "y"))
    assert "".join(item.data["text"] for item in again).endswith(NOT_KEPT)
