"""Where an attempt begins: at the target, at the work that was sent back, or where it was saved last."""

from dataclasses import dataclass
from pathlib import Path

from agents.workspaces.errors import WorkspaceError
from agents.workspaces.git import PRODUCT, is_ancestor
from agents.workspaces.merges import Conflict, prepare_merge
from agents.workspaces.refs import tip


@dataclass(frozen=True)
class Start:
    """The commit `sha` to begin at; the attempt's changes are counted from `base_sha`."""

    sha: str
    base_sha: str
    conflicts: tuple[str, ...] = ()  # files in which the target contradicts what was sent back


def find_start(
    hub: Path, *, branch: str, base_sha: str, sent_back_sha: str, target_branch: str
) -> Start:
    """Find the start of an attempt on `branch` ("" if it has none yet) in the hub.

    Work that was sent back is joined with what the target has got since; where that conflicts, the
    attempt begins at the target, so that an agent can do its work again on the new state.
    Raises WorkspaceError if the hub lacks the target or the work.
    """
    saved = branch and tip(hub, f"refs/heads/{branch}")
    if saved:
        return Start(saved, base_sha)
    target = tip(hub, f"refs/heads/{target_branch}")
    if target is None:
        raise WorkspaceError(
            f"The hub has no branch {target_branch}. Fetch the repository again.",
            code="no_such_branch",
        )
    if not sent_back_sha:
        return Start(target, target)
    if is_ancestor(hub, target, sent_back_sha):
        return Start(sent_back_sha, base_sha)
    message = f"Take in what is new on {target_branch}"
    joined = prepare_merge(hub, target_branch, sent_back_sha, message=message, author=PRODUCT)
    if isinstance(joined, Conflict):
        return Start(target, target, joined.files)
    return Start(joined.sha, target)


def conflict_note(start: Start, *, target_branch: str, sent_back_sha: str) -> str:
    """Return what an agent must know that begins again because its earlier work conflicts."""
    files = ", ".join(start.conflicts[:20])
    return (
        f"Your earlier work could not be merged: since then {target_branch} has changed in the same "
        f"places of {files}. The worktree holds the new state of {target_branch}, without your work. "
        f"Do the task again on top of it. `git show {sent_back_sha}` and "
        f"`git diff {start.base_sha} {sent_back_sha}` show what you had."
    )
