"""A project's local files, such as `.env`, in a worktree: copied, and their values known."""

from collections.abc import Callable, Sequence

from agents.harness.redaction import Redactor
from agents.harness.secret_files import read_secrets
from agents.known_secrets import learn, learn_from_worktree
from agents.workspaces.copies import copy_files
from agents.workspaces.errors import WorkspaceError
from agents.workspaces.records import Worktree
from agents.workspaces.sources import read_address


def bring_local_files(
    worktree: Worktree,
    repository: str,
    names: Sequence[str],
    *,
    redactor: Redactor,
    say: Callable[[str], None],
) -> None:
    """Copy the project's local files into the worktree and learn all secrets that lie in it.

    `say` hears what could not be copied. Nothing is copied where the repository is no local folder.
    """
    if names:
        try:
            folder = read_address(repository).path
        except WorkspaceError:
            folder = None
        problems = [] if folder is None else copy_files(folder, worktree, names)
        for problem in problems:
            say(problem)
        learn(redactor, *read_secrets(worktree.path, names))
    learn_from_worktree(redactor, worktree.path)
