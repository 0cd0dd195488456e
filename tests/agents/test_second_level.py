"""A run on a machine without bubblewrap: the whole stay at a worker, held by Landlock."""

import shlex
from typing import Any

import pytest

from agents.executors import Job, Links
from agents.harness.ports import Outcome, Tier, ToolCall, Verdict
from agents.sandbox_probe import probe
from tests.agents.test_worker import carry_out, claimed
from tests.product import git

__all__ = ["claimed"]

LEVEL = probe(only="landlock")
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(LEVEL.name != "landlock", reason=LEVEL.message),
]


async def test_a_run_is_held_by_the_second_level_and_judged_for_it(
    claimed: Any, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr("agents.desk.probe", lambda: LEVEL)
    secret = settings.HUBS.parent / "secret"
    secret.write_text("sk-ant-very-secret")
    seen: dict[str, Any] = {}

    async def executor(_job: Job, links: Links) -> Outcome:
        shell = links.context.shell

        def run(command: str) -> str:
            result = shell.run(
                command, timeout_seconds=20, on_output=lambda _: None, cancel=links.context.cancel
            )
            return result.output.decode()

        seen["level"] = shell.sandbox_level
        seen["read"] = run(f"cat {shlex.quote(str(secret))}")
        seen["status"] = run("git status --short && git log --oneline && echo fine")
        seen["commit"] = run(
            "echo x >new.txt; git add new.txt; git commit -qm mine || echo refused"
        )
        for name, command in (
            ("tests", "pytest -q"),
            ("code", "python tool.py"),
            ("rm", "rm -r build"),
        ):
            call = ToolCall(name, "bash", {"command": command})
            seen[name] = await links.gate.check(call)
        return Outcome("done", "It is done.")

    run = await carry_out(claimed, executor)
    assert run.status == "succeeded", run.failure
    assert seen["level"] == "landlock"
    assert "sk-ant-very-secret" not in seen["read"]
    assert seen["status"].endswith("fine\n")
    assert "refused" in seen["commit"]
    verdicts: dict[str, Verdict] = {name: seen[name] for name in ("tests", "code", "rm")}
    assert {name: (one.tier, one.rule) for name, one in verdicts.items()} == {
        "tests": (Tier.ALLOW, "L3"),
        "code": (Tier.ASK, "sandbox"),
        "rm": (Tier.ASK, "A3"),
    }
    assert run.evidence[0]["exit_code"] == 0  # the checks ran there too
    # The harness commits, so nothing is lost.
    assert git("show", f"{run.head_sha}:new.txt", folder=settings.HUBS / "BIL.git") == "x"
