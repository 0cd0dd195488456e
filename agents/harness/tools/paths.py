"""Opens files inside a folder, and nowhere else.

Each component of a path is opened relative to the folder before it, and a symbolic link is never
followed. So there is no moment between a check and a use in which a component could be exchanged
for a link that leads out (compare RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS of openat2, which is
Linux only).
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from agents.harness.errors import ToolError

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK opening a named pipe would wait for somebody who writes to it.
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def parts_inside(root: Path, path: str) -> tuple[str, ...]:
    """The components of `path` below `root`; none of them for `root` itself.

    Raises ToolError if `path` is empty, has a NUL in it, or leads out of `root` as it is written.
    """
    if not path.strip() or "\0" in path:
        raise ToolError("The path is empty or not valid.")
    written = os.path.normpath(path)
    if written.startswith("/"):
        try:
            written = str(PurePosixPath(written).relative_to(root))
        except ValueError as error:
            raise ToolError(_outside(path)) from error
    parts = PurePosixPath(written).parts
    if ".." in parts:
        raise ToolError(_outside(path))
    return parts


def _outside(path: str) -> str:
    return f"{path} is outside the workspace. Give a path relative to the workspace."


@contextlib.contextmanager
def folder_inside(root: Path, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
    """A descriptor of the folder at `parts` below `root`; with `create`, missing ones are made.

    Raises ToolError if it does not exist, is not a folder, or there is a link on the way.
    """
    current = os.open(root, _OPEN_FOLDER)
    try:
        for depth, name in enumerate(parts):
            try:
                inner = _open_folder(current, name, create=create)
            except OSError as error:
                where = "/".join(parts[: depth + 1])
                raise ToolError(explain(error, where, folder=current, name=name)) from error
            os.close(current)
            current = inner
        yield current
    finally:
        os.close(current)


def _open_folder(parent: int, name: str, *, create: bool) -> int:
    try:
        return os.open(name, _OPEN_FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):  # somebody made it in this moment
        os.mkdir(name, dir_fd=parent)
    return os.open(name, _OPEN_FOLDER, dir_fd=parent)


def read_inside(root: Path, parts: tuple[str, ...], *, most_bytes: int) -> bytes:
    """The content of a regular file, at most `most_bytes` of it.

    Raises ToolError if it cannot be read.
    """
    if not parts:
        raise ToolError("That is a folder; use list_files to look into it.")
    with folder_inside(root, parts[:-1]) as folder:
        return read_at(folder, parts[-1], shown="/".join(parts), most_bytes=most_bytes)


def read_at(folder: int, name: str, *, shown: str, most_bytes: int) -> bytes:
    """The content of the regular file `name` in an open folder; `shown` is its name in errors."""
    try:
        fd = os.open(name, _OPEN_FILE, dir_fd=folder)
    except OSError as error:
        raise ToolError(explain(error, shown, folder=folder, name=name)) from error
    try:
        kind = os.fstat(fd).st_mode
        if stat.S_ISDIR(kind):
            raise ToolError(f"{shown} is a folder; use list_files to look into it.")
        if not stat.S_ISREG(kind):
            raise ToolError(f"{shown} is not a regular file.")
        with open(fd, "rb", closefd=False) as file:
            return file.read(most_bytes)
    except OSError as error:
        raise ToolError(explain(error, shown, folder=folder, name=name)) from error
    finally:
        os.close(fd)


def write_inside(root: Path, parts: tuple[str, ...], content: bytes) -> None:
    """Put `content` in the place of a file at once, keeping its mode; missing folders are made.

    Raises ToolError if there is a link, a folder or something else of that name.
    """
    if not parts:
        raise ToolError("That is a folder, not a file.")
    *folders, name = parts
    with folder_inside(root, tuple(folders), create=True) as folder:
        mode = _mode_of_file(folder, name, shown="/".join(parts))
        draft = f".{secrets.token_hex(6)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(draft, flags, 0o666, dir_fd=folder), "wb") as file:  # noqa: PTH123
                file.write(content)
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
            # A name that has become a link meanwhile is replaced, not followed.
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise ToolError(explain(error, "/".join(parts), folder=folder, name=name)) from error


def _mode_of_file(folder: int, name: str, *, shown: str) -> int | None:
    """The permission bits of a regular file; None if there is nothing of that name."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(explain(error, shown, folder=folder, name=name)) from error
    if stat.S_ISLNK(found.st_mode):
        raise ToolError(_link(shown, folder, name))
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{shown} is a folder or a special file; it cannot be written.")
    return stat.S_IMODE(found.st_mode)


def explain(error: OSError, shown: str, *, folder: int, name: str) -> str:
    """Say why `name` in the open `folder` cannot be used, and what to do."""
    # A link is ELOOP for a file and ENOTDIR for a folder.
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK) and is_link(folder, name):
        return _link(shown, folder, name)
    match error.errno:
        case errno.ENOENT:
            return f"{shown} does not exist."
        case errno.ENOTDIR:
            return f"{shown} is not a folder."
        case errno.EACCES | errno.EPERM:
            return f"{shown} may not be accessed: permission denied."
        case errno.ENAMETOOLONG:
            return f"{shown[:80]}... is too long for a name."
        case _:
            return f"{shown}: {error.strerror}."


def is_link(folder: int, name: str) -> bool:
    """Whether `name` in the open `folder` is a symbolic link."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode)


def _link(shown: str, folder: int, name: str) -> str:
    try:
        target = os.readlink(name, dir_fd=folder)
    except OSError:
        target = "?"
    return (
        f"{shown} is a symbolic link to {target}; links are not followed. "
        "If the target is in the workspace, use its own path."
    )
