"""From the tool calls of one turn to their results: schema, gate, journal, thread, in that order.

A call is committed before it runs and again when it has run. What was committed and never
finished is not run again unless its tool says that this is safe.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from agents.harness import approvals
from agents.harness.calls import schema_problem, title
from agents.harness.errors import ToolError, Waiting
from agents.harness.hidden import LOST, HiddenInputs
from agents.harness.history import Turn
from agents.harness.ports import (
    Answer,
    Decision,
    Entry,
    EntryKind,
    EntryStatus,
    Gate,
    Json,
    Sink,
    Tier,
    ToolCall,
    ToolOutput,
    Verdict,
)
from agents.harness.redaction import Redactor
from agents.harness.tools.registry import Tool, ToolContext
from agents.harness.transcript import Transcript, tool_request
from agents.harness.unicode import clean

MOST_AT_ONCE = 8  # read-only calls of one turn that run in parallel

logger = logging.getLogger(__name__)


class Dispatcher:
    """Settles the calls of a turn. One for each time that a run is taken up."""

    def __init__(
        self,
        transcript: Transcript,
        *,
        gate: Gate,
        sink: Sink,
        tools: Mapping[str, Tool],
        context: ToolContext,
        threads: Executor | None = None,
        hidden: HiddenInputs | None = None,
    ) -> None:
        self._transcript = transcript
        self._gate = gate
        self._sink = sink
        self._tools = tools
        self._context = context
        self._threads = threads
        self._hidden = hidden or HiddenInputs(Redactor())

    async def settle(self, turn: Turn) -> None:
        """Give every open call of `turn` its result.

        Raises Waiting("approval") at the first call that a person must answer: the calls before
        it have run, those behind it have not been looked at.
        """
        together: list[_Admitted] = []  # read-only, allowed, not yet run
        for call in turn.open_calls:
            entry = turn.entries.get(call.id)
            tool = self._tools.get(call.tool)
            is_reading = entry is None and tool is not None and tool.read_only
            if not is_reading or len(together) == MOST_AT_ONCE:
                await self._run(together)
                together = []
            if call.id in turn.hidden and not self._hidden.is_known(call.id):
                await self._give_up(call, entry)
            elif entry is not None:
                await self._take_up(call, entry)
            elif verdict := await self._admit(call, turn, behind=together):
                together.append((call, verdict))
                if not is_reading:
                    await self._run(together)
                    together = []
        await self._run(together)

    async def _admit(
        self, call: ToolCall, turn: Turn, *, behind: "list[_Admitted]"
    ) -> Verdict | None:
        """The verdict if this call may run now; else it has been refused, or Waiting is raised."""
        self._sink.emit(
            "call", call=call.id, tool=call.tool, title=title(call), input=dict(call.input)
        )
        if turn.stop_reason != "tool_use":
            await self._refuse(call, f"Not run: the turn ended with {turn.stop_reason}.")
            return None
        real = self._hidden.real(call)
        problem = self._problem(real)
        if problem:
            await self._refuse(call, problem)
            return None
        verdict = await self._gate.check(real)
        match verdict.tier:
            case Tier.ALLOW:
                return verdict
            case Tier.DENY:
                await self._refuse(call, approvals.denied_by_policy(verdict), verdict=verdict)
                return None
            case Tier.ASK if self._hidden.is_known(call.id):
                await self._refuse(call, self._hidden.cannot_wait(call), verdict=verdict)
                return None
            case Tier.ASK:
                await self._run(behind)
                return await self._gate.ask(call, verdict, seq=None)

    def _problem(self, call: ToolCall) -> str:
        """What is wrong with this call whatever the policy says; empty if nothing is."""
        tool = self._tools.get(call.tool)
        if tool is None:
            known = ", ".join(sorted(self._tools))
            return f"There is no tool {call.tool!r}. The tools are: {known}."
        return schema_problem(tool, call.input) or self._hidden.problem(call)

    async def _run(self, calls: "Sequence[_Admitted]") -> None:
        """Run allowed calls at once: begin each in order, finish each in order."""
        begun = []
        for call, verdict in calls:
            request = tool_request(call, verdict)
            begun.append((await self._transcript.begin(EntryKind.TOOL, request), call))
        await self._carry_out(begun)

    async def _carry_out(self, begun: Sequence[tuple[int, ToolCall]], preface: str = "") -> None:
        tasks = [asyncio.ensure_future(self._call_tool(call)) for _, call in begun]
        try:
            for (seq, call), task in zip(begun, tasks, strict=True):
                output = await task
                await self._finish(seq, call, replace(output, text=preface + output.text))
        except BaseException:
            # The coroutine ends, but a thread does not: nothing may go on behind its back.
            self._context.cancel.set()
            await _all_done(tasks)
            raise

    async def _call_tool(self, call: ToolCall) -> ToolOutput:
        """Run one tool in a thread; a ToolError is its output."""
        call = self._hidden.real(call)
        tool = self._tools[call.tool]
        context = replace(
            self._context,
            on_output=lambda text: self._sink.emit("output", call=call.id, text=clean(text)),
        )
        started = time.monotonic()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, _run_tool, tool, context, dict(call.input))
        try:
            output = await asyncio.shield(future)
        except asyncio.CancelledError:
            self._context.cancel.set()
            await _all_done([future])
            raise
        if not tool.read_only:
            self._context.todo, self._context.report = context.todo, context.report
        seconds = round(time.monotonic() - started, 3)
        return replace(output, details={"seconds": seconds, **output.details})

    async def _finish(
        self,
        seq: int,
        call: ToolCall,
        output: ToolOutput,
        *,
        status: EntryStatus = EntryStatus.DONE,
    ) -> None:
        response = clean(
            {
                "text": output.text,
                "is_error": output.is_error,
                "details": dict(output.details),
            }
        )
        await self._transcript.finish(seq, response, status=status)
        self._report(call, response)

    async def _refuse(self, call: ToolCall, text: str, *, verdict: Verdict | None = None) -> None:
        """Commit a result for a call that does not run."""
        details: Json = {"refused": True, "rule": verdict.rule} if verdict else {"refused": True}
        response: Json = {"text": text, "is_error": True, "details": details}
        request = tool_request(call, verdict)
        await self._transcript.add(EntryKind.TOOL, request, response=response)
        self._report(call, response)

    def _report(self, call: ToolCall, response: Json) -> None:
        seconds = response["details"].get("seconds", 0)
        self._sink.emit("result", call=call.id, **response, seconds=seconds)
        if call.tool == "todo_write" and not response["is_error"]:
            self._sink.emit("todo", items=call.input.get("items", []))

    async def _take_up(self, call: ToolCall, entry: Entry) -> None:
        """Go on with a call that was begun or asked before the run was put aside or lost."""
        answer = entry.answer
        if entry.status is EntryStatus.STARTED:
            await self._take_up_interrupted(call, entry)
        elif answer is None:
            raise Waiting("approval", message="the question has not been answered yet")
        elif answer.decision is Decision.APPROVED:
            await self._take_up_approved(call, entry, answer)
        else:
            await self._finish(entry.seq, call, _refused_output(approvals.not_approved(answer)))

    async def _give_up(self, call: ToolCall, entry: Entry | None) -> None:
        """End a call whose real input was lost with the worker that held the run."""
        if entry is None:
            await self._refuse(call, LOST)
        elif entry.status is EntryStatus.STARTED:
            output = ToolOutput(approvals.outcome_unknown(call, title(call)), is_error=True)
            await self._finish(entry.seq, call, output, status=EntryStatus.UNKNOWN)
        else:
            await self._finish(entry.seq, call, _refused_output(LOST))

    async def _take_up_approved(self, call: ToolCall, entry: Entry, answer: Answer) -> None:
        approved = approvals.as_approved(call, answer)
        problem = self._problem(approved)
        if problem:
            await self._finish(
                entry.seq, call, _refused_output(approvals.edited_badly(answer, problem))
            )
            return
        verdict = await self._gate.check(approved)
        if verdict.tier is Tier.DENY:
            text = approvals.denied_by_policy(verdict)
            await self._finish(entry.seq, call, _refused_output(text, rule=verdict.rule))
        elif verdict.tier is Tier.ALLOW or approvals.still_holds(answer, verdict):
            await self._transcript.resume(entry.seq)
            await self._carry_out([(entry.seq, approved)], approvals.preface(answer))
        else:
            await self._gate.ask(approved, verdict, seq=entry.seq)

    async def _take_up_interrupted(self, call: ToolCall, entry: Entry) -> None:
        """The worker was lost while this call ran: repeat it if that is safe and still allowed."""
        approved = approvals.as_approved(call, entry.answer) if entry.answer else call
        tool = self._tools.get(call.tool)
        if tool is not None and tool.repeatable and not self._problem(approved):
            verdict = await self._gate.check(approved)
            if verdict.tier is Tier.ALLOW or (
                verdict.tier is Tier.ASK
                and entry.answer
                and approvals.still_holds(entry.answer, verdict)
            ):
                preface = approvals.preface(entry.answer) if entry.answer else ""
                await self._carry_out([(entry.seq, approved)], preface)
                return
        output = ToolOutput(approvals.outcome_unknown(approved, title(approved)), is_error=True)
        await self._finish(entry.seq, call, output, status=EntryStatus.UNKNOWN)


_Admitted = tuple[ToolCall, Verdict]


def _refused_output(text: str, *, rule: str = "") -> ToolOutput:
    details = {"refused": True, "rule": rule} if rule else {"refused": True}
    return ToolOutput(text, is_error=True, details=details)


def _run_tool(tool: Tool, context: ToolContext, arguments: Json) -> ToolOutput:
    if context.cancel.is_set():  # while it waited for a thread
        return ToolOutput("cancelled before it started", is_error=True)
    try:
        return tool.run(context, arguments)
    except ToolError as error:
        return ToolOutput(str(error), is_error=True)
    except Exception as error:
        # A bug in a tool must not cost the run: it is logged, and the model may go another way.
        logger.exception("the tool %s failed", tool.name)
        return ToolOutput(f"{tool.name} failed by a fault of its own: {error!r}", is_error=True)


async def _all_done(futures: Sequence["asyncio.Future[ToolOutput]"]) -> None:
    """Wait until every future is done, however often this is cancelled meanwhile."""
    while not all(future.done() for future in futures):
        try:
            await asyncio.wait(futures)
        except asyncio.CancelledError:
            continue
    for future in futures:
        if not future.cancelled():
            future.exception()  # it has been looked at; another one is raised
