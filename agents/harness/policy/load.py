"""Reads policies. One that is not valid is refused with the line; it is never ignored."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agents.harness.policy.digest import canonical
from agents.harness.policy.policy_yaml import Problem, read
from agents.harness.policy.rules import Policy, TierRules

DEFAULT_POLICY = Path(__file__).parents[2] / "defaults" / "policy.yaml"
RULES_VERSION = "2"  # of the built-in rules; an approval given under other rules counts no more


class PolicyError(ValueError):
    """A policy is not valid; the message names it and each place."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{name}: {problem}" for problem in self.problems))


@dataclass(frozen=True)
class PolicyText:
    """One source of rules: its text, and in whose name they stand (`project BIL`)."""

    text: str
    origin: str = "this installation"
    name: str = "policy"  # how errors call it


@dataclass(frozen=True)
class LoadedPolicy:
    """The rules of all sources together, and a name for exactly these rules."""

    rules: Policy
    version: str


def load_policy(*paths: Path) -> LoadedPolicy:
    """Read policy files; without any, the one that is shipped.

    A later file adds to the earlier ones: the strictest rule wins, so none can soften another.
    Raises PolicyError if a file is missing or not valid.
    """
    return load_texts([read_file(path) for path in paths or (DEFAULT_POLICY,)])


def read_file(path: Path, *, origin: str = "this installation") -> PolicyText:
    """Raises PolicyError if the file cannot be read."""
    try:
        return PolicyText(path.read_text("utf-8"), origin, str(path))
    except (OSError, UnicodeDecodeError) as error:
        problem = Problem(0, f"cannot be read ({error})")
        raise PolicyError(str(path), [problem]) from error


def load_texts(texts: Iterable[PolicyText]) -> LoadedPolicy:
    """The rules of all texts together.

    The version changes with what the rules say, not with comments or their order in the file.
    Raises PolicyError if one is not valid.
    """
    rules = sum((_parsed(text) for text in texts), Policy())
    said = sorted({(tier, kind, str(rule)) for tier, kind, rule in rules.all()})
    digest = hashlib.sha256(canonical([RULES_VERSION, said]).encode())
    return LoadedPolicy(rules, digest.hexdigest()[:16])


@lru_cache(maxsize=256)
def _parsed(text: PolicyText) -> Policy:
    rules, problems = read(text.text, origin=text.origin)
    if problems:
        raise PolicyError(text.name, problems)
    return rules


def parse(text: str, *, name: str) -> dict[str, TierRules]:
    """The tiers of one policy; `name` stands in the errors.

    Raises PolicyError if it is not valid.
    """
    rules = _parsed(PolicyText(text, name=name))
    return {"allow": rules.allow, "ask": rules.ask, "deny": rules.deny}
