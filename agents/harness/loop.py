"""The agent loop: ask the model, run what it calls, until it reports. Start reading here.

    journal -> conversation -> model -> journal -> dispatcher (gate, tools) -> journal -> ...

Each step is committed before it acts and when it is done, and everything that is decided here
is decided from the journal. So a run can stop at any point, wait for days, and go on elsewhere.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field, replace

from agents.harness import history, prompts, reminders
from agents.harness.dispatch import Dispatcher
from agents.harness.errors import FailureKind, FatalError, TransientError
from agents.harness.hidden import HiddenInputs
from agents.harness.history import Conversation
from agents.harness.limits import RepetitionWatch
from agents.harness.policy.profiles import Profile, has_tool
from agents.harness.ports import (
    EntryKind,
    EntryStatus,
    Gate,
    Journal,
    Json,
    Model,
    ModelRequest,
    Outcome,
    Reply,
    Sink,
    Steering,
)
from agents.harness.redacted_sink import RedactedSink
from agents.harness.redaction import Redactor
from agents.harness.retries import INTERRUPTED, RetryPolicy, failure_kind, wait_seconds
from agents.harness.tools.registry import Tool, ToolContext, definitions, seen_in
from agents.harness.transcript import Transcript
from agents.harness.unicode import clean

MOST_LARGER_TRIES = 2  # of a reply that was cut off and is of no use, each with twice the limit


async def _nothing(_turn: int) -> None:
    return None


@dataclass(frozen=True)
class Ports:
    """Everything outside that the loop uses."""

    model: Model
    journal: Journal
    gate: Gate
    sink: Sink
    steering: Steering
    tools: Mapping[str, Tool]
    context: ToolContext
    threads: Executor | None = None  # where tools run; None is the event loop's own small pool
    # Called with the seq of the model entry when all calls of a turn have results.
    after_turn: Callable[[int], Awaitable[None]] = _nothing
    redactor: Redactor = field(default_factory=Redactor)  # the secrets of this run


@dataclass(frozen=True)
class RunConfig:
    """What this run is to do. `prompt`, `profile` and `system` count only at its very start."""

    prompt: str
    profile: Profile = Profile.FULL  # which tools the model is told of, frozen for the run
    system: Sequence[Json] = field(default_factory=prompts.system_blocks)
    max_tokens: int = 32_000  # of one reply, its thinking included
    most_tokens: int = 64_000  # of one reply that is tried again because it was cut off
    max_turns: int = 200
    retry: RetryPolicy = field(default_factory=RetryPolicy)


async def run_agent(ports: Ports, config: RunConfig) -> Outcome:
    """Drive a run from wherever its journal stands to the agent's report.

    When something is said after the report (a NOTE with the source `verification` or `review`
    in the journal), calling this again goes on. Raises Waiting when the run is to be put aside,
    FatalError when it has failed; a cancelled run has killed its processes when this returns.
    """
    run = await _Run.open(ports, config)
    while (outcome := await run.step()) is None:
        pass
    return outcome


class _Run:
    """One stretch of a run: from being taken up to the report, or to being put aside."""

    def __init__(self, ports: Ports, config: RunConfig, transcript: Transcript) -> None:
        ports = replace(ports, sink=RedactedSink.around(ports.sink, ports.redactor))
        self._ports = ports
        self._config = config
        self._transcript = transcript
        self._read: Conversation | None = None
        self._watch = RepetitionWatch()
        self._waited = 0  # waits in place since the model last answered
        self._hidden = HiddenInputs(ports.redactor)
        self._dispatcher = Dispatcher(
            transcript,
            gate=ports.gate,
            sink=ports.sink,
            tools=ports.tools,
            context=ports.context,
            threads=ports.threads,
            hidden=self._hidden,
        )

    @classmethod
    async def open(cls, ports: Ports, config: RunConfig) -> "_Run":
        """Read the journal, or start it; close a model call that was lost with its worker."""
        transcript = await Transcript.open(ports.journal, ports.redactor)
        _get_shell_ready(ports, transcript)
        if not transcript.entries:
            start = {
                "system": list(config.system),
                "tools": definitions(
                    {
                        name: tool
                        for name, tool in ports.tools.items()
                        if has_tool(config.profile, name)
                    }
                ),
                "prompt": config.prompt,
            }
            await transcript.add(EntryKind.START, start)
        last = transcript.entries[-1]
        if last.kind is EntryKind.MODEL and last.status is EntryStatus.STARTED:
            lost = {"error": "The worker stopped during the call.", "kind": INTERRUPTED}
            await transcript.finish(last.seq, lost, status=EntryStatus.UNKNOWN)
        ports.context.todo = reminders.todo_items(transcript.entries)
        ports.context.seen = seen_in(
            entry.response
            for entry in transcript.entries
            if entry.kind is EntryKind.TOOL and entry.response
        )
        return cls(ports, config, transcript)

    async def step(self) -> Outcome | None:
        """Settle what is open, then say what is to be said, then ask the model."""
        turn = self._conversation().last
        if turn is not None and turn.open_calls:
            await self._dispatcher.settle(turn)
            await self._ports.after_turn(turn.seq)
        self._watch.catch_up(self._transcript.entries)
        conversation = self._conversation()
        outcome = reminders.outcome(conversation)
        if outcome is not None:
            return outcome
        self._check_limits(conversation)
        await self._say_what_is_due(conversation)
        await self._ask_model(self._conversation())
        return None

    def _conversation(self) -> Conversation:
        self._read = history.read(self._transcript.entries, earlier=self._read)
        return self._read

    def _check_limits(self, conversation: Conversation) -> None:
        if self._watch.is_stuck:
            raise FatalError(
                f"The agent was stopped: it made the same call {self._watch.repeats} times with the"
                " same result, and was told so.",
                kind=FailureKind.LOOP,
            )
        if len(conversation.turns) >= self._config.max_turns:
            raise FatalError(
                f"The agent has used its {self._config.max_turns} turns without finishing.",
                kind=FailureKind.BUDGET,
            )

    async def _say_what_is_due(self, conversation: Conversation) -> None:
        for note in reminders.due_notes(conversation, self._watch):
            await self._note(note.source, note.text)
        messages = await self._ports.steering.take()
        if messages:  # one note for all, so that either all are in the journal or none is
            await self._note("steering", prompts.steering(messages))

    async def _note(self, source: str, text: str) -> None:
        await self._transcript.add(EntryKind.NOTE, {"source": source, "text": text})
        if source != "todo":  # the log shows the list itself
            self._ports.sink.emit("note", text=text, level="info")

    async def _ask_model(self, conversation: Conversation) -> None:
        """Make one model call and commit what came of it."""
        request = ModelRequest(
            system=conversation.system,
            tools=conversation.tools,
            messages=conversation.messages,
            max_tokens=self._token_limit(),
        )
        self._ports.sink.emit("turn")
        counts = {"messages": len(request.messages), "max_tokens": request.max_tokens}
        seq = await self._transcript.begin(EntryKind.MODEL, counts)
        _get_shell_ready(self._ports, self._transcript)
        reply: Reply | None = None
        try:
            reply = await self._ports.model.reply(request, on_text=self._on_text)
            self._check_stop_reason(reply)
        except TransientError as error:
            await self._fail(seq, reply, str(error), kind=failure_kind(error))
            await self._wait(error)
        except FatalError as error:
            await self._fail(seq, reply, str(error), kind="fatal")
            raise
        else:
            self._waited = 0
            await self._commit(seq, reply, request)

    def _on_text(self, kind: str, text: str) -> None:
        self._ports.sink.emit(kind, text=clean(text))

    async def _commit(self, seq: int, reply: Reply, request: ModelRequest) -> None:
        used = frozenset(
            block["id"]
            for message in request.messages
            for block in message["content"]
            if block["type"] == "tool_use"
        )
        response: Json = {
            **self._hidden.take(history.normalize(reply.content, used_ids=used)),
            "stop_reason": reply.stop_reason,
        }
        if (
            reply.stop_reason == "max_tokens"
            and not history.is_worth_keeping(reply.content)
            and request.max_tokens < self._config.most_tokens
            and self._dropped() < MOST_LARGER_TRIES
        ):
            response["dropped"] = True
        await self._transcript.finish(seq, response, usage=reply.usage, model=reply.model)
        self._ports.sink.emit("usage", **asdict(reply.usage))

    def _token_limit(self) -> int:
        larger: int = self._config.max_tokens * 2 ** self._dropped()
        return min(larger, max(self._config.max_tokens, self._config.most_tokens))

    def _dropped(self) -> int:
        """How many replies have been dropped since the last turn that was kept."""
        count = 0
        for entry in reversed(self._transcript.entries):
            if entry.kind is EntryKind.MODEL and entry.status is EntryStatus.DONE:
                if history.is_kept(entry):
                    break
                count += 1
        return count

    @staticmethod
    def _check_stop_reason(reply: Reply) -> None:
        match reply.stop_reason:
            case "end_turn" | "tool_use" | "max_tokens" | "stop_sequence" | "pause_turn":
                return
            case None:
                raise TransientError("The model's answer ended before it was complete.")
            case "refusal":
                raise FatalError(
                    f"The model refused this task. {reply.stop_details}".strip(),
                    kind=FailureKind.POLICY,
                )
            case "model_context_window_exceeded":
                raise FatalError(
                    "The conversation has become too long for the model. Split the task.",
                    kind=FailureKind.CONTEXT_OVERFLOW,
                )
            case unknown:
                raise FatalError(f"The model stopped for an unknown reason: {unknown}.")

    async def _fail(self, seq: int, reply: Reply | None, error: str, *, kind: str) -> None:
        response = {"error": error, "kind": kind}
        usage = None if reply is None else reply.usage
        await self._transcript.finish(
            seq,
            response,
            status=EntryStatus.UNKNOWN,
            usage=usage,
            model="" if reply is None else reply.model,
        )
        self._ports.sink.emit("note", text=error, level="warning")

    async def _wait(self, error: TransientError) -> None:
        """Wait a moment before the next try. Raises Waiting if a moment is not enough."""
        seconds = wait_seconds(
            error, self._transcript.entries, self._config.retry, waited=self._waited
        )
        self._waited += 1
        await asyncio.sleep(seconds)


def _get_shell_ready(ports: Ports, transcript: Transcript) -> None:
    """Have the next command prepared while something else is waited for, in a run that has commands."""
    if any(entry.request.get("tool") == "bash" for entry in transcript.entries):
        shell = ports.context.shell
        asyncio.get_running_loop().run_in_executor(ports.threads, shell.get_ready)
