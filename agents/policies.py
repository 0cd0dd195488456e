"""The gate's view of one run: its places, its commands, and what people have allowed."""

from collections.abc import Iterable

from django.conf import settings

from agents.briefing import Brief
from agents.desk import Desk
from agents.harness.policy.context import Context, Grant, RealFiles
from agents.harness.policy.digest import canonical
from agents.harness.policy.load import DEFAULT_POLICY, LoadedPolicy, load_policy
from board.actions.approvals import GrantedCall


def policy_context(brief: Brief, desk: Desk) -> Context:
    """Return what the policy may look at when it judges a call of this run."""
    commands = {*brief.checks, brief.setup_command} - {""}
    policy = loaded_policy()
    workspace, clone = desk.worktree.path.resolve(), desk.where.clone.resolve()
    sandbox = desk.shell.sandbox_level
    # In the sandbox the run's scratch folder is /tmp.
    moved = {"/tmp": desk.scratch} if sandbox == "bubblewrap" else {}  # noqa: S108
    return Context(
        workspace=workspace,
        repository=clone,
        product_paths=(settings.DATA, settings.BASE_DIR),
        product_urls=(settings.PUBLIC_URL,),
        sandbox=sandbox,
        exact_commands=frozenset(commands),
        rules=policy.rules,
        policy_version=policy.version,
        files=RealFiles(moved, kept=(workspace, clone)),
    )


def loaded_policy() -> LoadedPolicy:
    """Return the rules that are shipped, and what people have added in the data folder.

    Raises PolicyError if a file is not valid.
    """
    added = settings.DATA / "policy.yaml"
    return load_policy(DEFAULT_POLICY, *([added] if added.exists() else []))


def grants(calls: Iterable[GrantedCall]) -> tuple[Grant, ...]:
    """Return what people allowed for this run or for ever, as the policy compares it."""
    return tuple(
        Grant(call.tool, canonical(call.input), tuple(sorted(call.scripts.items())))
        for call in calls
    )
