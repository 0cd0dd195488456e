"""Reads policy files. A file that is not valid stops the start; it is never ignored."""

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agents.harness.policy.context import CommandPattern, Policy, TierRules

DEFAULT_POLICY = Path(__file__).parents[2] / "defaults" / "policy.yaml"
FORMAT = 1
RULES_VERSION = "1"  # of the built-in rules; an approval given under other rules counts no more

_TIERS = ("allow", "ask", "deny")
_FIELDS = {"allow": ("commands",), "ask": ("commands", "writes"), "deny": ("commands", "writes")}


class PolicyError(ValueError):
    """A policy file is not valid; the message names the file and the place."""


@dataclass(frozen=True)
class LoadedPolicy:
    """The rules of all files together, and a name for exactly these rules."""

    rules: Policy
    version: str


def load_policy(*paths: Path) -> LoadedPolicy:
    """Read policy files, of the installation first, then of the project, then of the card.

    A later file adds to the earlier ones: the strictest rule wins, so none can soften another.
    Raises PolicyError if a file is missing or not valid.
    """
    tiers: dict[str, TierRules] = {tier: TierRules() for tier in _TIERS}
    digest = hashlib.sha256(RULES_VERSION.encode())
    for path in paths or (DEFAULT_POLICY,):
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PolicyError(f"{path}: cannot be read ({error})") from error
        digest.update(text.encode())
        for tier, rules in parse(text, name=str(path)).items():
            tiers[tier] = TierRules(
                (*tiers[tier].commands, *rules.commands), (*tiers[tier].writes, *rules.writes)
            )
    return LoadedPolicy(Policy(**tiers), digest.hexdigest()[:16])


def parse(text: str, *, name: str) -> dict[str, TierRules]:
    """The tiers of one policy file; `name` stands in the errors.

    Raises PolicyError if it is not valid.
    """
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PolicyError(f"{name}: is not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise PolicyError(f"{name}: must be a mapping with version, allow, ask and deny")
    _check_keys(content, ("version", *_TIERS), name)
    if content.get("version") != FORMAT:
        raise PolicyError(f"{name}: version must be {FORMAT}")
    return {tier: _tier(content.get(tier) or {}, tier, name) for tier in _TIERS}


def _tier(content: Any, tier: str, name: str) -> TierRules:
    where = f"{name}: {tier}"
    if not isinstance(content, dict):
        raise PolicyError(f"{where}: must be a mapping with {' and '.join(_FIELDS[tier])}")
    _check_keys(content, _FIELDS[tier], where)
    return TierRules(
        tuple(_pattern(text, where) for text in _texts(content, "commands", where)),
        tuple(_texts(content, "writes", where)),
    )


def _check_keys(content: Mapping[Any, Any], known: tuple[str, ...], where: str) -> None:
    for key in content:
        if key not in known:
            raise PolicyError(f"{where}: {key!r} is not known; known are {', '.join(known)}")


def _texts(content: Mapping[str, Any], field: str, where: str) -> list[str]:
    texts = content.get(field) or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise PolicyError(f"{where}: {field} must be a list of texts (put them in quotes)")
    if not all(text.strip() for text in texts):
        raise PolicyError(f"{where}: {field} has an empty text")
    return texts


def _pattern(text: str, where: str) -> CommandPattern:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise PolicyError(f"{where}: {text!r} has a quote that is not closed") from error
    open_end = words[-1:] == ["*"]
    words = words[:-1] if open_end else words
    if not words:
        raise PolicyError(f"{where}: {text!r} would match every command")
    if any("*" in word for word in words):
        raise PolicyError(f"{where}: {text!r} has a * that is not its last word")
    return CommandPattern(tuple(words), open_end)
