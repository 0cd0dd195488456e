"""The to-do list of an agent."""

from collections.abc import Mapping
from typing import Any

from agents.harness.ports import ToolOutput
from agents.harness.tools.registry import Tool, ToolContext, object_schema


def todo_write(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Replace the whole list."""
    items = [dict(item) for item in arguments["items"]]
    context.todo = items
    open_items = sum(item["status"] != "done" for item in items)
    return ToolOutput(f"The list has {len(items)} items, {open_items} of them open.")


TOOLS = (
    Tool(
        name="todo_write",
        description=(
            "Keep your to-do list; people see it while you work. Use it when a task has three or "
            "more steps: write the list when you know the steps, and send the whole list again "
            "when a step begins or ends. At most one item is in_progress. Mark a step done only "
            "when it is, not before. Do not use it for a task of one or two steps."
        ),
        schema=object_schema(
            {
                "items": {
                    "type": "array",
                    "maxItems": 50,
                    "items": object_schema(
                        {
                            "text": {"type": "string", "minLength": 1, "maxLength": 500},
                            "status": {"enum": ["pending", "in_progress", "done"]},
                        }
                    ),
                }
            }
        ),
        run=todo_write,
        read_only=False,
        repeatable=True,
    ),
)
