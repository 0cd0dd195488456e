"""Tries a policy before it counts: its rules are valid, and each does what its examples say."""

from collections.abc import Iterator
from pathlib import Path

from agents.harness.policy import people, policy_yaml
from agents.harness.policy.context import Context
from agents.harness.policy.corpus import PaperFiles
from agents.harness.policy.decide import see
from agents.harness.policy.policy_yaml import Example, Problem
from agents.harness.policy.rules import CommandPattern, Policy, TierRules
from agents.harness.ports import Tier, ToolCall

# A place that exists on paper only: a call that a person types is judged without any file.
WORKSPACE = Path("/srv/agents/workspaces/card")
MOST_EXAMPLES = 300  # in one text
EXAMPLE_CHARACTERS = 1_000
_RUNS_ANYTHING = frozenset(
    ["sh", "bash", "dash", "zsh", "fish", "env", "sudo", "su", "doas", "xargs", "parallel", "find",
     "python", "python3", "node", "deno", "bun", "ruby", "perl", "php", "npx", "uvx", "pipx",
     "bunx", "ssh", "docker", "podman", "kubectl", "eval", "exec", "nohup", "setsid", "timeout",
     "watch", "flock", "awk", "gawk", "vim", "make", "git", "npm", "pnpm", "yarn", "uv", "poetry",
     "tar", "rsync", "busybox", "strace", "nice", "time", "command", "gdb"]
)  # fmt: skip


def paper_context(**more: object) -> Context:
    """A workspace with nothing in it, in the sandbox; `more` replaces fields of the context."""
    known: dict[str, object] = {"sandbox": "bubblewrap", "files": PaperFiles(), **more}
    return Context(workspace=WORKSPACE, **known)  # type: ignore[arg-type]


def check(text: str) -> list[Problem]:
    """Everything that is wrong with a policy, by line; empty if it may be saved."""
    _, problems = policy_yaml.read(text)
    if not problems:
        problems = list(_tried_all(policy_yaml.examples(text)))
    return sorted(problems, key=lambda problem: problem.line)


def _tried_all(found: list[Example]) -> Iterator[Problem]:
    """Each takes some milliseconds, and whoever may try a call may send any text."""
    if len(found) > MOST_EXAMPLES:
        yield Problem(found[MOST_EXAMPLES].line, f"has more than {MOST_EXAMPLES} examples")
        return
    for one in found:
        if len(one.text) > EXAMPLE_CHARACTERS:
            yield Problem(one.line, f"an example is longer than {EXAMPLE_CHARACTERS:,} characters")
        elif (problem := _tried(one)) is not None:
            yield problem


def warnings(text: str) -> Iterator[Problem]:
    """What is valid and still worth a second look: rules that allow more than they say."""
    rules, _ = policy_yaml.read(text)
    for pattern in rules.allow.commands:
        if reason := too_broad(pattern):
            yield Problem(pattern.source.line, f"`{pattern}` {reason}")


def too_broad(pattern: CommandPattern) -> str:
    """Why an allowing rule would allow nearly everything; empty if it does not."""
    if pattern.open_end and len(pattern.words) == 1 and pattern.words[0] in _RUNS_ANYTHING:
        return f"allows whatever {pattern.words[0]} can start, which is any program"
    return ""


def _tried(example: Example) -> Problem | None:
    """What is wrong with an example, or None."""
    seen = see(call_of(example.kind, example.text), paper_context())
    if example.tier == "allow":
        return _tried_allowing(example, seen)
    if people.covers(example.kind, example.rule, seen) is example.must_match:
        return None
    does = "does not cover" if example.must_match else "covers"
    return Problem(example.line, f"{example.tier}: `{example.rule}` {does} `{example.text}`")


def _tried_allowing(example: Example, seen: people.Seen) -> Problem | None:
    rule = example.rule
    assert isinstance(rule, CommandPattern)  # noqa: S101  nothing else can allow
    covers = seen.simple is not None and rule.matches(seen.simple)
    if covers is not example.must_match:
        does = "does not cover" if example.must_match else "covers"
        why = "" if covers or seen.simple is not None else ": it is not one simple command"
        return Problem(example.line, f"allow: `{rule}` {does} `{example.text}`{why}")
    ruling = people.judge(seen, Policy(allow=TierRules(commands=(rule,))))
    if covers and ruling.tier is not Tier.ALLOW:
        finding = ruling.findings[0]
        denied = f"{finding.reason} ({finding.rule})"
        return Problem(example.line, f"allow: `{example.text}` stays denied: {denied}")
    return None


def call_of(kind: str, text: str) -> ToolCall:
    """The call that an example stands for."""
    match kind:
        case "writes":
            return ToolCall("example", "write_file", {"path": text, "content": ""})
        case "reads":
            return ToolCall("example", "read_file", {"path": text})
        case "tools":
            return ToolCall("example", text, {})
        case _:
            return ToolCall("example", "bash", {"command": text})
