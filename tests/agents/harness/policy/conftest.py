"""A workspace on disk, and a gate that looks at it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide
from agents.harness.policy.load import load_policy
from agents.harness.ports import ToolCall, Verdict

Gate = Callable[..., Verdict]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    for name in ("wt/card-1", "repo/.git", "product/data", "scratch"):
        (tmp_path / name).mkdir(parents=True)
    policy = load_policy()
    return Context(
        workspace=tmp_path / "wt" / "card-1",
        repository=tmp_path / "repo",
        product_paths=(tmp_path / "product",),
        product_urls=("http://127.0.0.1:8400",),
        scratch=tmp_path / "scratch",
        sandbox="bubblewrap",
        rules=policy.rules,
        policy_version=policy.version,
    )


@pytest.fixture
def gate(context: Context) -> Gate:
    """`gate("bash", command="ls")` or `gate("ls")`; `with_` changes the context."""

    def ask(tool: str, with_: Mapping[str, Any] | None = None, /, **fields: Any) -> Verdict:
        if not fields:
            tool, fields = "bash", {"command": tool}
        return decide(ToolCall("call", tool, fields), replace(context, **(with_ or {})))

    return ask
