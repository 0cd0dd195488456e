"""A workspace with a real repository and a real shell."""

from pathlib import Path

import pytest

from agents import processes
from agents.harness.tools.registry import ToolContext
from agents.sandbox import Sandbox
from agents.sandbox_levels import SandboxLevel


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    for name in ("workspace", "outputs", "scratch"):
        (tmp_path / name).mkdir()
    workspace = tmp_path / "workspace"
    processes.run(
        ["git", "init", "-q"],
        cwd=workspace,
        env=processes.base_environment(),
        timeout_seconds=20,
    )
    shell = Sandbox(
        workspace,
        scratch=tmp_path / "scratch",
        outputs=tmp_path / "outputs",
        level=SandboxLevel("none", "the tools must work without a sandbox, too"),
    )
    return ToolContext(workspace, shell, tmp_path / "outputs")
