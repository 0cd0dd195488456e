"""The shell tool."""

import codecs
from collections.abc import Mapping
from typing import Any

from agents.harness.errors import ToolError
from agents.harness.ports import CommandResult, ToolOutput
from agents.harness.tools.output import bounded
from agents.harness.tools.registry import Tool, ToolContext, object_schema

LONGEST_TIMEOUT_SECONDS = 1800
MOST_COMMAND_CHARACTERS = 30_000  # Linux takes 128 KiB in one argument; 4 bytes each at most


def bash(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Run a command line, and show how it ended and what it wrote."""
    command = str(arguments["command"])
    if "\0" in command or not command.strip():
        raise ToolError("The command is empty or has a NUL character in it.")
    if len(command) > MOST_COMMAND_CHARACTERS:
        raise ToolError("The command is too long. Write a script with write_file and run that.")
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        result = context.shell.run(
            command,
            timeout_seconds=float(arguments.get("timeout", context.default_timeout_seconds)),
            on_output=lambda chunk: context.on_output(decoder.decode(chunk)),
            cancel=context.cancel,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"The command could not be started: {error}") from error
    text = result.output.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    body = bounded(context, text, spool=result.spool)
    if body and not body.endswith("\n"):
        body += "\n"
    return ToolOutput(
        body + _ending(result),
        is_error=result.exit_code != 0,
        details={"exit_code": result.exit_code, "ended_by": result.ended_by},
    )


def _ending(result: CommandResult) -> str:
    seconds = f"{result.seconds:.1f} s"
    killed = {
        "timeout": f"[killed after {seconds}: it did not end in time; give a longer `timeout`]",
        "cancelled": f"[cancelled after {seconds}]",
        "output": f"[killed after {seconds}: it wrote too much]",
    }
    if result.ended_by in killed:
        return killed[result.ended_by]
    code = result.exit_code
    if code is not None and code < 0:
        return f"[killed by signal {-code} after {seconds}]"
    return f"[exit code {code}, {seconds}]"


TOOLS = (
    Tool(
        name="bash",
        description=(
            "Run one command line with bash in the workspace and show its output and exit code. "
            "Use it to run tests, linters, builds, git and programs. Each call starts afresh in "
            "the workspace: `cd` and variables do not last. There is no terminal, no input and "
            "usually no network. Commands that only read or test run at once; others may wait for "
            "a person, so prefer one simple command per call to long lines with && and pipes. "
            "Do not use it to read, write or search files (there are tools for that), for "
            "servers or anything in the background (it is killed when the command ends), or to "
            f"wait. `timeout` is in seconds, at most {LONGEST_TIMEOUT_SECONDS}."
        ),
        schema=object_schema(
            {"command": {"type": "string", "minLength": 1}},
            {
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": LONGEST_TIMEOUT_SECONDS,
                }
            },
        ),
        run=bash,
        read_only=False,
        repeatable=False,
    ),
)
