"""Which calls may leave something to be saved behind."""

from pathlib import Path

import pytest

from agents.bridge import may_change
from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide
from agents.harness.ports import ToolCall


@pytest.fixture
def context(tmp_path: Path) -> Context:
    (tmp_path / "src").mkdir()
    return Context(workspace=tmp_path, repository=tmp_path.parent, sandbox="bubblewrap")


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("ls src | head -3", False),
        ("cat /etc/os-release", False),
        ("true", False),
        ("true >a", True),
        ("sort src/a >>b", True),
        ("touch a; ls", True),
        ("pytest -q", True),
        ("git add -A", True),
        ("uv add requests", True),
    ],
)
def test_a_command_that_only_reads_needs_no_commit_behind_it(context, command, changes):
    call = ToolCall("call", "bash", {"command": command})
    assert may_change(call, decide(call, context)) is changes


def test_writing_tools_need_one_and_reading_tools_do_not(context):
    for tool, fields, changes in (
        ("write_file", {"path": "src/a", "content": "x"}, True),
        ("edit_file", {"path": "src/a", "old": "x", "new": "y"}, True),
        ("read_file", {"path": "src/a"}, False),
        ("list_files", {"path": "src"}, False),
    ):
        call = ToolCall("call", tool, fields)
        assert may_change(call, decide(call, context)) is changes, tool
