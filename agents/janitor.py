"""Removes worktrees that nobody needs any more, so that failed and cancelled runs do not fill the disk.

Each machine looks after its own. What an agent did is in the hub before its folder goes (see
`workspaces/removal.py`): all that is lost are files that git ignores. What cannot be saved stays.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from agents.database import Database
from agents.desk import places
from agents.workspaces.errors import WorkspaceError
from agents.workspaces.locks import holding
from agents.workspaces.removal import (
    Leftover,
    LeftoverKind,
    leftovers,
    remove_remains,
    remove_worktree,
)
from board.actions.retention import reasons_to_keep

log = logging.getLogger(__name__)

FIRST_SECONDS = 600.0  # after a start there is other work
TIDY_SECONDS = 3600.0
SETTLED_SECONDS = 24 * 3600.0  # what is no run's work may be under way; after a day it is not

Reasons = Callable[[str, list[str]], dict[str, str]]


@dataclass(frozen=True)
class Found:
    """A folder among a project's worktrees, and why it is kept: "" if nobody needs it."""

    leftover: Leftover
    kept_because: str


def project_keys() -> list[str]:
    """Return the projects that have worktrees on this machine."""
    return sorted(path.parent.name for path in Path(settings.WORKSPACES).glob("*/clone.git"))


def reasons(key: str, branches: list[str]) -> dict[str, str]:
    """Return what the board says of worktrees on these branches. Reads the database."""
    return reasons_to_keep(key, branches, days=settings.WORKTREE_DAYS)


def survey(key: str, ask: Reasons = reasons, *, with_sizes: bool = True) -> list[Found]:
    """Return all folders among the project's worktrees, with why each is kept."""
    where = places(settings.HUBS, settings.WORKSPACES, key)
    found = leftovers(where.root, where.clone, with_sizes=with_sizes)
    branches = [each.worktree.branch for each in found if each.worktree is not None]
    kept = ask(key, [branch for branch in branches if branch])
    return [Found(each, _why_kept(each, kept)) for each in found]


def _why_kept(leftover: Leftover, kept: dict[str, str]) -> str:
    if leftover.kind is LeftoverKind.FOREIGN:
        return "not made by Pullcord"
    branch = leftover.worktree.branch if leftover.worktree is not None else ""
    if branch:
        # Of another database perhaps, which somebody has taken by mistake.
        return kept.get(branch, "no run of it is known")
    if time.time() - leftover.changed_at < SETTLED_SECONDS:
        return "it may be in use: it changed today"
    return ""


def tidy(key: str, ask: Reasons = reasons) -> list[Path]:
    """Remove what nobody needs, and return what was removed. Only one process of a machine does it at once."""
    where = places(settings.HUBS, settings.WORKSPACES, key)
    removed = []
    with holding(where.root / ".janitor.lock", timeout_seconds=0):
        for found in survey(key, ask, with_sizes=False):
            leftover = found.leftover
            if found.kept_because or _is_wanted_now(key, leftover, ask):
                continue
            try:
                if leftover.worktree is not None:
                    remove_worktree(leftover.worktree, where.hub)
                else:
                    remove_remains(where.clone, leftover.path)
            except (WorkspaceError, OSError) as error:
                log.warning("%s cannot be removed: %s", leftover.path, error)
            else:
                log.info("Removed %s: nobody needs it any more", leftover.path)
                removed.append(leftover.path)
    return removed


def _is_wanted_now(key: str, leftover: Leftover, ask: Reasons) -> bool:
    """Ask again just before: removing the ones before may have taken minutes."""
    branch = leftover.worktree.branch if leftover.worktree is not None else ""
    return bool(branch and ask(key, [branch]).get(branch, "unknown"))


async def tidy_forever(db: Database) -> None:
    """Tidy all projects of this machine once an hour; the slow part is in a thread."""
    loop = asyncio.get_running_loop()

    def ask(key: str, branches: list[str]) -> dict[str, str]:
        return asyncio.run_coroutine_threadsafe(db(reasons, key, branches), loop).result()

    await asyncio.sleep(FIRST_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311
    while True:
        for key in await asyncio.to_thread(project_keys):
            try:
                await asyncio.to_thread(tidy, key, ask)
            except Exception as error:  # noqa: BLE001  a folder that is busy now is looked at in an hour
                log.info("The worktrees of %s were not tidied: %s", key, error)
        await asyncio.sleep(TIDY_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311
