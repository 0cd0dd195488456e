"""What the harness needs from outside, and the data that crosses that border.

Each protocol has two implementations: the real one (`agents/bridge.py`, `agents/sandbox.py`,
`agents/harness/models/`) and one in `agents/harness/testing.py` or the terminal program.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn, Protocol

# JSON as it comes from a model or goes into a row; checked by the function that reads it.
Json = dict[str, Any]


class EntryKind(StrEnum):
    """What a journal entry records.

    A MODEL response has `"dropped": True` if the reply was cut off and is asked for again. A MODEL
    entry of status UNKNOWN got no reply; its response is {"error": str, "kind": "transient" |
    "rate_limit" | "interrupted" | "fatal"}. Neither is part of the conversation.
    """

    START = "start"  # request: {"system": [...], "tools": [...], "prompt": str}; frozen for the run
    MODEL = "model"  # request: {"messages": int}; response: {"content": [...], "stop_reason": str}
    # request: {"id", "tool", "input", "gate": Verdict.record}, "gate" only if it was judged
    TOOL = "tool"  # response: {"text", "is_error", "details"}
    NOTE = "note"  # request: {"source": str, "text": str}; appended to the history as text


class EntryStatus(StrEnum):
    """How far a journal entry came; the same words as `board.states.StepStatus`."""

    STARTED = "started"  # committed before it acts; after a crash its outcome is unknown
    PENDING = "pending"  # a tool call that waits for a person
    DONE = "done"
    UNKNOWN = "unknown"  # it was started, its outcome was lost, and the model has been told


@dataclass(frozen=True)
class ToolCall:
    """One tool_use block of the model, or the same with an input that a person edited."""

    id: str
    tool: str
    input: Mapping[str, Any]


@dataclass(frozen=True)
class ToolOutput:
    """What a tool gives back: `text` for the model, `details` (exit_code, ...) for the log."""

    text: str
    is_error: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """Tokens of one model turn. `cost_microusd`: micro-dollars, None if the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_microusd: int | None = None


@dataclass(frozen=True)
class ModelRequest:
    """One request to the Messages API, complete but for the model's name and the credential."""

    system: Sequence[Json]
    tools: Sequence[Json]
    messages: Sequence[Json]
    max_tokens: int


@dataclass(frozen=True)
class Reply:
    """A whole assistant turn. `content` holds the raw blocks, to be sent back verbatim.

    `stop_details` says why the model stopped where the reason alone does not (a refusal).
    """

    content: Sequence[Json]
    stop_reason: str | None
    usage: Usage
    model: str
    stop_details: str = ""


@dataclass(frozen=True)
class Outcome:
    """How the agent ended. `silent`: it stopped twice without a report; it may be done or not."""

    status: str  # "done", "failed" or "silent"
    summary: str = ""
    remaining: str = ""


class Model(Protocol):
    """A language model behind the Messages API."""

    async def reply(self, request: ModelRequest, *, on_text: Callable[[str, str], None]) -> Reply:
        """Send `request`, stream it, return the whole turn.

        `on_text(kind, delta)` hears each delta; `kind` is `text` or `thinking`.
        Raises TransientError to retry unchanged, FatalError when retrying cannot help.
        """


class Decision(StrEnum):
    """What a person answered; the same words as `board.states.ApprovalStatus`."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    RETURNED = "returned"  # a person asks the agent something; the call may be made again


@dataclass(frozen=True)
class Answer:
    """A person's answer to a pending call.

    `input` is what is to run where that is not the model's own input: as this person edited it,
    or as it was shown when an edited call had to be asked about again. None if unchanged.
    """

    decision: Decision
    by: str
    comment: str
    input: Mapping[str, Any] | None
    digest: str  # of the call as it was shown to the person
    facts: Mapping[str, Any]  # what the digest was made of, see Verdict.facts
    critical: bool = False  # what was asked about; see Verdict.critical


@dataclass(frozen=True)
class Entry:
    """One step of the journal."""

    seq: int
    kind: EntryKind
    status: EntryStatus
    request: Json
    response: Json | None = None
    answer: Answer | None = None  # only on a pending or once-pending tool entry


class Journal(Protocol):
    """The steps of one run, in order. Every method commits before it returns.

    Every method raises LeaseLostError (a FatalError of the bridge) if another worker holds the run now;
    the caller stops and writes nothing more.
    """

    async def load(self) -> list[Entry]:
        """All entries by `seq`, which is gapless from 1."""

    async def begin(self, kind: EntryKind, request: Json) -> int:
        """Add an entry with status STARTED and return its seq."""

    async def resume(self, seq: int) -> None:
        """Turn a PENDING entry that has been answered into STARTED, just before it runs."""

    async def finish(
        self,
        seq: int,
        response: Json,
        *,
        status: EntryStatus = EntryStatus.DONE,
        usage: Usage | None = None,
        model: str = "",
    ) -> None:
        """Close an entry with its outcome, and book its usage in the same transaction."""

    async def add(self, kind: EntryKind, request: Json, *, response: Json | None = None) -> int:
        """Add an entry that is DONE at once: START, NOTE, and a TOOL that was refused."""


class Tier(StrEnum):
    """The three answers of the policy."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True)
class Verdict:
    """What the policy says about one call.

    `rule` names the deciding rule (`L1`, `A9`, `D1`, `grant`); `reasons` are plain sentences for a
    person, worst first. `facts` is what an approval binds to: {"cwd", "paths": {as_written: real},
    "scripts": {path: sha256}, "files": {path: sha256} that it names, "sandbox", "policy", "target" of
    a file tool, "bound": what an answer that lasts binds to}; `digest` is the sha256 of tool, canonical
    input and facts. `effects` shows the resolved argv of each command, for the approval page.
    `record` is kept with the step, so that the call can be judged again under other rules.
    """

    tier: Tier
    rule: str
    reasons: Sequence[str]
    digest: str
    facts: Mapping[str, Any]
    effects: Sequence[Json] = ()
    record: Json = field(default_factory=dict)
    critical: bool = False  # of a call that is asked about: see policy/critical.py


class Gate(Protocol):
    """The one way to a tool: what may run, what must be asked, what never runs."""

    async def check(self, call: ToolCall) -> Verdict:
        """Judge the call as things are at this moment."""

    async def ask(self, call: ToolCall, verdict: Verdict, *, seq: int | None) -> NoReturn:
        """Commit the question (step pending, approval, run waiting) and raise Waiting("approval").

        `seq` is the entry that asks again because what was approved has changed; None adds one.
        """


class Sink(Protocol):
    """The live log of a run. `emit` never blocks, never raises; any thread may call it."""

    def emit(self, kind: str, **data: Any) -> None:
        """Log one item. Kinds and their data: docs/reference/events.md, "Log items".

        turn {} · text {text} · thinking {text} · call {call, tool, title, input} ·
        output {call, text} · result {call, is_error, text, seconds, details} ·
        todo {items} · note {text, level} · usage {input_tokens, ..., cost_microusd}
        """


class Steering(Protocol):
    """What people say to a running agent."""

    async def take(self) -> list[str]:
        """Messages since the last call, oldest first; each is delivered once."""


@dataclass(frozen=True)
class CommandResult:
    """The end of a shell command. `output` is stdout and stderr as they came, decoded, redacted.

    `exit_code` is None when it was killed; `ended_by` is `exit`, `timeout`, `cancelled` or `output`
    (it wrote more than the spool may hold). `spool` is a file with all of the output.
    """

    exit_code: int | None
    output: bytes
    ended_by: str
    seconds: float
    spool: str | None = None


class Shell(Protocol):
    """Runs one command line in the workspace, in the sandbox. Called in a thread, blocks."""

    @property
    def sandbox_level(self) -> str:
        """`bubblewrap`, `landlock`, `podman`, `docker` or `none`."""

    def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        on_output: Callable[[bytes], None],
        cancel: threading.Event,
    ) -> CommandResult:
        """Run `command` with bash, and kill its whole process tree when it ends for any reason."""

    def get_ready(self) -> None:
        """Prepare for the next command, while nobody waits for it; it may come or not."""

    def close(self) -> None:
        """Let go of what was prepared. Commands still run afterwards."""
