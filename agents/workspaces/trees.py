"""Deletes folders that an agent has written, and measures them."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any


def delete_tree(path: Path) -> None:
    """Delete the folder `path` if it exists, also where folders in it refuse to be written."""
    if path.is_symlink():  # never what we made
        path.unlink()
    elif path.exists():
        shutil.rmtree(path, onerror=_open_up_and_retry)


def _open_up_and_retry(operation: Callable[..., Any], name: str, _error: Any) -> None:
    """Module caches are often read-only folders; the owner may change that."""
    for folder in (Path(name).parent, Path(name)):
        if stat.S_ISDIR(folder.lstat().st_mode):
            folder.chmod(stat.S_IRWXU)
    if operation is os.unlink:
        os.unlink(name)  # noqa: PTH108  a name from os is a str
    elif operation is os.rmdir:
        os.rmdir(name)  # noqa: PTH106
    else:  # it could not be listed
        shutil.rmtree(name)


def size_of(path: Path) -> int:
    """The bytes that `path` takes up on disk; links are not followed."""
    total = 0
    for folder, _, names in os.walk(path, onerror=None):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH118
            except FileNotFoundError:
                continue
    return total
