"""A run on scripted parts: memory journal, scripted model and gate, and tools that count."""

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agents.harness.errors import ToolError
from agents.harness.journals import MemoryJournal
from agents.harness.loop import Ports, RunConfig, run_agent
from agents.harness.ports import Gate, Json, Model, Outcome, ToolOutput
from agents.harness.redaction import Redactor
from agents.harness.retries import RetryPolicy
from agents.harness.testing import (
    ListSink,
    ListSteering,
    NoShell,
    ScriptedGate,
    ScriptedModel,
    ScriptItem,
)
from agents.harness.tools import report, todo
from agents.harness.tools.registry import Tool, ToolContext, object_schema

AT_ONCE = RetryPolicy(short_waits=(0.0, 0.0))


@dataclass
class Calls:
    """What the tools of a test were called with, in the order of their starts."""

    started: list[tuple[str, Json]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, tool: str) -> list[Json]:
        return [arguments for name, arguments in self.started if name == tool]

    def tool(
        self,
        name: str,
        act: Callable[[ToolContext, Mapping[str, Any]], str],
        *,
        read_only: bool = False,
        repeatable: bool = False,
    ) -> Tool:
        """A tool with one free text field `x` that notes its calls and then acts."""

        def run(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
            with self.lock:
                self.started.append((name, dict(arguments)))
            return ToolOutput(act(context, arguments))

        schema = object_schema({}, {"x": {"type": "string"}})
        return Tool(name, f"{name}.", schema, run, read_only, repeatable)


@dataclass
class Rig:
    """One run and everything around it. `run` takes it up from its journal."""

    folder: Path
    threads: ThreadPoolExecutor
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    sink: ListSink = field(default_factory=ListSink)
    steering: ListSteering = field(default_factory=ListSteering)
    calls: Calls = field(default_factory=Calls)
    config: RunConfig = field(default_factory=lambda: RunConfig("The task", retry=AT_ONCE))
    turns: list[int] = field(default_factory=list)
    redactor: Redactor = field(default_factory=Redactor)
    gate: ScriptedGate = field(init=False)
    tools: dict[str, Tool] = field(init=False)
    context: ToolContext = field(init=False)
    model: ScriptedModel = field(init=False)
    shell: NoShell = field(default_factory=NoShell)

    def __post_init__(self) -> None:
        self.gate = ScriptedGate(self.journal)
        tools = [
            self.calls.tool("look", lambda _, its: f"saw {its.get('x', '')}", read_only=True),
            self.calls.tool("act", lambda _, its: f"did {its.get('x', '')}"),
            self.calls.tool("put", lambda _, its: f"put {its.get('x', '')}", repeatable=True),
            self.calls.tool("fail", _fail),
            self.calls.tool("bash", lambda _, its: f"ran {its.get('x', '')}"),
            *todo.TOOLS,
            *report.TOOLS,
        ]
        self.tools = {tool.name: tool for tool in tools}

    async def run(
        self,
        *script: ScriptItem,
        model: Model | None = None,
        gate: Gate | None = None,
        **config: Any,
    ) -> Outcome:
        """Go on with a model that says this, until the run ends, waits or fails."""
        self.model = ScriptedModel(script)
        self.context = ToolContext(self.folder, self.shell, self.folder)
        ports = Ports(
            model=model or self.model,
            journal=self.journal,
            gate=gate or self.gate,
            sink=self.sink,
            steering=self.steering,
            tools=self.tools,
            context=self.context,
            threads=self.threads,
            after_turn=self._after_turn,
            redactor=self.redactor,
        )
        return await run_agent(ports, replace(self.config, **config))

    def results(self) -> list[tuple[str, bool]]:
        """Text and is_error of every finished call, in the order of the journal."""
        return [
            (entry.response["text"], entry.response["is_error"])
            for entry in self.journal.entries
            if entry.kind == "tool" and entry.response is not None
        ]

    def notes(self) -> Iterable[tuple[str, str]]:
        """Source and text of every note."""
        return [
            (entry.request["source"], entry.request["text"])
            for entry in self.journal.entries
            if entry.kind == "note"
        ]

    async def _after_turn(self, seq: int) -> None:
        self.turns.append(seq)


@pytest.fixture
def rig(tmp_path: Path) -> Iterable[Rig]:
    with ThreadPoolExecutor(8) as threads:
        yield Rig(tmp_path, threads)


def _fail(_context: ToolContext, arguments: Mapping[str, Any]) -> str:
    if arguments.get("x") == "bug":
        raise RuntimeError("a bug")
    raise ToolError("There is no such thing.")
