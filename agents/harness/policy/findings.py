"""What a rule says about a call."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A rule that applies, and why, as a sentence for a person."""

    rule: str
    reason: str
    origin: str = ""  # whose rule it is, if it is not a built-in one
    line: int = 0  # where it stands there
