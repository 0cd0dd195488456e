"""Tool calls whose input holds a secret: they run as the model wrote them, and are stored without it.

A file must get what the model wrote, not `[redacted: NAME]`. So the input is kept in memory for as
long as this worker holds the run. Such a call cannot wait for a person or go on elsewhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.harness.ports import Json, ToolCall
from agents.harness.redaction import MARKER, Redactor
from agents.harness.transcript import SIGNED

# The inputs that reach a file or a program.
WRITTEN = {"write_file": "content", "edit_file": "new", "bash": "command"}
CANNOT_WAIT = (
    "Not run: a person would have to approve this call, but it holds a secret ({name}), which is not stored "
    "for that. Read the value where it is kept (a file or a variable) instead of writing it out."
)
LOST = (
    "Not run: this call held a secret, which is not stored, and the run was continued without it. "
    "Read the value where it is kept instead of writing it out."
)


class HiddenInputs:
    """The inputs of this stretch of a run that are stored in another form than they run in."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._inputs: dict[str, Mapping[str, Any]] = {}

    def take(self, content: Sequence[Json]) -> Json:
        """Return a reply's content as it is stored, and under `hidden` the ids of calls that differ."""
        blocks: list[Json] = []
        hidden: list[str] = []
        for block in content:
            if block["type"] in SIGNED:
                # What is changed in it would be refused, so it is kept as it is or not at all.
                text = str(block.get("thinking", ""))
                if self._redactor.text(text) == text:
                    blocks.append(dict(block))
                continue
            stored = self._redactor.json(block)
            if block["type"] == "tool_use" and stored["input"] != block["input"]:
                self._inputs[block["id"]] = block["input"]
                hidden.append(block["id"])
            blocks.append(stored)
        return {"content": blocks, "hidden": hidden} if hidden else {"content": blocks}

    def real(self, call: ToolCall) -> ToolCall:
        """The call as the model wrote it, where that is known."""
        given = self._inputs.get(call.id)
        return call if given is None else ToolCall(call.id, call.tool, given)

    def is_known(self, call_id: str) -> bool:
        """Whether the call's input is other than what is stored, and known here."""
        return call_id in self._inputs

    def cannot_wait(self, call: ToolCall) -> str:
        """What the model reads when such a call would have to wait for a person."""
        match = MARKER.search(str(self._redactor.json(dict(self._inputs[call.id]))))
        return CANNOT_WAIT.format(name=match[1] if match else "its input")

    def problem(self, call: ToolCall) -> str:
        """What is wrong with a call that would write a marker in place of the value; or empty."""
        written = str(call.input.get(WRITTEN.get(call.tool, ""), ""))
        for match in MARKER.finditer(written):
            if match[1] in self._redactor.names:
                return (
                    f"{match[0]} stands for a value that you were not shown; it must not be written anywhere. "
                    "Change the lines around it with edit_file, or read the value where it is kept."
                )
        return ""
