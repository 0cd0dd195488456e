"""The log of a run on its way to the database: collected for a moment, written in batches."""

import asyncio
import contextlib
import logging
import threading
from typing import Any

from agents.database import DATABASE_IS_AWAY, Database
from agents.harness.redacted_sink import RedactedSink
from agents.harness.redaction import Redactor
from board.actions import logs, runs
from board.errors import LeaseLostError

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.1  # how long an item may wait for company; the first one does not
PROGRESS_SECONDS = 1.0  # how often the card's strip is refreshed
MAX_TEXT = 16_384  # characters of one item; longer output becomes several
# Characters of one call's output: what nobody reads would fill the database. The result that ends
# the call shows the output's end too.
MAX_OUTPUT = 1_000_000
NOT_KEPT = "\n[the log keeps no more of this output]\n"
# Deltas that continue the item before them.
JOINED = {"text": "text", "thinking": "text", "output": "text"}


class LogSink(RedactedSink):
    """Collects log items from any thread, without secrets; see `agents.harness.ports.Sink`."""

    def __init__(
        self, run_id: int, fence: int, db: Database, *, redactor: Redactor | None = None
    ) -> None:
        super().__init__(self._collect, redactor or Redactor())
        self._run_id = run_id
        self._fence = fence
        self._db = db
        self._items: list[logs.Item] = []
        self._progress: dict[str, Any] = {}
        self._written: dict[str, int] = {}  # characters of output, by call
        self._lock = threading.Lock()
        self._writing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()
        self._task = self._loop.create_task(self._write_forever())

    def _collect(self, kind: str, **data: Any) -> None:
        """Take one item that holds no secrets. Never blocks and never raises."""
        with self._lock:
            self._note_progress(kind, data)
            for piece in self._pieces(kind, data):
                if not self._join(kind, piece):
                    self._items.append((kind, piece))
        with contextlib.suppress(RuntimeError):  # the loop is closed: the worker is gone
            self._loop.call_soon_threadsafe(self._heard.set)

    def _pieces(self, kind: str, data: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the item in pieces of a size that a page can hold."""
        field = JOINED.get(kind)
        if field is None:
            return [data]
        text = data[field]
        if kind == "output":
            text = self._within_limit(str(data.get("call")), text)
        starts = range(0, len(text), MAX_TEXT)
        return [{**data, field: text[start : start + MAX_TEXT]} for start in starts]

    def _within_limit(self, call: str, text: str) -> str:
        """Return what the log keeps of a call's next output; where it stops, it says so once."""
        before = self._written.get(call, 0)
        self._written[call] = before + len(text)
        if self._written[call] <= MAX_OUTPUT:
            return text
        return "" if before > MAX_OUTPUT else text[: MAX_OUTPUT - before] + NOT_KEPT

    def _join(self, kind: str, data: dict[str, Any]) -> bool:
        """Lengthen the last item if this one only continues it."""
        field = JOINED.get(kind)
        if field is None or not self._items:
            return False
        last_kind, last = self._items[-1]
        if last_kind != kind or last.get("call") != data.get("call"):
            return False
        if len(last[field]) + len(data[field]) > MAX_TEXT:
            return False
        last[field] += data[field]
        return True

    def _note_progress(self, kind: str, data: dict[str, Any]) -> None:
        match kind:
            case "call":
                self._progress["activity"] = str(data.get("title") or data.get("tool"))[:300]
            case "todo":
                self._progress["plan"] = data.get("items", [])
            case "turn":
                self._progress["activity"] = "Thinking"
            case "note":
                self._progress["activity"] = str(data.get("text", ""))[:300]
            case _:
                pass

    async def _write_forever(self) -> None:
        next_progress = 0.0
        while True:
            await self._heard.wait()
            self._heard.clear()
            try:
                await self.flush()
                if self._loop.time() >= next_progress:
                    await self._write_progress()
                    next_progress = self._loop.time() + PROGRESS_SECONDS
            except LeaseLostError:
                return
            except Exception:
                log.exception(
                    "The log of run %s could not be written; it is tried again", self._run_id
                )
                await asyncio.sleep(1)
                self._heard.set()
            await asyncio.sleep(FLUSH_SECONDS)

    async def flush(self) -> None:
        """Write what has been collected. Raises LeaseLostError if another worker holds the run."""
        async with self._writing:
            with self._lock:
                items, self._items = self._items, []
            if not items:
                return
            try:
                await self._db(logs.append_log, self._run_id, items, fence=self._fence)
            except LeaseLostError:
                raise
            except Exception:
                with self._lock:
                    self._items[:0] = items
                raise

    async def _write_progress(self) -> None:
        with self._lock:
            progress, self._progress = self._progress, {}
        if progress:
            await self._db(runs.note_progress, self._run_id, self._fence, **progress)

    async def close(self) -> None:
        """Write what is left and stop."""
        self.let_go()
        async with self._writing:  # what is being written must not be dropped half-way
            self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        try:
            await self.flush()
            await self._write_progress()
        except LeaseLostError:
            return
        except DATABASE_IS_AWAY as error:
            log.warning("The end of the log of run %s is lost: %s", self._run_id, error)
