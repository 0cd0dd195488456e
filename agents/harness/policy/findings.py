"""What a rule says about a call."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A rule that applies, and why, as a sentence for a person."""

    rule: str
    reason: str
