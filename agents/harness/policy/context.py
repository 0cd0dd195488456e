"""What the gate knows besides the call: where things are, what people have written or answered."""

import glob
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol

from agents.harness.policy.profiles import Profile
from agents.harness.policy.rules import Policy

_MOST_LINKS = 20  # that lead to each other
MOST_BYTES_READ = 1_000_000  # of a script; what is longer is judged by its beginning
_MOST_BYTES_HASHED = 16_000_000  # of a file that an approval binds to; of a larger one its stamps


class Files(Protocol):
    """The file system as the gate looks at it."""

    def real(self, path: str) -> str:
        """The absolute `path` with every link followed that exists; it need not exist."""

    def read(self, path: str) -> bytes | None:
        """The beginning of a regular file, or None if it cannot be read."""

    def mark(self, path: str) -> str | None:
        """What changes whenever the regular file changes, for all of it; None if it is none."""

    def matches(self, pattern: str, *, folder: str, limit: int) -> list[str]:
        """The paths that the shell would put in place of a pattern; at most `limit` of them."""

    def is_folder(self, path: str) -> bool:
        """Whether the real path is that of a folder which can be entered."""


class RealFiles:
    """The file system of this machine, as a command in the sandbox sees it.

    `moved` says what is elsewhere in there: `{"/tmp": scratch}` for the private scratch folder.
    `kept` are folders that are at their own place even below such a one.
    """

    def __init__(
        self, moved: Mapping[str, Path] | None = None, *, kept: Iterable[Path] = ()
    ) -> None:
        self._moved = {name: os.path.realpath(place) for name, place in (moved or {}).items()}
        self._kept = tuple(os.path.realpath(folder) for folder in kept)

    def real(self, path: str) -> str:
        """See Files."""
        try:
            return self._inside(os.path.realpath(self._outside(path)))
        except ValueError:  # a NUL or a lone surrogate: no such file can exist
            return path

    def read(self, path: str) -> bytes | None:
        """See Files."""
        place = Path(self._outside(path))
        try:
            if not place.is_file():
                return None
            with place.open("rb") as file:
                return file.read(MOST_BYTES_READ)
        except (OSError, ValueError):
            return None

    def mark(self, path: str) -> str | None:
        """See Files."""
        try:
            handle = os.open(self._outside(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(handle, "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    return None
                if found.st_size <= _MOST_BYTES_HASHED:
                    return hashlib.file_digest(file, "sha256").hexdigest()
        except (OSError, ValueError):
            return None
        # Nobody can set the time of the last change.
        stamps = f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"
        return hashlib.sha256(stamps.encode()).hexdigest()

    def matches(self, pattern: str, *, folder: str, limit: int) -> list[str]:
        """See Files."""
        base = self._outside(folder)
        if pattern.startswith("/"):
            pattern = self._outside(pattern)
        # Not Path.glob: for the shell `*` does not match names that begin with a dot.
        found = glob.iglob(pattern, root_dir=base)  # noqa: PTH207
        try:
            paths = [str(Path(base, path)) for path in islice(found, limit)]
        except (OSError, ValueError, re.error):
            return []
        return [self._inside(path) for path in paths]

    def is_folder(self, path: str) -> bool:
        """See Files."""
        try:
            return Path(self._outside(path)).is_dir() and os.access(self._outside(path), os.X_OK)
        except (OSError, ValueError):
            return False

    def _outside(self, path: str) -> str:
        """Where a path of the sandbox is on this machine."""
        if any(_is_below(path, folder) for folder in self._kept):
            return path
        return _exchanged(path, self._moved.items())

    def _inside(self, path: str) -> str:
        """The same the other way round."""
        return _exchanged(path, ((place, name) for name, place in self._moved.items()))


class OwnFiles(RealFiles):
    """Where the rest is another system's, of an image that we do not look into: only what is `moved` or `kept`.

    A script elsewhere cannot be read, and so asks.
    """

    def real(self, path: str) -> str:
        """See Files."""
        return super().real(path) if self._is_own(path) else os.path.normpath(path)

    def read(self, path: str) -> bytes | None:
        """See Files."""
        return super().read(path) if self._is_own(path) else None

    def matches(self, pattern: str, *, folder: str, limit: int) -> list[str]:
        """See Files."""
        whole = pattern if pattern.startswith("/") else f"{folder}/{pattern}"
        if not self._is_own(whole):
            return []
        return super().matches(pattern, folder=folder, limit=limit)

    def is_folder(self, path: str) -> bool:
        """See Files. What is not known is taken for one, as the stricter answer."""
        return super().is_folder(path) if self._is_own(path) else True

    def _is_own(self, path: str) -> bool:
        written = os.path.normpath(path)
        return any(_is_below(written, folder) for folder in (*self._moved, *self._kept))


def _exchanged(path: str, places: Iterable[tuple[str, str]]) -> str:
    for old, new in places:
        if _is_below(path, old):
            return new + path[len(old) :]
    return path


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


class Remembered:
    """Asks `files` for the place of each path once: for one call, which sees one moment."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._places: dict[str, str] = {}
        self.read = files.read
        self.mark = files.mark
        self.matches = files.matches
        self.is_folder = files.is_folder

    def real(self, path: str) -> str:
        """See Files."""
        if path not in self._places:
            self._places[path] = self._files.real(path)
        return self._places[path]


class Linked:
    """`files` with links in it that a call makes itself: real path of the link -> real target."""

    def __init__(self, files: Files, links: Mapping[str, str]) -> None:
        self._files = files
        self._links = dict(links)
        self.read = files.read
        self.mark = files.mark
        self.matches = files.matches
        self.is_folder = files.is_folder

    def real(self, path: str) -> str:
        """See Files."""
        found = self._files.real(path)
        for _ in range(_MOST_LINKS):
            for link, target in self._links.items():
                if _is_below(found, link):
                    found = self._files.real(target + found[len(link) :])
                    break
            else:
                return found
        return found


@dataclass(frozen=True)
class Grant:
    """An answer of a person that lasts: this very call may run again.

    `input` is canonical JSON. `scripts` is what else it binds to, see `digest.bound`: if any of it
    has changed, it is another call (rule P1).
    """

    tool: str
    input: str
    scripts: tuple[tuple[str, str], ...] = ()


@dataclass
class Noted:
    """What the reading of one call has come across, for the rules of people: real paths."""

    changed: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Context:
    """Everything that `decide` may look at. Paths are absolute; links in them are resolved.

    `repository` is the user's main checkout, `product_paths` are the installation, configuration
    and data of this product. `hosts` are let through by the proxy, which is there only in the
    sandbox of the first level. `exact_commands` are the card's acceptance checks and the project's
    set-up command, as a person has written them.
    """

    workspace: Path
    cwd: str | None = None  # where a command runs, if not in the workspace itself
    repository: Path | None = None
    product_paths: tuple[Path, ...] = ()
    product_urls: tuple[str, ...] = ()
    home: Path = Path("/home/agent")
    scratch: Path = Path("/tmp")  # noqa: S108  the sandbox's own, see agents/sandbox.py
    sandbox: str = "none"  # `bubblewrap`, `landlock`, `podman`, `docker` or `none`
    hosts: frozenset[str] = frozenset()  # that may be read from: lower case, no dot at the end
    exact_commands: frozenset[str] = frozenset()
    grants: tuple[Grant, ...] = ()
    rules: Policy = field(default_factory=Policy)
    policy_version: str = ""
    profile: Profile = Profile.FULL
    trusted_servers: frozenset[str] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)  # that a command may rely on
    files: Files = field(default_factory=RealFiles)
    noted: Noted | None = field(default=None, compare=False)
