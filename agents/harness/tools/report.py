"""How an agent says that it has finished."""

from collections.abc import Mapping
from typing import Any

from agents.harness.ports import ToolOutput
from agents.harness.tools.registry import Tool, ToolContext, object_schema


def report_result(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Take the report; the loop ends with it."""
    context.report = dict(arguments)
    return ToolOutput("Reported.")


TOOLS = (
    Tool(
        name="report_result",
        description=(
            "End your work on the task. Call it alone and once, when everything is done and the "
            'acceptance checks pass (status "done"), or when you cannot go on (status "failed"). '
            "`summary` tells people in a few sentences what you changed and how you know that it "
            "works, or what stands in the way; `remaining` what is left to do. Do not call it to "
            "report progress or to ask a question."
        ),
        schema=object_schema(
            {
                "status": {"enum": ["done", "failed"]},
                "summary": {"type": "string", "minLength": 1, "maxLength": 10_000},
            },
            {"remaining": {"type": "string", "maxLength": 10_000}},
        ),
        run=report_result,
        read_only=False,
        repeatable=True,
    ),
)
