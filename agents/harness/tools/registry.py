"""What a tool is, and what the tools of a run share."""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.harness.ports import Json, Shell, ToolOutput

OUTPUT_CHARACTERS = 30_000  # of one result; about 8,000 tokens


@dataclass
class ToolContext:
    """What the tools of one run share.

    `outputs` is a folder for results that are too long to show, read with `output://NAME`.
    `seen` maps a path in the workspace to the sha256 of the content that the model last saw.
    """

    workspace: Path
    shell: Shell
    outputs: Path
    on_output: Callable[[str], None] = lambda _text: None
    cancel: threading.Event = field(default_factory=threading.Event)
    todo: list[Json] = field(default_factory=list)
    report: Json | None = None
    seen: dict[str, str] = field(default_factory=dict)
    default_timeout_seconds: float = 120
    redact: Callable[[str], str] = lambda text: text  # what becomes a file of `outputs`


@dataclass(frozen=True)
class Tool:
    """A tool: its definition for the model, and the function that does it.

    `run` is synchronous and raises ToolError with a text that the model can act on. `read_only`
    calls of one turn may run at once. A `repeatable` call may run again after a crash without
    anybody asking, because doing it twice is the same as doing it once.
    """

    name: str
    description: str
    schema: Json
    run: Callable[[ToolContext, Mapping[str, Any]], ToolOutput]
    read_only: bool
    repeatable: bool


def object_schema(required: Mapping[str, Json], optional: Mapping[str, Json] | None = None) -> Json:
    """The schema of an input with these fields and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def definitions(tools: Mapping[str, Tool]) -> list[Json]:
    """The tools as the Messages API wants them, by name: the order is part of the cached prompt."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
        for _, tool in sorted(tools.items())
    ]


def seen_in(responses: Iterable[Json]) -> dict[str, str]:
    """`ToolContext.seen` as it was after these results, oldest first: for a run that goes on."""
    seen: dict[str, str] = {}
    for response in responses:
        details = response.get("details") or {}
        if "path" in details and "sha256" in details:
            seen[details["path"]] = details["sha256"]
    return seen
