"""Removes worktrees, never before all that an agent did in them is in the hub."""

import contextlib
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

from agents.workspaces.errors import WorkspaceError
from agents.workspaces.git import git
from agents.workspaces.hub import create_bare, take_ref
from agents.workspaces.records import (
    Worktree,
    find_record,
    is_unfinished,
    mark_for_removal,
    private_of,
)
from agents.workspaces.saves import commit_all
from agents.workspaces.secret_checks import BY_NAME
from agents.workspaces.trees import delete_tree, size_of
from agents.workspaces.worktrees import delete_worktree, private_git

KEPT_REFS = "refs/kept/"

_SHA = re.compile(r"\b[0-9a-f]{40}\b")
_MAX_REF_FILES = 1_000  # of one run; the folder is the agent's
_MAX_REF_FILE_BYTES = 100_000


class LeftoverKind(StrEnum):
    """What a folder among the worktrees is."""

    WORKTREE = "worktree"  # holds work; remove it with `remove_worktree`
    REMAINS = "remains"  # of an interrupted creation or removal: `remove_remains`
    FOREIGN = "foreign"  # nothing of ours: for a person to look at


@dataclass(frozen=True)
class Leftover:
    """A folder among the worktrees, for a report and for the janitor who knows the live runs."""

    path: Path
    kind: LeftoverKind
    worktree: Worktree | None
    size_bytes: int
    changed_at: float  # seconds since 1970: when its top folder, or the private one, last changed


def remove_worktree(worktree: Worktree, hub: Path) -> None:
    """Save what is not in the hub under `refs/kept/<name>`, then delete the worktree.

    Ignored files and files of secrets are not work and go with it. Raises WorkspaceError with code
    `unsaved`, and deletes nothing, if there is something that git cannot take.
    """
    if worktree.branch:
        sha = _save(worktree)
        name = f"{KEPT_REFS}{worktree.path.name}"
        if not _is_in_hub(hub, sha):
            take_ref(hub, worktree.git_dir, sha=sha, ref=f"{name}/{sha[:12]}")
        _keep_agents_commits(worktree, hub, name)
    mark_for_removal(worktree)
    delete_worktree(worktree.git_dir, worktree.path)


def _save(worktree: Worktree) -> str:
    """The sha of the commit that holds all of the worktree."""
    if not worktree.path.is_dir():  # somebody deleted it by hand
        return git("rev-parse", worktree.saved_ref, git_dir=worktree.git_dir).line
    saved = commit_all(worktree, "Keep what was not committed")
    work = [reason for reason in saved.skipped if not reason.endswith(BY_NAME)]
    if work:
        what = "; ".join(work[:5])
        message = f"{worktree.path} is kept, because this could not be saved: {what}."
        raise WorkspaceError(message, code="unsaved")
    return saved.sha


def remove_remains(clone: Path, path: Path) -> None:
    """Delete what an interrupted creation or removal left at `path`.

    Raises WorkspaceError if it is anything else.
    """
    if not is_unfinished(path):
        raise WorkspaceError(f"{path} is in use or not ours; it is kept.", code="unsaved")
    delete_worktree(clone, path)


def leftovers(root: Path, clone: Path, *, with_sizes: bool = True) -> list[Leftover]:
    """All folders among a project's worktrees, also those that only have private parts.

    The `clone` may lie among them; it is none. Without sizes, which take long, `size_bytes` is 0.
    """
    if not root.is_dir():
        return []
    names = {path.name for path in root.iterdir() if path != clone and path.name[0] != "."}
    private = root / ".private"
    names |= {path.name for path in private.iterdir()} if private.is_dir() else set()
    return [_leftover(root / name, with_size=with_sizes) for name in sorted(names)]


def _leftover(path: Path, *, with_size: bool) -> Leftover:
    worktree = find_record(path)
    kind = LeftoverKind.FOREIGN
    if worktree is not None:
        kind = LeftoverKind.WORKTREE
    elif is_unfinished(path):
        kind = LeftoverKind.REMAINS
    changed_at = 0.0
    for folder in (path, private_of(path)):
        with contextlib.suppress(FileNotFoundError):
            changed_at = max(changed_at, folder.lstat().st_mtime)
    return Leftover(path, kind, worktree, size_of(path) if with_size else 0, changed_at)


def _is_in_hub(hub: Path, sha: str) -> bool:
    answer = git("for-each-ref", "--count=1", f"--contains={sha}", git_dir=hub, ok=(0, 1, 128, 129))
    return answer.exit_code == 0 and bool(answer.stdout)


def _keep_agents_commits(worktree: Worktree, hub: Path, name: str) -> None:
    """Bring the agent's own commits and stashes into the hub, as `<name>/agent/...`.

    They lie in folders that the agent could write as it liked, so they are read by way of an
    empty repository of ours that borrows the objects, and checked on the way.
    """
    private = private_git(worktree)
    shas = [sha for sha in _agents_tips(worktree) if not _knows(worktree.git_dir, sha)]
    if not shas:
        return
    reader = worktree.private / f"reader-{secrets.token_hex(4)}"
    try:
        create_bare(reader)
        stores = [private.objects, private.common / "objects"]
        alternates = reader / "objects" / "info" / "alternates"
        alternates.write_text("".join(f"{store}\n" for store in stores))
        for sha in shas:
            take_ref(hub, reader, sha=sha, ref=f"{name}/agent/{sha[:12]}")
    except WorkspaceError as error:
        message = (
            f"{worktree.path} is kept: the agent's own commits are unreadable. {error.message}"
        )
        raise WorkspaceError(message, code="unsaved") from error
    finally:
        delete_tree(reader)


def _agents_tips(worktree: Worktree) -> list[str]:
    """What the agent's branches, tags and stashes point to."""
    private = private_git(worktree)
    files = list(islice(private.refs.rglob("*"), _MAX_REF_FILES + 1))
    if len(files) > _MAX_REF_FILES:
        raise WorkspaceError(f"{worktree.path} is kept: too many refs.", code="unsaved")
    found = [text for file in files for text in _SHA.findall(_beginning(file))[:1]]
    # Each line of a log is "before after name ...", and only the last stash has a ref.
    for line in _beginning(private.logs / "refs" / "stash").splitlines():
        found += _SHA.findall(line)[1:2]
    return [sha for sha in dict.fromkeys(found) if set(sha) != {"0"}]


def _beginning(file: Path) -> str:
    if file.is_symlink() or not file.is_file():
        return ""
    with file.open("rb") as opened:
        return opened.read(_MAX_REF_FILE_BYTES).decode("ascii", "replace")


def _knows(repository: Path, sha: str) -> bool:
    answer = git("cat-file", "-e", sha, git_dir=repository, ok=(0, 1, 128))
    return answer.exit_code == 0
