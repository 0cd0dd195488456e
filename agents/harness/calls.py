"""What can be said about a tool call without running it: its title, and what is wrong with its input."""

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from agents.harness.ports import ToolCall
from agents.harness.tools.registry import Tool

TITLE_LENGTH = 120
# The inputs that say what a call is about, most telling first.
TELLING = ("command", "path", "pattern", "summary")


def schema_problem(tool: Tool, arguments: object) -> str:
    """Say what is wrong with an input so that the model can mend it; empty if nothing is."""
    error = best_match(Draft202012Validator(tool.schema).iter_errors(arguments))
    if error is None:
        return ""
    where = "".join(f"[{part!r}]" for part in error.absolute_path)
    fields = ", ".join(
        name if name in tool.schema.get("required", ()) else f"{name} (optional)"
        for name in tool.schema.get("properties", {})
    )
    message = shorten(error.message, 500)
    return f"The input of {tool.name} is not valid: input{where}: {message}. Its fields: {fields}."


def title(call: ToolCall) -> str:
    """The call in a few words, for the log."""
    value = next((str(call.input[key]) for key in TELLING if call.input.get(key)), "")
    return shorten(" ".join(value.split()), TITLE_LENGTH)


def shorten(line: str, length: int) -> str:
    """Cut a text to at most `length` characters."""
    return line if len(line) <= length else f"{line[: length - 3]}..."
