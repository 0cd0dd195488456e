"""What must not become part of a commit: files that hold secrets, by their name or by their content.

What a commit of the user holds already is the user's decision and stays as it is.
"""

import os
import stat
from pathlib import Path

from agents.harness.policy.secrets import is_secret_name
from agents.harness.redaction import Redactor
from agents.workspaces.errors import GitError
from agents.workspaces.git import git
from agents.workspaces.records import Worktree

MAX_BYTES = 5_000_000  # of one file that is looked through
BY_NAME = ": named like a file of secrets"  # the end of why such a file is left out
_MORE_EXAMPLES = (".defaults", ".example", ".sample", ".template", ".dist")


class SecretCheck:
    """Looks at the files of one worktree before they are committed on top of `parent`."""

    def __init__(self, worktree: Worktree, parent: str, redactor: Redactor) -> None:
        self._worktree = worktree
        self._parent = parent
        self._redactor = redactor

    def of_new(self, path: bytes) -> bytes:
        """Why a new file is left out, as `path: reason`, or b""."""
        name = os.fsdecode(path.rpartition(b"/")[2])
        if is_secret_name(name) and not name.casefold().endswith(_MORE_EXAMPLES):
            return path + BY_NAME.encode()
        found = self._redactor.known_in(path) or self._redactor.found_in(self._content(path))
        return path + f": holds a secret ({found})".encode() if found else b""

    def of_changed(self, path: bytes) -> bytes:
        """Why a file that is committed already keeps its committed content, or b""."""
        content = self._content(path)
        found = self._redactor.known_in(content)
        if not found or self._redactor.known_in(self._committed(path)):
            return b""
        return path + f": now holds a secret ({found})".encode()

    def _content(self, path: bytes) -> bytes:
        """The file's first bytes, or where a link points to."""
        file = Path(self._worktree.path, os.fsdecode(path))
        try:
            if file.is_symlink():
                return os.fsencode(file.readlink())
            handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            is_plain = stat.S_ISREG(os.fstat(handle).st_mode)
            return os.read(handle, MAX_BYTES) if is_plain else b""
        finally:
            os.close(handle)

    def _committed(self, path: bytes) -> bytes:
        try:
            return git(
                "cat-file", "blob", f"{self._parent}:{os.fsdecode(path)}",
                git_dir=self._worktree.git_dir,
            ).stdout  # fmt: skip
        except GitError:
            return b""
