"""`python -m agents.harness.policy check --jsonl FILE` and `... explain "COMMAND"`."""

import argparse
import json
import sys
import time
from pathlib import Path

from agents.harness.policy.context import Context
from agents.harness.policy.corpus import answer
from agents.harness.policy.decide import decide
from agents.harness.policy.load import LoadedPolicy, PolicyError, load_policy
from agents.harness.ports import ToolCall


def main(arguments: list[str] | None = None) -> int:
    """Run one of the two commands; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        policy = load_policy(*options.policy)
        if options.command == "check":
            return _check(options.jsonl, policy)
        return _explain(options, policy)
    except (PolicyError, OSError, KeyError, json.JSONDecodeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m agents.harness.policy")
    parser.add_argument(
        "--policy", type=Path, action="append", default=[], help="policy file, may be repeated"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="judge each line of a file of calls")
    check.add_argument("--jsonl", type=Path, required=True)
    explain = commands.add_parser("explain", help="judge one shell command and say why")
    explain.add_argument("text")
    explain.add_argument("--workspace", type=Path, default=Path())
    explain.add_argument(
        "--sandbox", choices=("bubblewrap", "landlock", "none"), default="bubblewrap"
    )
    return parser


def _check(path: Path, policy: LoadedPolicy) -> int:
    milliseconds: list[float] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                started = time.process_time()
                found = answer(json.loads(line), policy.rules)
                milliseconds.append((time.process_time() - started) * 1000)
                sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
    if milliseconds:
        slow = sorted(milliseconds)[len(milliseconds) * 95 // 100]
        sys.stderr.write(f"{len(milliseconds)} calls, 95 % of them within {slow:.1f} ms\n")
    return 0


def _explain(options: argparse.Namespace, policy: LoadedPolicy) -> int:
    context = Context(
        workspace=options.workspace.resolve(),
        sandbox=options.sandbox,
        rules=policy.rules,
        policy_version=policy.version,
    )
    verdict = decide(ToolCall("explain", "bash", {"command": options.text}), context)
    lines = [f"{verdict.tier.value} ({verdict.rule})", *(f"- {why}" for why in verdict.reasons)]
    lines += [f"  runs {json.dumps(effect, ensure_ascii=False)}" for effect in verdict.effects]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
