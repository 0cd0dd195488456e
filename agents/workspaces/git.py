"""Runs git with a configuration of our own. No other module of the product runs git.

A repository may carry hooks, filters, a file-system monitor, an attributes file or a URL rewrite
that would execute a program. Here every command names its repository (nothing is discovered from
the current folder), reads neither the system's nor a person's configuration, and overrides what
the repository's own configuration could start.
"""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents import processes
from agents.workspaces.errors import GitError, WorkspaceError

TIMEOUT_SECONDS = 60.0  # local commands; they take milliseconds
CHECKOUT_TIMEOUT_SECONDS = 600.0  # 100,000 files on a slow disk
# Commands that change nothing, so that one that outlives its worker for a moment does no harm.
_ONLY_READ = frozenset(
    (
        "cat-file", "check-attr", "check-ref-format", "diff-files", "diff-index", "diff-tree",
        "for-each-ref", "ls-files", "ls-tree", "merge-base", "rev-parse",
    )
)  # fmt: skip
ZERO_SHA = "0" * 40  # how update-ref spells "does not exist yet"

_KEEP_BYTES = 256 * 1024 * 1024  # answers are parsed, so none may lose its middle

LOCAL_PROTOCOLS = "file"
REMOTE_PROTOCOLS = "https:http:ssh:git"

# Variables of the server that git may need in order to reach a remote: keys, proxies, certificates.
REMOTE_VARIABLES = (
    "HOME",
    "USER",
    "SSH_AUTH_SOCK",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)

# Git gives these the precedence of `-c`: above anything that a repository says about itself.
_CONFIGURATION = {
    # What would start a program.
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "true",
    "core.sshCommand": "ssh -oBatchMode=yes",
    "core.askPass": "true",
    "core.gitProxy": "",
    "core.alternateRefsCommand": "true",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "push.gpgSign": "false",
    "log.showSignature": "false",
    # What would reach further than the command says.
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "fetch.prune": "false",
    "fetch.pruneTags": "false",
    "fetch.writeCommitGraph": "false",
    "push.followTags": "false",
    # What would make an answer hard to read or a tree unsafe to check out elsewhere.
    "core.quotePath": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "index.skipHash": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "core.fsyncMethod": "batch",  # one flush for all objects of a command, not one for each
    "color.ui": "false",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "checkout.workers": "2",
}

_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone names the program that fetches what is missing
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_PROTOCOL_FROM_USER": "0",
}


@dataclass(frozen=True)
class Author:
    """Who a commit is by."""

    name: str
    email: str


PRODUCT = Author("Pullcord", "pullcord@localhost")


@dataclass(frozen=True)
class GitResult:
    """What git answered."""

    exit_code: int
    stdout: bytes
    stderr: str
    is_cut: bool = False

    @property
    def line(self) -> str:
        """The answer of a command that prints one line."""
        return self.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def git(
    *arguments: str,
    git_dir: Path | None,
    work_tree: Path | None = None,
    index: Path | None = None,
    input: bytes | None = None,  # noqa: A002  the name that `processes.run` gives it
    ok: Sequence[int] = (0,),
    configuration: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    protocols: str = LOCAL_PROTOCOLS,
    author: Author = PRODUCT,
    timeout_seconds: float = TIMEOUT_SECONDS,
    enough_bytes: int | None = None,
    on_output: Callable[[bytes], None] | None = None,
    cancel: threading.Event | None = None,
) -> GitResult:
    """Run `git arguments` on the repository `git_dir` and return its answer.

    `git_dir` None is for commands that need no repository. `ok` are the exit codes that are
    answers; any other raises GitError. Of an answer longer than `enough_bytes` only the beginning
    is waited for.
    """
    environment = {
        **processes.base_environment(),
        **(variables or {}),
        **_ENVIRONMENT,
        **_configured({**_CONFIGURATION, **(configuration or {})}),
        **_identity(author),
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_DIR": str(git_dir) if git_dir is not None else "/nonexistent",
    }
    if work_tree is not None:
        environment["GIT_WORK_TREE"] = str(work_tree)
    if index is not None:
        environment["GIT_INDEX_FILE"] = str(index)
    try:
        result = processes.run(
            ["git", *arguments],
            cwd=work_tree or Path("/"),
            env=environment,
            timeout_seconds=timeout_seconds,
            input=input,
            keep_bytes=2 * (enough_bytes or _KEEP_BYTES),  # half of it is for the beginning
            max_output_bytes=enough_bytes or _KEEP_BYTES,
            on_output=on_output,
            cancel=cancel,
            die_with_parent=arguments[0] not in _ONLY_READ,
        )
    except OSError as error:
        message = "git could not be started. Install git 2.38 or later on the server."
        raise WorkspaceError(message, code="git_missing") from error
    stderr = result.stderr.decode("utf-8", "replace")
    if enough_bytes is not None and result.ended_by == "output":
        return GitResult(0, result.stdout, stderr, is_cut=True)
    if result.exit_code is None or result.exit_code not in ok:
        raise GitError(
            arguments[0], exit_code=result.exit_code, ended_by=result.ended_by, stderr=stderr
        )
    return GitResult(result.exit_code, result.stdout, stderr)


def _configured(values: Mapping[str, str]) -> dict[str, str]:
    """`values` as the variables through which git takes configuration without arguments."""
    variables = {"GIT_CONFIG_COUNT": str(len(values))}
    for number, (key, value) in enumerate(values.items()):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def _identity(author: Author) -> dict[str, str]:
    name = _clean_identity(author.name) or PRODUCT.name
    email = _clean_identity(author.email) or PRODUCT.email
    return {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
    }


def _clean_identity(text: str) -> str:
    """`text` without what git refuses in a name; it also strips punctuation at both ends."""
    return re.sub(r"[\x00-\x1f\x7f<>]", "", text).strip(" .,:;\"'\\")


def resolve(git_dir: Path, name: str) -> str | None:
    """The sha of the commit that `name`, a sha or a full ref, points to; None if there is none."""
    question = f"{name}^{{commit}}"
    answer = git("rev-parse", "--verify", "--quiet", question, git_dir=git_dir, ok=(0, 1, 128))
    return answer.line if answer.exit_code == 0 else None


def is_ancestor(git_dir: Path, older: str, newer: str) -> bool:
    """Whether `newer` contains `older`."""
    answer = git("merge-base", "--is-ancestor", older, newer, git_dir=git_dir, ok=(0, 1))
    return answer.exit_code == 0


def move_ref(git_dir: Path, ref: str, *, new: str, old: str, reason: str) -> bool:
    """Point `ref` from `old` to `new`; False if it does not point to `old` any more."""
    try:
        git("update-ref", "-m", reason, ref, new, old, git_dir=git_dir)
    except GitError as failure:
        # "but expected" and "reference already exists" mean that somebody was first.
        if resolve(git_dir, ref) != (None if old == ZERO_SHA else old):
            return False
        raise failure from None
    return True


def commit_tree(
    git_dir: Path, tree: str, parents: Sequence[str], *, message: str, author: Author
) -> str:
    """Make a commit that nothing points to yet; return its sha."""
    text = message.replace("\0", "").encode("utf-8", "replace").strip() or b"Save"
    arguments = [argument for parent in parents for argument in ("-p", parent)]
    answer = git(
        "commit-tree", tree, *arguments, git_dir=git_dir, input=text + b"\n", author=author
    )
    return answer.line


def branches_of(git_dir: Path, prefix: str = "refs/heads/") -> list[str]:
    """The branches below `prefix`, without it, sorted."""
    answer = git("for-each-ref", "--format=%(refname)", prefix, git_dir=git_dir)
    names = answer.stdout.decode("utf-8", "replace").splitlines()
    return [name.removeprefix(prefix) for name in names]


def readable_path(path: bytes) -> str:
    """`path` as text that can be stored and shown: UTF-8, other bytes and controls escaped."""
    text = path.decode("utf-8", "backslashreplace")
    return re.sub(r"[\x00-\x1f\x7f]", lambda m: m[0].encode("unicode_escape").decode(), text)
