"""What an approval binds to: the call, where it runs, and the content of what it runs (rule P1)."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from agents.harness.policy.context import Context, Grant
from agents.harness.ports import Json, ToolCall

MOST_PATHS = 100


def canonical(value: Any) -> str:
    """JSON that is the same for equal values."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=dict)


def facts(
    context: Context, *, paths: Iterable[tuple[str, str]], scripts: Iterable[str]
) -> dict[str, Any]:
    """What is true at this moment and matters for the call. `scripts` are real paths."""
    return {
        "cwd": context.files.real(str(context.workspace)),
        "paths": dict(list(dict.fromkeys(paths))[:MOST_PATHS]),
        "scripts": {
            path: hashlib.sha256(content).hexdigest()
            for path in dict.fromkeys(scripts)
            if (content := context.files.read(path)) is not None
        },
        "sandbox": context.sandbox,
        "policy": context.policy_version,
    }


def digest(call: ToolCall, facts_of_call: Mapping[str, Any]) -> str:
    """The sha256 of tool, canonical input and facts."""
    whole: Json = {"tool": call.tool, "input": call.input, "facts": facts_of_call}
    return hashlib.sha256(canonical(whole).encode()).hexdigest()


def grant_for(call: ToolCall, facts_of_call: Mapping[str, Any]) -> Grant:
    """What "for this run" or "always" means for this call."""
    scripts = tuple(sorted(facts_of_call.get("scripts", {}).items()))
    return Grant(call.tool, canonical(dict(call.input)), scripts)
