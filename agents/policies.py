"""The gate's view of one run: its places, its commands, and what people have allowed."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings

from agents.briefing import Brief
from agents.desk import Desk
from agents.harness.policy.context import Context, Grant
from board.actions.approvals import GrantedCall


def policy_context(brief: Brief, desk: Desk) -> Context:
    """Return what the policy may look at when it judges a call of this run."""
    commands = {*brief.checks, brief.setup_command} - {""}
    return Context(
        workspace=desk.worktree.path.resolve(),
        repository=desk.where.clone.resolve(),
        product_paths=(settings.DATA, settings.BASE_DIR),
        product_urls=(settings.PUBLIC_URL,),
        sandbox=desk.shell.sandbox_level,
        exact_commands=frozenset(commands),
    )


def grants(calls: Iterable[GrantedCall]) -> tuple[Grant, ...]:
    """Return what people allowed for this run or for ever, as the policy compares it."""
    return tuple(
        Grant(call.tool, canonical(call.input), tuple(sorted(call.scripts.items())))
        for call in calls
    )


def canonical(arguments: Mapping[str, Any]) -> str:
    """Return an input in the one way in which equal inputs are equal text."""
    return json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
