"""Which asked calls are critical: nothing of them is remembered, and a project may want two people."""

from pathlib import Path

import pytest

from agents.harness.policy.context import Context
from agents.harness.policy.digest import grant_for
from agents.harness.ports import Tier, ToolCall
from tests.agents.harness.policy.conftest import Gate


@pytest.mark.parametrize(
    "command",
    [
        "sudo make install",
        "chmod -R 777 .",
        "cat .env",
        "kubectl delete pod web-1",
        "npm publish",
        "echo x && docker push example.org/app",
        "git push --force origin main",
        "git push -f",
        "git push -uf origin main",
        "git push --forc origin main",
        "git push --force-with-lease=main origin main",
        "git push origin +main",
        "git push origin :old",
        "git -C . push --delete origin old",
        "git filter-branch --tree-filter true",
        "git update-ref -d refs/heads/main",
        "git reflog expire --all",
        "git gc --prune=now",
    ],
)
def test_a_call_that_others_would_pay_for_is_critical(gate: Gate, command: str) -> None:
    verdict = gate(command)
    assert verdict.tier is Tier.ASK, verdict
    assert verdict.critical, verdict


@pytest.mark.parametrize(
    "command",
    [
        "uv add httpx",
        "rm -r src",
        "git push origin main",
        "git push -u origin main",
        "git push --follow-tags",
        "git commit --amend -m x",
        "git rebase main",
        "curl https://example.org/",
        "ls -la",
    ],
)
def test_other_calls_are_not_critical(gate: Gate, command: str) -> None:
    assert not gate(command).critical, gate(command)


def test_code_that_would_be_denied_is_critical_when_it_is_written(gate: Gate) -> None:
    verdict = gate("write_file", path="x.sh", content="#!/bin/sh\nrm -rf /\n")
    assert (verdict.tier, verdict.critical) == (Tier.ASK, True)


def test_an_answer_that_lasts_does_not_cover_a_critical_call(gate: Gate, context: Context) -> None:
    Path(context.workspace / ".env").write_text("KEY=x\n")
    for command, tier in (("cat .env", Tier.ASK), ("rm -r src", Tier.ALLOW)):
        verdict = gate(command)
        grant = grant_for(ToolCall("call", "bash", {"command": command}), verdict.facts)
        assert gate("bash", {"grants": (grant,)}, command=command).tier is tier
