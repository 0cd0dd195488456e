"""The rules of people, applied to what the built-in rules have seen of a call.

Everything that a rule of a person may look at is in `Seen`, and `Seen` is recorded with the call.
So a call can be judged again under other rules years later, without its files: see `replay`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.harness.policy import profiles, second_level
from agents.harness.policy.context import Context
from agents.harness.policy.findings import Finding
from agents.harness.policy.opinions import Opinion
from agents.harness.policy.profiles import Profile
from agents.harness.policy.rules import CommandPattern, Policy, TextPattern, TierRules
from agents.harness.ports import Json, Tier, ToolCall

MOST_RECORDED = 20_000  # characters of a record; a longer one says that it is not whole
_PRINTS = frozenset({"echo", "printf"})  # their words are no names of files
_FORMAT = 1


@dataclass(frozen=True)
class Seen:
    """What the built-in rules say of a call, and what of it the rules of people look at.

    Paths are relative to the workspace where they are inside. `rules` are the built-in rules that
    allow a shell text. `whole` is false if the call was too long to be recorded.
    """

    tool: str
    tier: Tier
    findings: tuple[Finding, ...]
    rules: tuple[str, ...] = ()
    argv: tuple[tuple[str, ...], ...] = ()
    simple: tuple[str, ...] | None = None
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    is_check: bool = False
    sandbox: str = ""
    whole: bool = True


@dataclass(frozen=True)
class Ruling:
    """The answer of built-in rules, rules of people and profile together, worst finding first."""

    tier: Tier
    findings: tuple[Finding, ...]

    @property
    def rule(self) -> str:
        """The rule that decided."""
        return self.findings[0].rule if self.findings else ""


def seen(call: ToolCall, context: Context, opinion: Opinion) -> Seen:
    """What there is to be seen of a call that the built-in rules have judged."""
    noted = context.noted
    named = {real for _, real in opinion.paths}
    writes = noted.changed if noted and call.tool == "bash" else set()
    reads = noted.read | named if noted and call.tool == "bash" else set()
    if call.tool in ("write_file", "edit_file"):
        writes = named
    elif call.tool != "bash":
        reads = named
    return Seen(
        tool=_tool_name(call),
        tier=opinion.tier,
        findings=tuple(opinion.findings),
        rules=tuple(opinion.rules),
        argv=tuple(opinion.argv),
        simple=opinion.simple,
        writes=tuple(sorted(_relative(context, path) for path in writes - {"/dev/null"})),
        reads=tuple(sorted(_relative(context, path) for path in reads)),
        is_check=opinion.is_check,
        sandbox=context.sandbox,
    )


def _tool_name(call: ToolCall) -> str:
    if call.tool != "mcp":
        return call.tool
    return f"mcp:{call.input.get('server', '')}:{call.input.get('tool', '')}"


def _relative(context: Context, path: str) -> str:
    workspace = f"{context.workspace}/"
    return path[len(workspace) :] if path.startswith(workspace) else path


def judge(seen: Seen, rules: Policy, profile: Profile = Profile.FULL) -> Ruling:
    """The strictest answer: denied by whomever, not in the profile, asked about, allowed."""
    if seen.tier is Tier.DENY:
        return Ruling(Tier.DENY, seen.findings)
    outside = _outside(seen, profile)
    denied = [*_covering(seen, rules.deny, "denies"), *outside]
    if denied:
        return Ruling(Tier.DENY, tuple(dict.fromkeys(denied)))
    asked = [*_covering(seen, rules.ask, "asks about"), *_may_change(seen, rules)]
    allowing = [] if seen.is_check else list(_allowing(seen, rules.allow))
    if seen.tier is Tier.ASK and not allowing:
        asked += seen.findings
    if not asked and seen.tool == "bash":
        asked = _of_the_sandbox(seen)
    if asked:
        return Ruling(Tier.ASK, tuple(dict.fromkeys(asked)))
    return Ruling(Tier.ALLOW, tuple(allowing) if seen.tier is Tier.ASK else seen.findings)


def _of_the_sandbox(seen: Seen) -> list[Finding]:
    """Why what is harmless in full isolation asks on this machine."""
    match seen.sandbox:
        case "bubblewrap" | "podman" | "docker":
            return []
        case "landlock":
            objection = None if seen.is_check else second_level.objection(seen.argv)
            return [objection] if objection else []
        case _:
            if profiles.has_command(
                Profile.READ_ONLY, seen.rules, seen.argv, is_check=seen.is_check
            ):
                return []
            return [Finding("sandbox", "There is no sandbox on this machine")]


def _outside(seen: Seen, profile: Profile) -> list[Finding]:
    """Why the profile does not have this call."""
    name = profile.value
    if not profiles.has_tool(profile, seen.tool):
        return [Finding("profile", f"The tool profile is {name}, which has no {seen.tool}")]
    if seen.tool == "bash" and not profiles.has_command(
        profile, seen.rules, seen.argv, is_check=seen.is_check
    ):
        may = "read" if profile is not Profile.EDIT_TEST else "read, change, test and build"
        return [Finding("profile", f"The tool profile is {name}: the shell may only {may}")]
    return []


def _covering(seen: Seen, tier: TierRules, verb: str) -> Iterator[Finding]:
    """The rules of a tier that cover the call, wherever in it."""
    for kind, rule in tier.all():
        if covers(kind, rule, seen):
            yield _finding(verb, rule)


def covers(kind: str, rule: CommandPattern | TextPattern, seen: Seen) -> bool:
    """Whether a rule that asks or denies covers any part of the call."""
    if isinstance(rule, CommandPattern):
        return any(rule.matches(words) for words in seen.argv)
    match kind:
        case "writes":
            return any(rule.matches(path) for path in seen.writes)
        case "reads":
            return any(rule.matches(path) for path in _readings(seen))
        case "tools":
            return rule.matches(seen.tool)
        case _:
            names = {finding.rule for finding in seen.findings} | set(seen.rules)
            return any(rule.matches(name) for name in names)


def _readings(seen: Seen) -> Iterator[str]:
    """What may be read: known paths, and words that could be the name of a file."""
    yield from seen.reads
    for words in seen.argv:
        if words[:1] and words[0] not in _PRINTS:
            yield from (word.removeprefix("./") for word in words[1:] if "\n" not in word)


def _may_change(seen: Seen, rules: Policy) -> Iterator[Finding]:
    """A command that changes files by a pattern may change one that a rule protects."""
    if not any("*" in path for path in seen.writes):
        return
    for rule in (*rules.deny.writes, *rules.ask.writes):
        yield _finding("protects", rule)


def _allowing(seen: Seen, tier: TierRules) -> Iterator[Finding]:
    """The rules that allow the call, which is one simple command."""
    for rule in tier.commands:
        if seen.simple is not None and rule.matches(seen.simple):
            yield _finding("allows", rule)


def _finding(verb: str, rule: CommandPattern | TextPattern) -> Finding:
    source = rule.source
    return Finding("policy", source.sentence(verb, rule), source.origin, source.line)


def as_record(seen: Seen, ruling: Ruling, *, profile: str) -> Json:
    """What is kept with a call, so that `seen_in` can give the same `Seen` again."""
    record: Json = {
        "format": _FORMAT,
        "tool": seen.tool,
        "tier": seen.tier.value,
        "findings": [[finding.rule, finding.reason] for finding in seen.findings],
        "rules": list(seen.rules),
        "argv": [list(words) for words in seen.argv],
        "simple": None if seen.simple is None else list(seen.simple),
        "writes": list(seen.writes),
        "reads": list(seen.reads),
        "check": seen.is_check,
        "sandbox": seen.sandbox,
        "verdict": [ruling.tier.value, ruling.rule],
        "profile": profile,
    }
    if len(str(record)) > MOST_RECORDED:
        short = {key: record[key] for key in ("format", "tool", "tier", "verdict", "profile")}
        return {**short, "whole": False}
    return record


def seen_in(record: Mapping[str, Any]) -> Seen:
    """The `Seen` of a record. Raises ValueError if it is of another format, or not whole."""
    if record.get("format") != _FORMAT or record.get("whole") is False:
        raise ValueError("the record of this call is not whole")
    simple = record["simple"]
    return Seen(
        tool=record["tool"],
        tier=Tier(record["tier"]),
        findings=tuple(Finding(rule, reason) for rule, reason in record["findings"]),
        rules=tuple(record["rules"]),
        argv=_words(record["argv"]),
        simple=tuple(simple) if isinstance(simple, list) else None,
        writes=tuple(record["writes"]),
        reads=tuple(record["reads"]),
        is_check=record["check"],
        sandbox=record["sandbox"],
    )


def _words(lists: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(words) for words in lists)
