"""The hub: one bare repository per project that only the product's own code touches.

Its branches: `refs/heads/<target>` with what has been merged, `refs/heads/cards/*` with the work
of the cards, `refs/remotes/source/*` as a copy of what the user's repository holds,
`refs/kept/*` for work that was saved but handed in by nobody.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agents.workspaces.errors import GitError, WorkspaceError
from agents.workspaces.git import ZERO_SHA, branches_of, git, is_ancestor, move_ref
from agents.workspaces.locks import locked
from agents.workspaces.news import has_nothing_new
from agents.workspaces.refs import tip
from agents.workspaces.repositories import (
    check_target_name,
    choose_target,
    folder_of,
    open_local,
    unreachable,
)
from agents.workspaces.sources import Address, read_address

FETCH_TIMEOUT_SECONDS = 1800.0  # a first fetch of a large repository over a slow line

SOURCE_REFS = "refs/remotes/source/"

# The bare repositories that we make. Their configuration is never changed by what they hold.
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = true
\thooksPath = /dev/null
\tfsmonitor = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[uploadpack]
\tallowAnySHA1InWant = true
[user]
\tname = Agent
\temail = agent@localhost
[advice]
\tdetachedHead = false
"""
# The highest place for attributes: no path of any commit is ever run through a filter.
_ATTRIBUTES = "* -filter\n"

OnProgress = Callable[[int, str], None]


class HubState(StrEnum):
    """How the hub's target branch stands to the same branch of the user's repository."""

    CURRENT = "current"  # equal
    AHEAD = "ahead"  # the hub holds merges that are not delivered yet
    DIVERGED = "diverged"  # as ahead, and the user's branch has new commits: merge them in


@dataclass(frozen=True)
class Fetched:
    """What `fetch_hub` found."""

    state: HubState
    target_sha: str
    source_sha: str


def fetch_hub(
    hub: Path,
    repository: str,
    target_branch: str,
    *,
    on_progress: OnProgress | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = FETCH_TIMEOUT_SECONDS,
) -> Fetched:
    """Create the hub from `repository`, or bring it up to date; nothing of it is executed.

    The user's new commits are taken into the hub's target branch when it only has to move
    forward. Killed at any moment, it can be called again. A hub appears whole or not at all.
    Raises WorkspaceError.
    """
    variables = environment or {}
    check_target_name(target_branch)
    address = read_address(repository, home=variables.get("HOME", ""))
    # Looked at also where nothing is new: a folder that has become something else is not fetched from.
    source = None if address.path is None else folder_of(address.path)
    progress = _Progress(on_progress or (lambda _percent, _text: None))
    with locked(hub, "fetch", timeout_seconds=timeout_seconds):
        if hub.exists():
            if source is None or not has_nothing_new(source, hub, source_refs=SOURCE_REFS):
                _fetch(hub, address, variables, progress, timeout_seconds)
            fetched = _follow_source(hub, target_branch)
        else:
            fresh = hub.with_name(f".{hub.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            try:
                create_bare(fresh)
                _fetch(fresh, address, variables, progress, timeout_seconds)
                fetched = _follow_source(fresh, target_branch)
                fresh.rename(hub)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    progress.report(100, "Ready")
    return fetched


def create_bare(path: Path) -> None:
    """Make an empty bare repository of ours at `path`."""
    path.mkdir(parents=True)
    git("init", "--quiet", "--bare", "--template=", git_dir=path)
    (path / "info").mkdir(exist_ok=True)
    (path / "logs").mkdir(exist_ok=True)
    restore_configuration(path)


def restore_configuration(path: Path) -> bool:
    """Put our configuration back where it differs; say whether it did."""
    wanted = {"config": _CONFIG, "info/attributes": _ATTRIBUTES}
    changed = False
    for name, text in wanted.items():
        file = path / name
        if file.is_symlink() or not file.is_file() or file.read_text(errors="replace") != text:
            file.unlink(missing_ok=True)
            file.write_text(text)
            changed = True
    return changed


def take_over(hub: Path, clone: Path, *, sha: str, branch: str) -> str:
    """Bring the commit `sha` of a worker's `clone` into the hub as `branch`, checked by fsck.

    No other ref is touched. Raises WorkspaceError with code `branch_moved` if the hub's branch
    holds other work, and `unsafe_objects` if git finds the objects malformed.
    """
    take_ref(hub, clone, sha=sha, ref=f"refs/heads/{branch}")
    return sha


def take_ref(hub: Path, repository: Path, *, sha: str, ref: str) -> None:
    """As `take_over`, for any `ref` of the hub."""
    with locked(hub):
        try:
            git(
                "fetch",
                "--no-tags",
                "--no-write-fetch-head",
                "--",
                str(repository),
                f"{sha}:{ref}",
                git_dir=hub,
                configuration={"transfer.fsckObjects": "true"},
            )
        except GitError as failure:
            raise _not_taken(failure, ref) from failure


def _not_taken(failure: GitError, ref: str) -> WorkspaceError:
    if "non-fast-forward" in failure.stderr or "rejected" in failure.stderr:
        message = f"{ref.removeprefix('refs/heads/')} holds other work; nothing was changed."
        return WorkspaceError(message, code="branch_moved")
    if "fsck error" in failure.stderr or "in packed object" in failure.stderr:
        message = f"git refused the work as malformed: {failure.message.partition(': ')[2]}"
        return WorkspaceError(message, code="unsafe_objects")
    return failure


def _fetch(
    hub: Path,
    address: Address,
    variables: Mapping[str, str],
    progress: "_Progress",
    timeout_seconds: float,
) -> None:
    arguments = [
        "fetch",
        "--progress",
        "--prune",
        "--no-tags",
        "--no-write-fetch-head",
        "--update-shallow",
    ]
    if address.path is not None:
        open_local(address.path)  # for its clear messages
        # The person named this folder, so it may belong to another user of the machine.
        arguments.append("--upload-pack=git -c safe.directory=* upload-pack")
    try:
        git(
            *arguments,
            "--",
            address.location,
            f"+refs/heads/*:{SOURCE_REFS}*",
            "+refs/tags/*:refs/tags/*",
            git_dir=hub,
            configuration=address.configuration,
            variables=address.variables(variables),
            protocols=address.protocols,
            timeout_seconds=timeout_seconds,
            on_output=progress.read,
        )
    except GitError as failure:
        raise unreachable(address, failure) from failure


def _follow_source(hub: Path, target: str) -> Fetched:
    """Move the hub's target branch forward to the user's, if it only has to move forward."""
    source = tip(hub, f"{SOURCE_REFS}{target}")
    if source is None:
        names = branches_of(hub, SOURCE_REFS)
        if not names:
            message = "The repository has no commits yet. Make a first one, then try again."
            raise WorkspaceError(message, code="no_commits", field="repository")
        choose_target(target, "", names)
        raise AssertionError(target)  # it is among the names, or the line above raises
    ref = f"refs/heads/{target}"
    current = tip(hub, ref)
    if current is None:
        git("symbolic-ref", "HEAD", ref, git_dir=hub)
    if current == source:
        return Fetched(HubState.CURRENT, source, source)
    if current is not None and is_ancestor(hub, source, current):
        return Fetched(HubState.AHEAD, current, source)
    if current is not None and not is_ancestor(hub, current, source):
        return Fetched(HubState.DIVERGED, current, source)
    with locked(hub):
        moved = move_ref(hub, ref, new=source, old=current or ZERO_SHA, reason="fetched")
    if not moved:  # a merge landed meanwhile
        return _follow_source(hub, target)
    return Fetched(HubState.CURRENT, source, source)


class _Progress:
    """Turns git's progress lines into a percentage that never falls."""

    _LINE = re.compile(
        rb"(Counting|Compressing|Receiving|Resolving) (?:objects|deltas): +(\d+)%[^\r\n]*[\r\n]"
    )
    _PHASES: Mapping[bytes, tuple[int, int, str]] = {
        b"Counting": (0, 5, "Counting objects"),
        b"Compressing": (5, 10, "Compressing objects"),
        b"Receiving": (10, 80, "Receiving objects"),
        b"Resolving": (80, 99, "Resolving deltas"),
    }

    def __init__(self, tell: OnProgress) -> None:
        self._tell = tell
        self._last = -1
        self._rest = b""

    def read(self, chunk: bytes) -> None:
        """Take a chunk of git's output, which may end in the middle of a line."""
        text = self._rest + chunk
        end = 0
        for match in self._LINE.finditer(text):
            low, high, words = self._PHASES[match[1]]
            self.report(low + (high - low) * int(match[2]) // 100, words)
            end = match.end()
        self._rest = text[end:][-200:]

    def report(self, percent: int, text: str) -> None:
        """Tell it if it is more than before."""
        if percent > self._last:
            self._last = percent
            self._tell(percent, text)
