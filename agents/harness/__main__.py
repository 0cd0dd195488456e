"""Runs one task alone in a terminal: python -m agents.harness "task" --workspace DIR

Without a board, a database or a worker: the same loop, tools, policy and sandbox, with the person
who started it as the one who approves. Ends with 0 when the agent has done the task and all checks
pass, with 1 otherwise.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from agents.harness import costs, prompts
from agents.harness.errors import FatalError, Waiting
from agents.harness.journals import FileJournal, MemoryJournal
from agents.harness.loop import Ports, RunConfig, run_agent
from agents.harness.models.anthropic import AnthropicModel
from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide
from agents.harness.policy.load import load_policy
from agents.harness.ports import EntryKind, Outcome, Shell
from agents.harness.redaction import Redactor, Secret
from agents.harness.secret_files import read_secrets, secret_files_below
from agents.harness.terminal import TerminalGate, TerminalSink
from agents.harness.tools.catalog import default_tools
from agents.harness.tools.registry import ToolContext
from agents.sandbox import Sandbox
from agents.sandbox_probe import probe

DEFAULT_MODEL = "claude-sonnet-5-5"
ROUNDS = 2  # in which a failed check goes back to the agent
CHECK_SECONDS = 900.0
SHOWN_CHARACTERS = 4000  # of the output of a failed check, its end


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the program; return its exit code."""
    options = _parser(environment).parse_args(arguments)
    key = environment.get("ANTHROPIC_API_KEY", "")
    if not key:
        sys.stderr.write("Set ANTHROPIC_API_KEY; for a local server any word will do.\n")
        return 2
    if not options.workspace.is_dir():
        sys.stderr.write(f"{options.workspace} is not a folder.\n")
        return 2
    try:
        return asyncio.run(_run(options, key))
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped; its processes are dead.\n")
        return 130


async def _run(options: argparse.Namespace, key: str) -> int:
    journal = FileJournal(options.journal) if options.journal else MemoryJournal()
    model = AnthropicModel(
        options.model, api_key=key, base_url=options.base_url, headers=options.header
    )
    try:
        with tempfile.TemporaryDirectory(prefix="pullcord-") as folder:
            session = _Session(options, journal, model, Path(folder), key)
            try:
                return await session.work()
            finally:
                session.close()
    finally:
        await model.close()
        if isinstance(journal, FileJournal):
            journal.close()


class _Session:
    """One task with its parts."""

    def __init__(
        self,
        options: argparse.Namespace,
        journal: MemoryJournal,
        model: AnthropicModel,
        folder: Path,
        key: str,
    ) -> None:
        scratch, outputs = folder / "scratch", folder / "outputs"
        scratch.mkdir()
        outputs.mkdir()
        workspace = options.workspace.resolve()
        redactor = Redactor([Secret("ANTHROPIC_API_KEY", key)])
        redactor.learn(read_secrets(workspace, secret_files_below(workspace)))
        shell = Sandbox(
            workspace, scratch=scratch, outputs=outputs, level=probe(), redactor=redactor
        )
        policy = load_policy()
        context = Context(
            workspace=workspace,
            rules=policy.rules,
            policy_version=policy.version,
            sandbox=shell.sandbox_level,
            exact_commands=frozenset(options.check),
        )
        self._options = options
        self._journal = journal
        self._shell: Shell = shell
        self._gate = TerminalGate(
            journal,
            lambda call: decide(call, context),
            ask=input if sys.stdin.isatty() else None,
            approves_all=options.yes,
        )
        self._sink = TerminalSink(sys.stdout)
        self._ports = Ports(
            model=model,
            journal=journal,
            gate=self._gate,
            sink=self._sink,
            steering=_NoSteering(),
            tools=default_tools(),
            context=ToolContext(workspace, shell, outputs, redact=redactor.text),
            redactor=redactor,
        )

    def close(self) -> None:
        """End what waits for a command."""
        self._shell.close()

    async def work(self) -> int:
        """Run until the checks pass, or there is no hope."""
        prompt = prompts.task_prompt(title="", goal=self._options.task, checks=self._options.check)
        config = RunConfig(prompt)
        for rounds_left in reversed(range(ROUNDS + 1)):
            try:
                outcome = await self._run_through(config)
            except FatalError as error:
                sys.stdout.write(f"\nFailed ({error.kind}): {error}\n")
                return 1
            failed = "" if outcome.status == "failed" else await self._failed_check()
            if not failed or not rounds_left:
                return self._end(outcome, failed)
            await self._journal.add(EntryKind.NOTE, {"source": "verification", "text": failed})
            self._sink.emit("note", text=failed, level="warning")
        raise AssertionError("the last round returns")

    async def _run_through(self, config: RunConfig) -> Outcome:
        """The run to its report, whatever it waits for."""
        while True:
            await self._gate.answer_waiting()
            try:
                return await run_agent(self._ports, config)
            except Waiting as waiting:
                if waiting.reason == "retry":
                    text = f"{waiting}. Trying again in {waiting.seconds:.0f} s."
                    self._sink.emit("note", text=text, level="warning")
                    await asyncio.sleep(waiting.seconds)

    async def _failed_check(self) -> str:
        """What to tell the agent about the first check that fails; empty if all pass."""
        for command in self._options.check:
            result = await asyncio.to_thread(
                self._shell.run,
                command,
                timeout_seconds=CHECK_SECONDS,
                on_output=lambda _output: None,
                cancel=self._ports.context.cancel,
            )
            if result.exit_code != 0:
                output = result.output.decode(errors="replace").strip()[-SHOWN_CHARACTERS:]
                return (
                    f"The acceptance check `{command}` failed (exit code {result.exit_code}):\n\n"
                    f"{output or '(no output)'}"
                )
        return ""

    def _end(self, outcome: Outcome, failed: str) -> int:
        usage = costs.total(list(self._journal.usages.values()))
        money = "?" if usage.cost_microusd is None else f"{usage.cost_microusd / 1e6:.4f} USD"
        tokens = f"{usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens} in"
        is_done = outcome.status == "done" and not failed
        lines = [
            "",
            f"{'Done' if is_done else 'Not done'}: {outcome.summary}",
            *([f"Remaining: {outcome.remaining}"] if outcome.remaining else []),
            *([failed] if failed else []),
            f"({tokens}, {usage.output_tokens} out, {money})",
            "",
        ]
        sys.stdout.write("\n".join(lines))
        return 0 if is_done else 1


class _NoSteering:
    async def take(self) -> list[str]:
        return []


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m agents.harness", description=__doc__)
    add = parser.add_argument
    add("task", help="what the agent is to do")
    add("--workspace", type=Path, required=True, help="the folder it works in")
    add("--model", default=environment.get("ANTHROPIC_MODEL", DEFAULT_MODEL))
    add("--base-url", default=environment.get("ANTHROPIC_BASE_URL"), help="of another server")
    add("--header", choices=["bearer", "x-api-key"], default="bearer", help="how to send the key")
    add("--check", action="append", default=[], help="a command that must exit with 0; repeatable")
    add("--yes", action="store_true", help="approve whatever the policy would ask about")
    add("--journal", type=Path, help="keep the run in this file, or go on with the one in it")
    return parser


if __name__ == "__main__":
    # The only way into this program; the board's settings are not there.
    sys.exit(main(sys.argv[1:], os.environ))  # noqa: TID251
