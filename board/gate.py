"""What the board asks of the gate: is this policy valid, what would it say, what would it change.

The gate belongs to the agents, which the board does not know. The setting POLICY_GATE names what
does this; it is imported when somebody first asks, so that the web server starts without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string


@dataclass(frozen=True)
class Problem:
    """What is wrong in a line of a policy; 0 if it is about the whole."""

    line: int
    message: str


@dataclass(frozen=True)
class ScopeText:
    """The policy of one scope, and how reasons call it: "project BIL"."""

    origin: str
    text: str


@dataclass(frozen=True)
class GrantedCall:
    """A call that a person allowed to run again; `scripts` are the files it runs, with their sha256."""

    tool: str
    input: Mapping[str, Any]
    scripts: Mapping[str, str]


@dataclass(frozen=True)
class Binding:
    """Everything of people that binds a call: policies by scope, highest first, and the rest."""

    scopes: Sequence[ScopeText] = ()
    profile: str = "full"
    grants: Sequence[GrantedCall] = ()


@dataclass(frozen=True)
class TriedCall:
    """A call that a person typed. `checks` are commands that count as written by a person."""

    tool: str
    input: Mapping[str, Any]
    sandbox: str = "bubblewrap"
    checks: Sequence[str] = ()


@dataclass(frozen=True)
class Reason:
    """One finding. `origin` is empty for a built-in rule; `line` is 0 if it has none."""

    rule: str
    text: str
    origin: str = ""
    line: int = 0


@dataclass(frozen=True)
class Explanation:
    """What the gate would say of a call: the tier, the reasons with the deciding one first."""

    tier: str  # allow, ask or deny
    rule: str
    reasons: Sequence[Reason]
    effects: Sequence[Mapping[str, Any]] = ()  # {"argv": [...], "through": [...]}
    paths: Mapping[str, str] = field(default_factory=dict)  # as written -> as it is


@dataclass(frozen=True)
class RecordedCall:
    """A call as its step has kept it; `record` is empty if the gate's view was not kept."""

    tool: str
    input: Mapping[str, Any]
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """The answers to the recorded call at `index` under the rules in force, and under others."""

    index: int
    before: str
    after: str
    reason: Reason  # of the answer `after`


@dataclass(frozen=True)
class Replay:
    """What other rules would change. `unknown` are the indexes of calls that cannot be judged again."""

    judged: int
    changes: Sequence[Change]
    unknown: Sequence[int]
    before: Mapping[str, int]  # how many calls got each tier
    after: Mapping[str, int]


@dataclass(frozen=True)
class Rule:
    """One rule in force, for people to read."""

    tier: str
    kind: str
    text: str
    origin: str
    line: int
    because: str


@dataclass(frozen=True)
class ConvertedEntry:
    """What became of one entry of a list of another program, and what it would really match."""

    tier: str
    text: str
    fate: str  # converted, not needed, left out, cannot be said
    says: str
    rules: Sequence[str] = ()


@dataclass(frozen=True)
class Conversion:
    """All entries, and the policy that they become; `problem` if the text is no such list."""

    entries: Sequence[ConvertedEntry]
    policy: str
    problem: str = ""


class Gate(Protocol):
    """The gate as the board sees it. None of these touches the file system of a workspace."""

    def check(self, text: str) -> Sequence[Problem]:
        """Everything that is wrong with a policy; its examples are tried."""

    def warn(self, text: str) -> Sequence[Problem]:
        """What is valid and still worth a second look."""

    def rules(self, scopes: Sequence[ScopeText]) -> Sequence[Rule]:
        """The rules of people, strictest tier first."""

    def explain(self, call: TriedCall, binding: Binding) -> Explanation:
        """What would be said of a call in an empty workspace."""

    def replay(
        self, calls: Sequence[RecordedCall], before: Sequence[Binding], after: Sequence[Binding]
    ) -> Replay:
        """Judge recorded calls again; `before` and `after` have one binding for each call."""

    def convert(self, text: str) -> Conversion:
        """Convert lists in the form of Claude Code."""

    def standing(self) -> Sequence[ScopeText]:
        """The policies that stand in files of this installation. They count before all others."""


@lru_cache(maxsize=1)
def gate() -> Gate:
    """The gate that the settings name, imported at the first call."""
    made: Gate = import_string(settings.POLICY_GATE)()
    return made
