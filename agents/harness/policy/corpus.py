"""Runs labelled calls through the gate, in a world that exists only on paper."""

import fnmatch
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide
from agents.harness.policy.paper_shell import carry_out
from agents.harness.policy.rules import Policy
from agents.harness.ports import ToolCall, Verdict

_SANDBOXES = {"on": "bubblewrap", "landlock": "landlock", "off": "none"}


@dataclass
class PaperFiles:
    """Files that a line of a corpus names: absolute path -> content, or `-> target` for a link."""

    entries: dict[str, str] = field(default_factory=dict)

    def real(self, path: str) -> str:
        """See Files."""
        for _ in range(20):
            for name, content in self.entries.items():
                if content.startswith("-> ") and (path == name or path.startswith(name + "/")):
                    target = Path(name).parent / content.removeprefix("-> ")
                    path = os.path.normpath(f"{target}{path[len(name) :]}")
                    break
            else:
                return path
        return path

    def read(self, path: str) -> bytes | None:
        """See Files."""
        content = self.entries.get(path)
        return None if content is None or content.startswith("-> ") else content.encode()

    def mark(self, path: str) -> str | None:
        """See Files."""
        content = self.read(path)
        return None if content is None else hashlib.sha256(content).hexdigest()

    def matches(self, pattern: str, *, folder: str, limit: int) -> list[str]:
        """See Files."""
        whole = pattern if pattern.startswith("/") else f"{folder}/{pattern}"
        return [name for name in self.entries if fnmatch.fnmatchcase(name, whole)][:limit]

    def is_folder(self, path: str) -> bool:
        """See Files. A line that says nothing else about a folder takes it for granted."""
        return path not in self.entries


def answer(line: Mapping[str, Any], rules: Policy) -> dict[str, Any]:
    """The verdict of one line; for a sequence, the verdicts of its steps."""
    context = context_of(str(line.get("context", "")), line.get("files", {}), rules)
    if "steps" not in line:
        verdict = decide(ToolCall(str(line["id"]), line["tool"], line["input"]), context)
        return {"id": line["id"], **_shown(verdict)}
    steps = [_shown(verdict) for verdict in _steps(line, context)]
    return {"id": line["id"], "steps": steps}


def _steps(line: Mapping[str, Any], context: Context) -> Iterator[Verdict]:
    """Judge each step; what it certainly writes is there for the steps after it."""
    files = context.files
    assert isinstance(files, PaperFiles)  # noqa: S101  it is made below
    remembered = ""  # what a persistent shell was told before
    for number, step in enumerate(line["steps"], 1):
        given = dict(step["input"])
        if step["tool"] == "bash" and "shell=persistent" in str(line.get("context", "")):
            given["command"] = remembered = f"{remembered}{given['command']}\n"
        yield decide(ToolCall(f"{line['id']}-{number}", step["tool"], given), context)
        path = str(context.workspace / str(step["input"].get("path", "")))
        if step["tool"] == "bash":
            carry_out(context, files.entries, step["input"]["command"])
        elif step["tool"] == "write_file":
            files.entries[path] = step["input"]["content"]
        elif step["tool"] == "edit_file" and path in files.entries:
            old, new = step["input"]["old"], step["input"]["new"]
            files.entries[path] = files.entries[path].replace(old, new)


def _shown(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.tier.value,
        "rule": verdict.rule,
        "reason": verdict.reasons[0] if verdict.reasons else "",
    }


def context_of(text: str, files: Mapping[str, str], rules: Policy) -> Context:
    """The context that `key=value` words describe."""
    words = dict(word.split("=", 1) for word in text.split() if "=" in word)
    workspace = Path(words.get("workspace", "/srv/agents/card-1"))
    trusted = (key.removeprefix("mcp.") for key, value in words.items()
               if key.startswith("mcp.") and value == "trusted")  # fmt: skip
    hosts = words.get("hosts", "").split(",") if words.get("net") == "proxy" else []
    return Context(
        workspace=workspace,
        repository=Path(words["repo"]) if "repo" in words else None,
        product_paths=(Path(words["product"]),) if "product" in words else (),
        product_urls=(words["product_url"],) if "product_url" in words else (),
        home=Path(words.get("home", "/home/agent")),
        scratch=Path(words.get("scratch", "/tmp")),  # noqa: S108  as the corpora say
        sandbox=_SANDBOXES.get(words.get("sandbox", "off"), "none"),
        hosts=frozenset(hosts),
        rules=rules,
        trusted_servers=frozenset(trusted),
        files=PaperFiles({str(workspace / name): content for name, content in files.items()}),
    )
