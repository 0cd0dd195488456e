"""Copies of files that git does not have, such as `.env`, from a local repository into a worktree.

They are copied, never linked, so that an agent cannot change the original; readable by their owner
only; excluded from git on this machine, and refused by whatever commits (see `saves.py`).
"""

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath

from agents.workspaces.locks import locked
from agents.workspaces.records import Worktree

MAX_BYTES = 1_000_000  # of one file: settings, not data
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BEGIN = "# Copies of local files, made by Pullcord\n"


def copy_files(repository: Path, worktree: Worktree, names: Sequence[str]) -> list[str]:
    """Copy these files of the folder `repository`; return a sentence for each that was not copied.

    What is in the worktree already (a commit has it, or an earlier call has copied it) stays.
    """
    exclude(worktree.git_dir, names)
    problems = []
    for name in names:
        problem = _copy(repository, worktree.path, PurePosixPath(name))
        if problem:
            problems.append(f"{name} was not copied: {problem}.")
    return problems


def exclude(git_dir: Path, names: Sequence[str]) -> None:
    """Let no git on this machine take these files by itself."""
    if not names:
        return
    with locked(git_dir):
        file = git_dir / "info" / "exclude"
        before = file.read_text() if file.is_file() and not file.is_symlink() else ""
        missing = [
            line for name in names if (line := f"/{_escaped(name)}") not in before.split("\n")
        ]
        if missing:
            file.parent.mkdir(exist_ok=True)
            draft = file.with_name("exclude.new")
            draft.write_text(
                before + (_BEGIN if _BEGIN not in before else "") + "\n".join([*missing, ""])
            )
            draft.replace(file)


def _escaped(name: str) -> str:
    return "".join(f"\\{c}" if c in "*?[\\" else c for c in name)


def _copy(source: Path, target: Path, name: PurePosixPath) -> str:
    """Copy one file and return "", or say why not. No link is followed on either side."""
    with ExitStack() as stack:
        try:
            folder = _open_folder(stack, source, name.parts[:-1], make=False)
            content = _read(folder, name.name)
        except OSError as error:
            return f"it cannot be read ({error.strerror})"
        if content is None:
            return "it is no plain file, or larger than 1 MB"
        try:
            folder = _open_folder(stack, target, name.parts[:-1], make=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(name.name, flags, 0o600, dir_fd=folder)
        except FileExistsError:
            return ""
        except OSError as error:
            return f"it cannot be written ({error.strerror})"
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    return ""


def _open_folder(stack: ExitStack, top: Path, parts: Sequence[str], *, make: bool) -> int:
    folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, folder)
    for part in parts:
        if make:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
        folder = os.open(part, _FOLDER, dir_fd=folder)
        stack.callback(os.close, folder)
    return folder


def _read(folder: int, name: str) -> bytes | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        content = file.read(MAX_BYTES + 1)
    return content if len(content) <= MAX_BYTES else None
