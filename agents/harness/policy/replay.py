"""Judges recorded calls again under other rules: what an edit would have changed.

Exact with respect to what was recorded, because the rules of people look only at the record (see
`people`). The built-in rules are not asked again: their answer of then is part of the record.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.harness.policy import people
from agents.harness.policy.context import Grant
from agents.harness.policy.digest import canonical
from agents.harness.policy.profiles import Profile
from agents.harness.policy.rules import Policy
from agents.harness.ports import Tier


@dataclass(frozen=True)
class Recorded:
    """One call of a run with its record; the grants and rules that bind it are its run's."""

    tool: str
    input: Mapping[str, Any]
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Rules:
    """What binds a call: rules of people, the profile, and answers that last."""

    policy: Policy
    profile: Profile = Profile.FULL
    grants: frozenset[Grant] = frozenset()


@dataclass(frozen=True)
class Again:
    """The answer to a recorded call under some rules; its first finding decided."""

    tier: Tier
    rule: str
    reason: str
    origin: str = ""
    line: int = 0


def judge_again(call: Recorded, rules: Rules) -> Again:
    """The answer that the call would get. Raises ValueError if its record is not whole."""
    seen = people.seen_in(call.record)
    ruling = people.judge(seen, rules.policy, rules.profile)
    is_critical = call.record.get("critical", False)  # to such a call no answer lasts
    if ruling.tier is Tier.ASK and not is_critical and grant_of(call) in rules.grants:
        return Again(Tier.ALLOW, "grant", "A person has allowed this very call.")
    first = ruling.findings[0]
    return Again(ruling.tier, first.rule, first.reason, first.origin, first.line)


def grant_of(call: Recorded) -> Grant:
    """The answer that would have let exactly this call run."""
    scripts: Mapping[str, str] = call.record.get("scripts", {})
    return Grant(call.tool, canonical(dict(call.input)), tuple(sorted(scripts.items())))


def is_whole(record: Mapping[str, Any] | None) -> bool:
    """Whether a call can be judged again from this."""
    try:
        people.seen_in(record or {})
    except (ValueError, KeyError, TypeError):
        return False
    return True
