"""What the judge of a tool finds out about a call; `decide` makes a verdict of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agents.harness.policy.findings import Finding
from agents.harness.policy.named_files import Named
from agents.harness.ports import Json, Tier


@dataclass(frozen=True)
class Opinion:
    """What the built-in rules say of a call, and what the rules of people will look at.

    `findings` led to `tier`, worst first. `rules` are all rules that allow a shell text. `argv`
    are the words of every command that it starts, of scripts too; `simple` are its words if an
    allowing rule of a person may cover it. `is_check`: a person has written exactly this text.
    `named` finds the files that the call names; it is called only if a person is asked.
    """

    tier: Tier
    findings: Sequence[Finding]
    paths: Sequence[tuple[str, str]] = ()  # as written, real
    scripts: Sequence[str] = ()  # real paths of the files that it runs
    effects: Sequence[Json] = ()
    rules: Sequence[str] = ()
    argv: Sequence[tuple[str, ...]] = ()
    simple: tuple[str, ...] | None = None
    is_check: bool = False
    named: Callable[[], Iterable[Named]] = tuple


def strictest(findings: Sequence[Finding]) -> Tier:
    """The tier of the strictest rule among `findings`."""
    letters = {finding.rule[:1] for finding in findings}
    if "D" in letters:
        return Tier.DENY
    return Tier.ASK if letters & {"A", "C", "P"} else Tier.ALLOW
