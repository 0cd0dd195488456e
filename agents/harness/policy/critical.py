"""Which asked calls are critical: no answer to them is remembered, and a project may want two people.

Privilege (A6), infrastructure, data and publishing (A11), secrets (A12), whatever the policy would
deny if it were run (D, C1), and rewriting history that others share. docs/reference/policy.md.
"""

from collections.abc import Iterable, Sequence

from agents.harness.ports import Json

_RULES = frozenset({"A6", "A11", "A12", "C1"})
# Of `git push`: what makes the other side lose commits or branches.
_FORCING = ("-f", "-d", "--force", "--delete", "--mirror", "--prune")
_REWRITING = frozenset({"filter-branch", "filter-repo", "update-ref", "replace"})
_GIT_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})


def is_critical(rules: Iterable[str], effects: Sequence[Json]) -> bool:
    """Whether a call with these findings and commands is critical."""
    if any(rule in _RULES or rule.startswith("D") for rule in rules):
        return True
    return any(_rewrites_shared_history(effect.get("argv") or []) for effect in effects)


def _rewrites_shared_history(argv: Sequence[str]) -> bool:
    if not argv or argv[0].rpartition("/")[2] != "git":
        return False
    words = list(_without_options(argv[1:]))
    verb, rest = (words[0], words[1:]) if words else ("", [])
    match verb:
        case "push":
            return any(_forces(word) for word in rest)
        case "reflog":
            return rest[:1] in (["expire"], ["delete"])
        case "gc":
            return any(word.startswith("--prune") for word in rest)
        case _:
            return verb in _REWRITING


def _without_options(words: Sequence[str]) -> Iterable[str]:
    """The words behind git's own options: the verb and what follows it."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_WITH_VALUE else 1
    return words[at:]


def _forces(word: str) -> bool:
    if word.startswith("--"):
        # git takes shortened options: --forc, --del, and --force-with-lease=REF.
        name = word.partition("=")[0]
        whole = any(option.startswith(name) for option in _FORCING if len(name) > len("--f"))
        return whole or name.startswith("--force")
    if word.startswith("-"):
        return any(letter in word[1:] for letter in "fd")
    return word.startswith(("+", ":"))
