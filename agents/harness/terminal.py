"""A terminal instead of the board: the log is printed, and the person at the keyboard is asked."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TextIO

from agents.harness.errors import FatalError, Waiting
from agents.harness.journals import MemoryJournal
from agents.harness.ports import Answer, Decision, EntryStatus, Json, Tier, ToolCall, Verdict

Judge = Callable[[ToolCall], Verdict]
Ask = Callable[[str], str]  # input(), or one of a test
Reply = tuple[Decision, str, Json | None]  # with a comment, and the edited input
PERSON = "The person at the terminal"
SHOWN_LINES = 12  # of a result


class TerminalSink:
    """Prints the log as it comes. Safe to call from any thread."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._is_mid_line = False

    def emit(self, kind: str, **data: Any) -> None:
        """See `ports.Sink.emit`. The usage is not shown; the end of the program sums it up."""
        match kind:
            case "text":
                self._write(data["text"])
            case "call":
                self._line(f"> {data['tool']} {data['title']}")
            case "result":
                self._line(_indented(data["text"], is_error=data["is_error"]))
            case "note":
                self._line(f"* {data['text']}")
            case "todo":
                self._line(
                    "\n".join(f"  {item['status']}: {item['text']}" for item in data["items"])
                )
            case _:
                pass

    def _line(self, text: str) -> None:
        self._write(f"\n{text}\n" if self._is_mid_line else f"{text}\n")

    def _write(self, text: str) -> None:
        with self._lock:
            self._out.write(text)
            self._out.flush()
            self._is_mid_line = not text.endswith("\n")


class TerminalGate:
    """The policy, and questions to the person who started the program.

    `ask` is None where nobody can be asked: the question is then answered as expired.
    """

    def __init__(
        self, journal: MemoryJournal, judge: Judge, *, ask: Ask | None, approves_all: bool = False
    ) -> None:
        self._journal = journal
        self._judge = judge
        self._ask = ask
        self._approves_all = approves_all

    async def check(self, call: ToolCall) -> Verdict:
        """Judge the call as things are at this moment."""
        verdict = await asyncio.to_thread(self._judge, call)
        if verdict.tier is Tier.ASK and self._approves_all:
            return Verdict(Tier.ALLOW, "--yes", verdict.reasons, verdict.digest, verdict.facts)
        return verdict

    async def ask(self, call: ToolCall, verdict: Verdict, *, seq: int | None) -> NoReturn:
        """Put the question and its answer into the journal; the run goes on from there."""
        request: Json = {"id": call.id, "tool": call.tool, "input": dict(call.input)}
        seq = self._journal.ask(request, seq=seq)
        await self._answer(seq, call, verdict)
        raise Waiting("approval")

    async def answer_waiting(self) -> None:
        """Ask what the program was killed over before it was answered."""
        for entry in self._journal.entries:
            if entry.status is EntryStatus.PENDING and entry.answer is None:
                fields = entry.request
                call = ToolCall(fields["id"], fields["tool"], fields["input"])
                await self._answer(entry.seq, call, await self.check(call))

    async def _answer(self, seq: int, call: ToolCall, verdict: Verdict) -> None:
        if self._ask is None:
            decision, comment, edited = Decision.EXPIRED, "", None
        else:
            decision, comment, edited = await _in_a_thread(_put, self._ask, call, verdict)
        self._journal.answer(
            seq, Answer(decision, PERSON, comment, edited, verdict.digest, verdict.facts)
        )


async def _in_a_thread(put: Callable[[Ask, ToolCall, Verdict], Reply], *call: Any) -> Reply:
    """Like `asyncio.to_thread`, but Ctrl-C does not wait until the person has pressed Enter."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Reply] = loop.create_future()

    def run() -> None:
        try:
            result = put(*call)
        except (EOFError, KeyboardInterrupt) as error:
            loop.call_soon_threadsafe(future.set_exception, FatalError(f"No answer: {error!r}"))
        else:
            loop.call_soon_threadsafe(future.set_result, result)

    threading.Thread(target=run, daemon=True).start()
    return await future


def _put(ask: Ask, call: ToolCall, verdict: Verdict) -> Reply:
    shown = json.dumps(dict(call.input), ensure_ascii=False)
    question = "\n".join(
        ["", f"May it run {call.tool} {shown}?", *(f"  - {reason}" for reason in verdict.reasons)]
    )
    while True:
        match ask(f"{question}\n[y]es, [n]o, [e]dit: ").strip().lower():
            case "y" | "yes":
                return Decision.APPROVED, "", None
            case "n" | "no":
                return Decision.DENIED, ask("Why not? "), None
            case "e" | "edit":
                edited = _edited(ask, call.input)
                if edited is not None:
                    return Decision.APPROVED, "", edited
            case _:
                pass


def _edited(ask: Ask, original: Mapping[str, Any]) -> Json | None:
    """The input as the person wants it; None if the answer is not a JSON object."""
    if set(original) == {"command"}:
        return {"command": ask("The command instead: ")}
    try:
        edited = json.loads(ask("The input instead, as JSON: "))
    except ValueError:
        return None
    return edited if isinstance(edited, dict) else None


def _indented(text: str, *, is_error: bool) -> str:
    lines = text.splitlines() or ["(no output)"]
    hidden = len(lines) - SHOWN_LINES
    if hidden > 0:
        half = SHOWN_LINES // 2
        lines = [*lines[:half], f"... {hidden} more lines ...", *lines[-half:]]
    mark = "!" if is_error else " "
    return "\n".join(f"  {mark} {line}" for line in lines)
