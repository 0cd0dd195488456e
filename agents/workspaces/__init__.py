"""All git of the product: the hub, the runs' worktrees, diffs, merges, delivery to the user.

Plain synchronous Python; the worker calls it in a thread. What a caller needs is named here.
"""

from agents.workspaces.delivery import Delivery, DeliveryState, deliver
from agents.workspaces.diffs import Diff, FileDiff, diff
from agents.workspaces.errors import GitError, WorkspaceError
from agents.workspaces.git import REMOTE_VARIABLES, Author
from agents.workspaces.hub import Fetched, HubState, fetch_hub, take_over
from agents.workspaces.merges import Candidate, Conflict, land_merge, prepare_merge
from agents.workspaces.records import Worktree, find_worktree
from agents.workspaces.removal import (
    Leftover,
    LeftoverKind,
    leftovers,
    remove_remains,
    remove_worktree,
)
from agents.workspaces.repositories import Source, SourceKind, check_repository, create_first_commit
from agents.workspaces.saves import Saved, commit_all
from agents.workspaces.worktrees import PrivateGit, add_worktree, check_out, private_git

__all__ = [
    "REMOTE_VARIABLES",
    "Author",
    "Candidate",
    "Conflict",
    "Delivery",
    "DeliveryState",
    "Diff",
    "Fetched",
    "FileDiff",
    "GitError",
    "HubState",
    "Leftover",
    "LeftoverKind",
    "PrivateGit",
    "Saved",
    "Source",
    "SourceKind",
    "WorkspaceError",
    "Worktree",
    "add_worktree",
    "check_out",
    "check_repository",
    "commit_all",
    "create_first_commit",
    "deliver",
    "diff",
    "fetch_hub",
    "find_worktree",
    "land_merge",
    "leftovers",
    "prepare_merge",
    "private_git",
    "remove_remains",
    "remove_worktree",
    "take_over",
]
