"""Looks at the repository that a person named for a project, and says clearly what is wrong."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agents.workspaces.errors import GitError, WorkspaceError
from agents.workspaces.git import (
    PRODUCT,
    ZERO_SHA,
    Author,
    branches_of,
    commit_tree,
    git,
    move_ref,
)
from agents.workspaces.refs import is_branch_name
from agents.workspaces.sources import Address, read_address

LOOK_TIMEOUT_SECONDS = 15.0  # a person waits for the answer beside the form field

_NAMES_SHOWN = 12  # branches in a message
_RESERVED = "cards"  # below it lie the branches of the cards


class SourceKind(StrEnum):
    """What sort of repository it is, which decides how work is delivered to it."""

    BARE = "bare"
    CHECKOUT = "checkout"
    REMOTE = "remote"


@dataclass(frozen=True)
class Source:
    """A repository that was looked at and can be used. `location` is what to store."""

    kind: SourceKind
    location: str
    target_branch: str
    branches: tuple[str, ...]


@dataclass(frozen=True)
class LocalRepository:
    """A repository in a folder of the server. `git_dir` is shared by all its worktrees."""

    kind: SourceKind
    path: Path
    git_dir: Path


def check_repository(
    typed: str,
    target_branch: str = "",
    *,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = LOOK_TIMEOUT_SECONDS,
) -> Source:
    """Find out whether `typed` is a repository to work on; it is not changed.

    Without a `target_branch` the repository's own default branch is taken. `environment` holds
    the REMOTE_VARIABLES of the server.
    Raises WorkspaceError, with `field` saying where the message belongs.
    """
    variables = environment or {}
    address = read_address(typed, home=variables.get("HOME", ""))
    if target_branch:
        check_target_name(target_branch)
    if address.path is not None:
        local = open_local(address.path)
        default, branches = _local_branches(local.git_dir)
        kind, location = local.kind, str(local.path)
    else:
        default, branches = _remote_branches(address, variables, timeout_seconds)
        kind, location = SourceKind.REMOTE, typed.strip()
    if not branches:
        raise _without_commits(address, default)
    return Source(kind, location, choose_target(target_branch, default, branches), tuple(branches))


def check_target_name(name: str) -> None:
    """Raise WorkspaceError if `name` cannot be a project's target branch."""
    if not is_branch_name(name):
        message = f"“{name}” is not a valid name of a branch. Write it as git shows it."
        raise WorkspaceError(message, code="bad_branch", field="target_branch")
    if name == _RESERVED or name.startswith(f"{_RESERVED}/"):
        message = f"Branches below “{_RESERVED}/” belong to the cards. Choose another branch."
        raise WorkspaceError(message, code="bad_branch", field="target_branch")


def choose_target(wanted: str, default: str, branches: list[str]) -> str:
    """The branch to work on: `wanted` if it exists, else the repository's default.

    Raises WorkspaceError with the branches that do exist.
    """
    if wanted and wanted not in branches:
        shown = ", ".join(branches)
        if len(branches) > _NAMES_SHOWN:
            shown = f"{', '.join(branches[:_NAMES_SHOWN])} and {len(branches) - _NAMES_SHOWN} more"
        message = f"The repository has no branch “{wanted}”. It has: {shown}."
        raise WorkspaceError(message, code="no_such_branch", field="target_branch")
    for name in (wanted, default, "main", "master"):
        if name in branches:
            return name
    return branches[0]


def create_first_commit(
    typed: str,
    target_branch: str = "",
    *,
    author: Author = PRODUCT,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = LOOK_TIMEOUT_SECONDS,
) -> str:
    """Give a repository without commits an empty first one, and return the branch it is on.

    Files that lie in the folder stay as they are, not added. Only for when a person asks for it.
    Raises WorkspaceError, also if the repository has commits by now.
    """
    variables = environment or {}
    address = read_address(typed, home=variables.get("HOME", ""))
    if target_branch:
        check_target_name(target_branch)
    if address.path is None:
        message = "Push a first commit to the repository; only one in a folder can be started here."
        raise WorkspaceError(message, code="no_commits", field="repository")
    git_dir = open_local(address.path).git_dir
    default, branches = _local_branches(git_dir)
    if branches:
        message = "The repository has commits by now. Check it again."
        raise WorkspaceError(message, code="not_empty", field="repository")
    branch = target_branch or default or "main"
    tree = git("hash-object", "-t", "tree", "-w", "--stdin", git_dir=git_dir, input=b"").line
    sha = commit_tree(git_dir, tree, [], message="Start the repository", author=author)
    move_ref(git_dir, f"refs/heads/{branch}", new=sha, old=ZERO_SHA, reason="first commit")
    if branch != default:  # HEAD points to a branch that does not exist
        git("symbolic-ref", "HEAD", f"refs/heads/{branch}", git_dir=git_dir)
    return branch


def open_local(path: Path) -> LocalRepository:
    """The repository whose top folder or git directory is `path`; nothing above is searched.

    Raises WorkspaceError with field `repository`.
    """
    git_dir = folder_of(path)
    question = ("rev-parse", "--is-bare-repository", "--path-format=absolute", "--git-common-dir")
    try:
        is_bare, common = git(*question, git_dir=git_dir).line.split("\n", 1)
    except GitError as failure:
        message = f"{path} is not a repository that git can read. {failure.message}"
        raise _bad(message, "not_a_repository") from failure
    if is_bare == "true":
        return LocalRepository(SourceKind.BARE, path, Path(common))
    top = path.parent if git_dir == path and path.name == ".git" else path
    return LocalRepository(SourceKind.CHECKOUT, top, Path(common))


def folder_of(path: Path) -> Path:
    """Where the git directory of the repository at `path` is, by its looks.

    Raises WorkspaceError with field `repository`.
    """
    try:
        if not path.exists():
            raise _bad(f"There is no folder {path} on the server. Check the path.", "missing_path")
        if not path.is_dir():
            raise _bad(f"{path} is a file, not a folder with a repository.", "not_a_repository")
        git_dir = path / ".git" if (path / ".git").exists() else path
        is_candidate = git_dir != path or _looks_like_git_dir(path)
    except PermissionError as error:
        message = f"The server may not read {path}. Let its user read the folder."
        raise _bad(message, "not_readable") from error
    if not is_candidate:
        raise _not_a_repository(path)
    return git_dir


def _looks_like_git_dir(path: Path) -> bool:
    return all((path / name).exists() for name in ("HEAD", "objects", "refs"))


def _not_a_repository(path: Path) -> WorkspaceError:
    for folder in path.parents:
        if (folder / ".git").exists():
            message = f"{path} is a folder inside the repository {folder}. Use {folder}."
            return _bad(message, "inside_a_repository")
    message = f"{path} is not a git repository. Run “git init” there, or check the path."
    return _bad(message, "not_a_repository")


def _local_branches(git_dir: Path) -> tuple[str, list[str]]:
    """The branch that HEAD is on (also if it has no commit yet), and all branches."""
    head = git("symbolic-ref", "--quiet", "HEAD", git_dir=git_dir, ok=(0, 1)).line
    return head.removeprefix("refs/heads/"), branches_of(git_dir)


def _remote_branches(
    address: Address, variables: Mapping[str, str], timeout_seconds: float
) -> tuple[str, list[str]]:
    try:
        answer = git(
            "ls-remote",
            "--symref",
            "--",
            address.location,
            git_dir=None,
            configuration=address.configuration,
            variables=address.variables(variables),
            protocols=address.protocols,
            timeout_seconds=timeout_seconds,
        )
    except GitError as failure:
        raise unreachable(address, failure) from failure
    default = ""
    branches = []
    for line in answer.stdout.decode("utf-8", "replace").splitlines():
        value, _, name = line.partition("\t")
        if name == "HEAD" and value.startswith("ref: "):
            default = value.removeprefix("ref: ").removeprefix("refs/heads/")
        elif name.startswith("refs/heads/"):
            branches.append(name.removeprefix("refs/heads/"))
    return default, branches


# What the different servers and clients say, and what it means for a person.
_REMOTE_COMPLAINTS = (
    (
        r"could not read Username|Authentication failed|Permission denied|\b40[13]\b"
        r"|terminal prompts disabled|Access denied",
        "needs_sign_in",
        "{text} wants a sign-in that the server does not have. Give the server an SSH key or"
        " write the URL as https://user:token@host/name.git.",
    ),
    (
        r"Host key verification failed",
        "unknown_host",
        "The server does not know the host key of {text}. Add it to known_hosts with ssh-keyscan.",
    ),
    (
        r"Could not resolve host|Name or service not known|unable to look up"
        r"|nodename nor servname|Temporary failure in name resolution",
        "unreachable",
        "The host of {text} was not found. Check the spelling and the server's network.",
    ),
    (
        r"not found|does not exist|does not appear to be a git|Repository .* not exported"
        r"|not a git repository|\b404\b|not valid: is this a git repository",
        "not_a_repository",
        "There is no repository at {text}, or it wants a sign-in. Check the address.",
    ),
    (
        r"certificate|SSL|TLS",
        "unreachable",
        "The certificate of {text} could not be verified: {reason}.",
    ),
)


def unreachable(address: Address, failure: GitError) -> WorkspaceError:
    """The message for a `failure` to speak with the repository at `address`."""
    if failure.ended_by == "timeout":
        message = f"{address.text} did not answer in time. Check the address and the network."
        return _bad(message, "unreachable")
    reason = failure.message.partition(": ")[2]
    for pattern, code, text in _REMOTE_COMPLAINTS:
        if re.search(pattern, failure.stderr, re.IGNORECASE):
            return _bad(text.format(text=address.text, reason=reason), code)
    return _bad(f"{address.text} could not be reached: {reason}", "unreachable")


def _without_commits(address: Address, default: str) -> WorkspaceError:
    if address.path is None:
        message = f"{address.text} has no commits yet. Push a first one, then try again."
    else:
        message = (
            f"{address.path} has no commits yet. Commit your files there,"
            f" or let an empty first commit be made on “{default or 'main'}”."
        )
    return _bad(message, "no_commits")


def _bad(message: str, code: str) -> WorkspaceError:
    return WorkspaceError(message, code=code, field="repository")
