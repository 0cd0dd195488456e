"""Tells that a repository in a folder has nothing new for the hub, without asking git.

To fetch starts five processes, and each run fetches. What a fetch could bring depends on the branches and
tags alone, and those are a few files on both sides. Whatever is not simply a file is left to a fetch.
"""

import os
import re
import stat
from pathlib import Path

_MOST_FILES = 500  # refs with a file of their own; with more of them a fetch is no dearer
_MOST_BYTES = 2_000_000  # of the packed ones
_PACKED = re.compile(rb"^([0-9a-f]{40}) (refs/[^\n]+)$", re.MULTILINE)
_SHA = re.compile(rb"[0-9a-f]{40}\n?")

_Refs = dict[bytes, bytes]  # the sha by the name below the prefix


class _UnclearError(Exception):
    """Only git can tell."""


def has_nothing_new(source: Path, hub: Path, *, source_refs: str) -> bool:
    """Whether the branches of `source` are those below `source_refs` of the hub, and the tags the same.

    `source` is a git directory. False also where that cannot be told.
    """
    try:
        return (
            _is_plain(source)
            and _refs(source, "refs/heads/") == _refs(hub, source_refs)
            and _refs(source, "refs/tags/") == _refs(hub, "refs/tags/")
        )
    except (OSError, _UnclearError):
        return False


def _is_plain(git_dir: Path) -> bool:
    """Whether all refs are files in here, and all history is."""
    others = ("commondir", "reftable", "shallow")
    return git_dir.is_dir() and not any((git_dir / name).exists() for name in others)


def _refs(git_dir: Path, prefix: str) -> _Refs:
    # First the files, as git does: what is packed meanwhile is then in the packed file.
    loose = _loose(git_dir / prefix)
    packed = _content(git_dir / "packed-refs")
    start = prefix.encode()
    found = {
        name.removeprefix(start): sha
        for sha, name in _PACKED.findall(packed)
        if name.startswith(start)
    }
    return found | loose


def _loose(folder: Path) -> _Refs:
    """The refs below `folder` that have a file of their own."""
    found: _Refs = {}
    for place, folders, names in os.walk(folder):
        if len(found) + len(names) > _MOST_FILES:
            raise _UnclearError
        if any(Path(place, name).is_symlink() for name in folders):
            raise _UnclearError
        for name in names:
            file = Path(place, name)
            content = _content(file)
            if not _SHA.fullmatch(content):  # a symbolic ref, a lock, a ref that is being written
                raise _UnclearError
            found[os.fsencode(file.relative_to(folder))] = content.rstrip(b"\n")
    return found


def _content(file: Path) -> bytes:
    """The file's content, empty if it is not there."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    with os.fdopen(handle, "rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise _UnclearError
        return opened.read()
