"""The gate's view of one run: its places, its commands, and what people have allowed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from agents.briefing import Brief
from agents.desk import Desk
from agents.harness.errors import FailureKind, FatalError
from agents.harness.policy.context import Context, Grant, OwnFiles, RealFiles
from agents.harness.policy.digest import canonical
from agents.harness.policy.load import (
    DEFAULT_POLICY,
    LoadedPolicy,
    PolicyError,
    PolicyText,
    load_texts,
    read_file,
)
from agents.harness.policy.profiles import Profile
from agents.sandbox_levels import CONTAINERS, ISOLATED
from board.actions.policies import binding_of
from board.gate import GrantedCall, ScopeText


def policy_context(brief: Brief, desk: Desk) -> Context:
    """Return what the policy may look at when it judges a call of this run."""
    commands = {*brief.checks, brief.setup_command} - {""}
    policy = _in_force()
    workspace, clone = desk.worktree.path.resolve(), desk.where.clone.resolve()
    sandbox = desk.shell.sandbox_level
    # In the sandbox the run's scratch folder is /tmp.
    is_isolated = sandbox in ISOLATED
    moved = {"/tmp": desk.scratch} if is_isolated else {}  # noqa: S108
    kept = (workspace, clone)
    files = OwnFiles(moved, kept=kept) if sandbox in CONTAINERS else RealFiles(moved, kept=kept)
    return Context(
        workspace=workspace,
        repository=clone,
        product_paths=(settings.DATA, settings.BASE_DIR),
        product_urls=(settings.PUBLIC_URL,),
        sandbox=sandbox,
        hosts=desk.hosts,
        scratch=Path("/tmp") if is_isolated else desk.scratch.resolve(),  # noqa: S108
        exact_commands=frozenset(commands),
        rules=policy.rules,
        policy_version=policy.version,
        files=files,
    )


@dataclass(frozen=True)
class InForce:
    """The rules and the profile that bind a run at one moment."""

    policy: LoadedPolicy
    profile: Profile

    def on(self, context: Context) -> Context:
        """Return `context` with these."""
        rules, version = self.policy.rules, self.policy.version
        return replace(context, rules=rules, policy_version=version, profile=self.profile)


def in_force(run_id: int) -> InForce:
    """Return what binds the run now.

    Raises FatalError if a file, or a version that an older Pullcord has stored, is not valid.
    """
    binding = binding_of(run_id)
    return InForce(_in_force(binding.scopes), Profile(binding.profile))


def renewed(context: Context, run_id: int) -> Context:
    """Return `context` with what binds the run now. Raises as `in_force`."""
    return in_force(run_id).on(context)


def _in_force(scopes: Sequence[ScopeText] = ()) -> LoadedPolicy:
    try:
        return loaded_policy(scopes)
    except PolicyError as error:
        raise FatalError(
            f"A policy is not valid, so nothing may run. Correct it, then retry. {error}",
            kind=FailureKind.POLICY,
        ) from error


def loaded_policy(scopes: Sequence[ScopeText] = ()) -> LoadedPolicy:
    """Return the rules of this installation's files, and those of `scopes`, together.

    Raises PolicyError if one is not valid.
    """
    texts = [
        PolicyText(scope.text, scope.origin, f"The policy of {scope.origin}") for scope in scopes
    ]
    return _loaded((*standing(), *texts))


def standing() -> list[PolicyText]:
    """Return the policies in files: the one that is shipped, and what people have added in the data folder."""
    added = settings.DATA / "policy.yaml"
    return [
        read_file(DEFAULT_POLICY, origin="the defaults"),
        *([read_file(added)] if added.exists() else []),
    ]


@lru_cache(maxsize=128)
def _loaded(texts: tuple[PolicyText, ...]) -> LoadedPolicy:
    return load_texts(texts)


def grants(calls: Iterable[GrantedCall]) -> tuple[Grant, ...]:
    """Return what people allowed for this run or for ever, as the policy compares it."""
    return tuple(
        Grant(call.tool, canonical(call.input), tuple(sorted(call.scripts.items())))
        for call in calls
    )
