"""Merges a card's branch into the target inside the hub; no working tree is touched.

A merge has two halves, so that the acceptance checks can run on the merged tree in between:
`prepare_merge` makes the commit, `land_merge` moves the target to it if nothing else has.
"""

from dataclasses import dataclass
from pathlib import Path

from agents.workspaces.errors import GitError, WorkspaceError
from agents.workspaces.git import (
    Author,
    commit_tree,
    git,
    is_ancestor,
    move_ref,
    readable_path,
    resolve,
)
from agents.workspaces.locks import locked

MERGE_TIMEOUT_SECONDS = 300.0  # renames are searched for among all files

_CONFLICTS = 1  # exit code of merge-tree


@dataclass(frozen=True)
class Candidate:
    """A merge commit that nothing points to yet. `target_sha` is what the target was.

    `sha` equals `target_sha` when the target holds the branch already.
    """

    sha: str
    tree: str
    target_branch: str
    target_sha: str


@dataclass(frozen=True)
class Conflict:
    """Files that were changed on both sides, as readable paths."""

    files: tuple[str, ...]


def prepare_merge(
    hub: Path, target_branch: str, branch: str, *, message: str, author: Author
) -> Candidate | Conflict:
    """Merge `branch` (a name below refs/heads, a full ref or a sha) into the target, not yet landed.

    Always a merge commit with `message`, so that each card can be found and reverted as one.
    Raises WorkspaceError if one of them does not exist or they have no common history.
    """
    target_sha = _existing(hub, f"refs/heads/{target_branch}", target_branch)
    sha = resolve(hub, f"refs/heads/{branch}") or _existing(hub, branch, branch)
    if is_ancestor(hub, sha, target_sha):
        tree = git("rev-parse", f"{target_sha}^{{tree}}", git_dir=hub).line
        return Candidate(target_sha, tree, target_branch, target_sha)
    merged = _merge_trees(hub, target_sha, sha)
    if isinstance(merged, Conflict):
        return merged
    commit = commit_tree(hub, merged, [target_sha, sha], message=message, author=author)
    return Candidate(commit, merged, target_branch, target_sha)


def land_merge(hub: Path, candidate: Candidate) -> bool:
    """Move the target to `candidate`; False if the target has moved since it was prepared."""
    with locked(hub):
        return move_ref(
            hub,
            f"refs/heads/{candidate.target_branch}",
            new=candidate.sha,
            old=candidate.target_sha,
            reason="merge",
        )


def _existing(hub: Path, ref: str, name: str) -> str:
    sha = resolve(hub, ref)
    if sha is None:
        raise WorkspaceError(
            f"“{name}” does not exist in the project's hub.", code="no_such_branch"
        )
    return sha


def _merge_trees(hub: Path, ours: str, theirs: str) -> str | Conflict:
    """The merged tree's sha, or the files in conflict."""
    try:
        answer = git(
            "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs,
            git_dir=hub, ok=(0, _CONFLICTS), timeout_seconds=MERGE_TIMEOUT_SECONDS,
        )  # fmt: skip
    except GitError as failure:
        if "unrelated histories" in failure.stderr:
            message = "The branch has no commit in common with the target, so it cannot be merged."
            raise WorkspaceError(message, code="unrelated") from failure
        raise
    tree, *files = answer.stdout.rstrip(b"\0").split(b"\0")
    if answer.exit_code == _CONFLICTS:
        return Conflict(tuple(dict.fromkeys(readable_path(path) for path in files if path)))
    return tree.decode()
