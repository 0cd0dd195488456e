"""The gate as the board asks it: see `board.gate`. It judges on paper, without any file."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from agents.harness.policy import convert, examples, people
from agents.harness.policy.context import Grant
from agents.harness.policy.decide import decide, see
from agents.harness.policy.load import LoadedPolicy, PolicyError
from agents.harness.policy.policy_yaml import read
from agents.harness.policy.profiles import Profile
from agents.harness.policy.replay import Again, Recorded, Rules, judge_again
from agents.harness.policy.replay import is_whole as is_whole_record
from agents.harness.policy.rules import Policy
from agents.harness.ports import ToolCall, Verdict
from agents.policies import grants, loaded_policy, standing
from board.errors import ValidationError
from board.gate import (
    Binding,
    Change,
    Conversion,
    ConvertedEntry,
    Explanation,
    Problem,
    Reason,
    RecordedCall,
    Replay,
    Rule,
    ScopeText,
    TriedCall,
)


class PolicyDesk:
    """What `board.gate.Gate` asks for."""

    def check(self, text: str) -> list[Problem]:
        """Return everything that is wrong with a policy; its examples are tried."""
        return [Problem(found.line, found.message) for found in examples.check(text)]

    def warn(self, text: str) -> list[Problem]:
        """Return what is valid and still worth a second look."""
        return [Problem(found.line, found.message) for found in examples.warnings(text)]

    def rules(self, scopes: Sequence[ScopeText]) -> list[Rule]:
        """Return the rules of people, strictest tier first; of a text that is not valid what is."""
        policy = sum((read(scope.text, origin=scope.origin)[0] for scope in scopes), Policy())
        return [
            Rule(tier, kind, str(rule), rule.source.origin, rule.source.line, rule.source.because)
            for tier, kind, rule in policy.all()
        ]

    def standing(self) -> list[ScopeText]:
        """Return the policies that stand in files of this installation."""
        return [ScopeText(found.origin, found.text) for found in standing()]

    def explain(self, call: TriedCall, binding: Binding) -> Explanation:
        """Return what would be said of a call in an empty workspace."""
        policy = _loaded(binding.scopes)
        context = examples.paper_context(
            sandbox=call.sandbox,
            rules=policy.rules,
            policy_version=policy.version,
            profile=Profile(binding.profile),
            grants=grants(binding.grants),
            exact_commands=frozenset(call.checks),
        )
        tried = ToolCall("tried", call.tool, call.input)
        verdict = decide(tried, context)
        ruling = people.judge(see(tried, context), context.rules, context.profile)
        reasons = [Reason(one.rule, one.reason, one.origin, one.line) for one in ruling.findings]
        if verdict.rule == "grant":
            reasons = [Reason("grant", verdict.reasons[0], "an answer that lasts"), *reasons]
        return Explanation(
            verdict.tier.value, verdict.rule, reasons, tuple(verdict.effects), _paths(verdict)
        )

    def replay(
        self, calls: Sequence[RecordedCall], before: Sequence[Binding], after: Sequence[Binding]
    ) -> Replay:
        """Judge recorded calls again under the rules in force, and under others."""
        known = _KnownRules()
        unknown: list[int] = []
        changes: list[Change] = []
        tiers: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for index, call in enumerate(calls):
            if not is_whole_record(call.record):
                unknown.append(index)
                continue
            again = partial(judge_again, Recorded(call.tool, call.input, call.record))
            old, new = again(known.of(before[index])), again(known.of(after[index]))
            tiers[0][old.tier.value] += 1
            tiers[1][new.tier.value] += 1
            if old.tier is not new.tier:
                changes.append(Change(index, old.tier.value, new.tier.value, _reason(new)))
        return Replay(len(calls) - len(unknown), changes, unknown, *tiers)

    def convert(self, text: str) -> Conversion:
        """Convert lists in the form of Claude Code."""
        try:
            found = convert.convert(text)
        except convert.ConversionError as error:
            return Conversion((), "", str(error))
        entries = [
            ConvertedEntry(one.tier, one.text, one.fate.value, one.says, one.rules)
            for one in found.entries
        ]
        return Conversion(entries, found.policy)


class _KnownRules:
    """The rules of each binding, read once: many calls share one."""

    def __init__(self) -> None:
        self._grants: dict[int, frozenset[Grant]] = {}

    def of(self, binding: Binding) -> Rules:
        key = id(binding.grants)
        if key not in self._grants:
            self._grants[key] = frozenset(grants(binding.grants))
        policy = _loaded(binding.scopes).rules
        return Rules(policy, Profile(binding.profile), self._grants[key])


def _loaded(scopes: Sequence[ScopeText]) -> LoadedPolicy:
    try:
        return loaded_policy(scopes)
    except PolicyError as error:
        raise ValidationError(f"Another policy is not valid: {error}") from error


def _reason(again: Again) -> Reason:
    return Reason(again.rule, again.reason, again.origin, again.line)


def _paths(verdict: Verdict) -> dict[str, str]:
    """Where a path is not what it seems: the workspace is on paper, so only its inner form is shown."""
    workspace = f"{examples.WORKSPACE}/"
    paths: dict[str, str] = verdict.facts.get("paths", {})
    return {written: real.removeprefix(workspace) for written, real in paths.items()}
