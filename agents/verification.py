"""Acceptance: our own run of the card's checks decides, never the model's word."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agents.harness.ports import Shell, Sink
from agents.harness.tools.registry import ToolContext

CHECK_SECONDS = 900.0  # of one acceptance check
SHOWN = 4_000  # characters of output kept as evidence, from its end: failures stand there
ROUNDS = 2  # how often a failure goes back to the agent


@dataclass(frozen=True)
class CheckResult:
    """One acceptance check that was run."""

    command: str
    exit_code: int | None  # None: it was killed
    ended_by: str  # exit, timeout, cancelled, output
    output: str
    seconds: float

    @property
    def is_passed(self) -> bool:
        """Whether it exited with 0."""
        return self.exit_code == 0


async def run_checks(
    commands: Sequence[str], *, shell: Shell, context: ToolContext, sink: Sink
) -> list[CheckResult]:
    """Run every check, one after another, also behind one that fails."""
    results = []
    for command in commands:
        result = await run_command(command, shell=shell, context=context, seconds=CHECK_SECONDS)
        sink.emit("check", **asdict(result))
        results.append(result)
    return results


async def run_command(
    command: str, *, shell: Shell, context: ToolContext, seconds: float
) -> CheckResult:
    """Run one command of a person's in the worktree; cancelling this kills it."""
    call = asyncio.get_running_loop().run_in_executor(
        None,
        lambda: shell.run(
            command, timeout_seconds=seconds, on_output=lambda _chunk: None, cancel=context.cancel
        ),
    )
    try:
        result = await asyncio.shield(call)
    except asyncio.CancelledError:
        context.cancel.set()
        await asyncio.wait([call])
        raise
    text = result.output.decode("utf-8", "replace")
    return CheckResult(
        command,
        result.exit_code,
        result.ended_by,
        text if len(text) <= SHOWN else f"…{text[-SHOWN:]}",
        round(result.seconds, 3),
    )


def feedback(results: Sequence[CheckResult], *, round_number: int) -> str:
    """Return what the agent is told when its work did not pass."""
    parts = [
        "The acceptance checks were run on your work, and not all of them passed. "
        f"Fix the cause and report again. This is round {round_number} of {ROUNDS}."
    ]
    for result in results:
        how = "passed" if result.is_passed else _how(result)
        parts.append(
            f"$ {result.command}\n[{how}]" + ("" if result.is_passed else f"\n{result.output}")
        )
    return "\n\n".join(parts)


def summary(results: Sequence[CheckResult]) -> str:
    """Return the failure in one sentence for the card."""
    failed = [result for result in results if not result.is_passed]
    noun = "check" if len(failed) == 1 else "checks"
    names = ", ".join(result.command for result in failed[:3])
    return (
        f"{len(failed)} of {len(results)} acceptance {noun} still failed after {ROUNDS} repair rounds: "
        f"{names}. Look at the evidence, then retry or change the card."
    )


def evidence(results: Sequence[CheckResult]) -> list[dict[str, Any]]:
    """Return the results as they are stored."""
    return [asdict(result) for result in results]


def passed_in(stored: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the commands that passed, from results as they are stored."""
    return {row["command"] for row in stored if row["exit_code"] == 0}


def _how(result: CheckResult) -> str:
    return f"exit code {result.exit_code}" if result.ended_by == "exit" else result.ended_by
