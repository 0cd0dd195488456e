"""The tools that every agent has."""

from agents.harness.tools import files, report, search, shell, todo
from agents.harness.tools.registry import Tool


def default_tools() -> dict[str, Tool]:
    """The tools by name, in order."""
    tools = (*files.TOOLS, *search.TOOLS, *shell.TOOLS, *todo.TOOLS, *report.TOOLS)
    return {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
