"""Keeps results short: the beginning and the end for the model, the whole in a file."""

import re
import secrets
from pathlib import Path

from agents.harness.errors import ToolError
from agents.harness.tools.registry import OUTPUT_CHARACTERS, ToolContext

SCHEME = "output://"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def bounded(context: ToolContext, text: str, *, spool: str | None = None) -> str:
    """`text`, or its two ends and how to read the rest if it is too long.

    `spool` is a file in `context.outputs` that holds all of it already.
    """
    text = context.redact(text)
    if len(text) <= OUTPUT_CHARACTERS:
        return text
    if spool is None:
        name = f"result-{secrets.token_hex(4)}.txt"
        (context.outputs / name).write_text(text, errors="replace")
    else:
        name = Path(spool).name
    half = OUTPUT_CHARACTERS // 2
    # Whole lines read better, if the lines are not endless.
    head = text[:half].rpartition("\n")[0] or text[:half]
    tail = text[-half:].partition("\n")[2] or text[-half:]
    left_out = len(text) - len(head) - len(tail)
    note = f"[{left_out} characters left out; read_file {SCHEME}{name} shows the whole]"
    return f"{head}\n\n{note}\n\n{tail}"


def output_name(path: str) -> str | None:
    """The file that `output://NAME` names; None for any other path.

    Raises ToolError if the name is not one of a plain file.
    """
    if not path.startswith(SCHEME):
        return None
    name = path.removeprefix(SCHEME)
    if _NAME.fullmatch(name) is None:
        raise ToolError(f"{path} does not name a result; use the name exactly as it was given.")
    return name
