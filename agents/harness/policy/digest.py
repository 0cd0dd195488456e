"""What an approval binds to: the call, where it runs, and the content of what it runs or names (rule P1)."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from agents.harness.policy import files
from agents.harness.policy.context import Context, Grant
from agents.harness.policy.named_files import Named
from agents.harness.ports import Json, ToolCall

MOST_SHOWN = 100  # paths and files that are kept by name; the digest covers all
SANDBOX, PATHS, REST = "the sandbox", "the paths", "the rest"  # in `bound`; no path has a blank


def canonical(value: Any) -> str:
    """JSON that is the same for equal values."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=dict)


def facts(
    context: Context,
    *,
    paths: Iterable[tuple[str, str]],
    scripts: Iterable[str],
    named: Iterable[Named] = (),
    target: str = "",
) -> dict[str, Any]:
    """What is true at this moment and matters for the call. `scripts` are real paths.

    `named` are all files that a command names, `target` is the file that a tool changes.
    """
    cwd = context.files.real(str(context.workspace))
    found = list(named)
    led = {one.written: one.real for one in found if one.leads_elsewhere} | dict(paths)
    marks = _marks(context, dict.fromkeys(scripts))
    wanted = dict.fromkeys(one.real for one in found if files.is_inside(context, one.real))
    known = _marks(context, (path for path in wanted if path not in marks))
    return {
        "cwd": cwd,
        "paths": dict(list(led.items())[:MOST_SHOWN]),
        "scripts": marks,
        "files": dict(list(known.items())[:MOST_SHOWN]),
        "sandbox": context.sandbox,
        "policy": context.policy_version,
        **({"target": context.files.mark(target)} if target else {}),
        "bound": bound(context.sandbox, cwd, paths=led, marks=marks | known),
    }


def _marks(context: Context, paths: Iterable[str]) -> dict[str, str]:
    marked = ((path, context.files.mark(path)) for path in paths)
    return {path: mark for path, mark in marked if mark is not None}


def bound(
    sandbox: str, cwd: str, *, paths: Mapping[str, str], marks: Mapping[str, str]
) -> dict[str, str]:
    """What an answer that lasts binds to beside the input; the same in each workspace of a project.

    Files with the hash of their content; the level of the sandbox; where all paths lead, as one hash.
    """
    inside = sorted((written, _relative(real, cwd)) for written, real in paths.items())
    content = [(_relative(path, cwd), mark) for path, mark in marks.items()]
    rest = {REST: _hash(sorted(content[MOST_SHOWN:]))} if content[MOST_SHOWN:] else {}
    return {**dict(content[:MOST_SHOWN]), **rest, SANDBOX: sandbox, PATHS: _hash(inside)}


def _hash(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def _relative(path: str, cwd: str) -> str:
    return "./" + path[len(cwd) + 1 :] if path.startswith(f"{cwd}/") else path


def digest(call: ToolCall, facts_of_call: Mapping[str, Any]) -> str:
    """The sha256 of tool, canonical input and facts."""
    whole: Json = {"tool": call.tool, "input": call.input, "facts": facts_of_call}
    return _hash(whole)


def grant_for(call: ToolCall, facts_of_call: Mapping[str, Any]) -> Grant:
    """What "for this run" or "always" means for this call."""
    return Grant(
        call.tool, canonical(dict(call.input)), tuple(sorted(facts_of_call["bound"].items()))
    )
