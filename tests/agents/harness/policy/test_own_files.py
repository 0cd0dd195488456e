"""The gate in front of a container: it sees the worktree and the scratch folder, and not the machine's other files."""

from pathlib import Path

import pytest

from agents.harness.policy.context import Context, OwnFiles
from agents.harness.policy.decide import decide
from agents.harness.policy.load import load_policy
from agents.harness.ports import Tier, ToolCall


@pytest.mark.parametrize("sandbox", ["podman", "docker"])
def test_what_is_in_the_image_cannot_be_looked_at_and_asks(tmp_path: Path, sandbox: str) -> None:
    workspace, scratch, outside = (tmp_path / name for name in ("work", "scratch", "outside"))
    for folder in (workspace, scratch, outside):
        folder.mkdir()
        (folder / "run.sh").write_text("#!/bin/sh\nls\n")
    files = OwnFiles({"/tmp": scratch}, kept=(workspace,))  # noqa: S108
    context = Context(
        workspace=workspace,
        scratch=Path("/tmp"),  # noqa: S108  as in there
        sandbox=sandbox,
        rules=load_policy().rules,
        files=files,
    )

    def tier(command: str) -> Tier:
        return decide(ToolCall("call", "bash", {"command": command}), context).tier

    assert tier("sh run.sh") is Tier.ALLOW
    assert tier("sh /tmp/run.sh") is Tier.ALLOW
    assert tier(f"sh {outside}/run.sh") is Tier.ASK
    assert tier("cat /etc/os-release") is Tier.ALLOW
    assert files.read("/tmp/run.sh") == b"#!/bin/sh\nls\n"  # noqa: S108
    assert files.read(f"{outside}/run.sh") is None
    assert files.matches("*.sh", folder=str(outside), limit=9) == []
    assert files.matches("*.sh", folder=str(workspace), limit=9) == [f"{workspace}/run.sh"]


def test_a_link_out_of_the_worktree_is_followed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/link").symlink_to("/etc/shadow")
    files = OwnFiles(kept=(tmp_path / "tree",))
    assert files.real(f"{tmp_path}/tree/link") == "/etc/shadow"
    assert files.real("/usr/../etc/x") == "/etc/x"
