"""What the judge of a tool finds out about a call; `decide` makes a verdict of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.harness.policy.findings import Finding
from agents.harness.ports import Json, Tier


@dataclass(frozen=True)
class Opinion:
    """A tier, and the findings that led to it, worst first; the first one names the rule."""

    tier: Tier
    findings: Sequence[Finding]
    paths: Sequence[tuple[str, str]] = ()  # as written, real
    scripts: Sequence[str] = ()  # real paths of the files that it runs
    effects: Sequence[Json] = ()

    @property
    def rule(self) -> str:
        """The rule that decided."""
        return self.findings[0].rule if self.findings else ""


def strictest(findings: Sequence[Finding]) -> Tier:
    """The tier of the strictest rule among `findings`."""
    letters = {finding.rule[:1] for finding in findings}
    if "D" in letters:
        return Tier.DENY
    return Tier.ASK if letters & {"A", "C", "P"} else Tier.ALLOW
