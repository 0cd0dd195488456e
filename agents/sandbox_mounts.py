"""What a sandboxed command sees of the file system, as arguments for bubblewrap.

Nothing is visible unless it is listed here: system programs and a few files of /etc, read-only;
the worktree; a private scratch folder; and of the git directory just what `git commit` needs.
Later arguments cover earlier ones, so the order matters.
"""

import hashlib
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSTEM_FOLDERS = ("/usr", "/opt")
HOME = "/home/agent"
_PRIVATE_NAMES = (
    "refs",
    "logs",
    "worktrees",
    "hooks",
)  # of a common directory: others lie in their place

_USR_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC_NAMES = (
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "protocols",
    "resolv.conf",
    "services",
    "ssl/certs",  # not ssl/private
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)
ETC = Path("/etc")
_ETC_KEPT_SECONDS = 7 * 24 * 3600  # a run ends much sooner
_INTERPRETERS = ("python3", "node", "npm", "go", "cargo", "rustc", "java", "ruby", "deno", "bun")


def system_arguments(*, etc: Path) -> list[str]:
    """The read-only system: programs, libraries, and `etc` (see `copy_etc`)."""
    arguments: list[str] = []
    for folder in SYSTEM_FOLDERS:
        arguments += ["--ro-bind-try", folder, folder]
    for name in _USR_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    arguments += ["--ro-bind", str(etc), "/etc"]
    # For root the kernel's settings below /proc/sys are writable even without capabilities.
    arguments += ["--proc", "/proc", "--remount-ro", "/proc"]
    return [*arguments, "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", HOME]


def system_folders() -> list[Path]:
    """The folders of programs and libraries that exist here, for who cannot mount them."""
    names = [*SYSTEM_FOLDERS, *(f"/{name}" for name in _USR_LINKS)]
    return [path for path in map(Path, names) if path.is_dir() and not path.is_symlink()]


def etc_paths() -> list[Path]:
    """The harmless part of /etc that exists here; a link stands for what it leads to."""
    return [path.resolve() for name in _ETC_NAMES if (path := ETC / name).exists()]


def copy_etc(parent: Path) -> Path:
    """A copy of the harmless part of /etc in the folder `parent`, named by what it holds.

    One mount of a copy instead of 25 mounts of originals saves 6 ms in every command. All sandboxes
    below one folder share it: to copy it takes longer than to make a small worktree.
    """
    sources = [(name, ETC / name) for name in _ETC_NAMES if (ETC / name).exists()]
    folder = parent / f".etc-{_fingerprint([path for _, path in sources])}"
    if folder.exists():
        return folder
    draft = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    draft.mkdir(parents=True)
    for name, source in sources:
        target = draft / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:  # resolv.conf is often a link to a place that does not exist in the sandbox
            shutil.copy(source, target)
    try:
        draft.rename(folder)
    except OSError:  # another was first
        shutil.rmtree(draft)
    _clear_older(parent, folder)
    return folder


def _fingerprint(paths: Sequence[Path]) -> str:
    """Short and other whenever a file was added, removed or written in one of `paths`."""
    digest = hashlib.sha256()
    for path in paths:
        for file in _files_below(path):
            # Of a link below a folder it is the link that is copied; else it is what it leads to.
            found = os.stat(file, follow_symlinks=file == str(path))  # noqa: PTH116  hundreds of them
            digest.update(f"{file} {found.st_mtime_ns} {found.st_size}\n".encode())
    return digest.hexdigest()[:12]


def _files_below(path: Path) -> list[str]:
    if not path.is_dir():
        return [str(path)]
    return sorted(f"{folder}/{name}" for folder, _, names in os.walk(path) for name in names)


def _clear_older(parent: Path, newest: Path) -> None:
    """Delete the copies that no run can be using any more."""
    for other in parent.glob(".etc-*"):
        if other != newest and time.time() - other.stat().st_mtime > _ETC_KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)


def interpreter_folders(search_path: str, *, hidden: Sequence[Path]) -> list[Path]:
    """Folders of interpreters that live outside the system folders (pyenv, nvm, uv, rustup).

    A folder that holds or lies in something `hidden`, or that is a whole home, is left out.
    """
    home = Path.home()
    # Not ~/.cargo: beside its programs lie its credentials.
    too_much = {Path("/"), Path("/home"), home, home / ".local", home / ".cargo"}
    found: list[Path] = []
    for prefix in _prefixes(search_path):
        # The path as it is on disk: a link in the middle would not exist in the sandbox.
        folder = prefix.resolve()
        if folder in too_much or _touches(folder, hidden) or is_below(folder, found):
            continue
        if not is_below(folder, [Path(name) for name in (*SYSTEM_FOLDERS, "/bin", "/nix/store")]):
            found.append(folder)
    return found


def _prefixes(search_path: str) -> Iterator[Path]:
    yield Path(sys.base_prefix)  # what `python` is here, also when PATH finds a pyenv shim first
    for name in _INTERPRETERS:
        program = shutil.which(name, path=search_path)
        if program is None:
            continue
        real = Path(program).resolve()
        if real.parent.name == "bin" and real.parent.parent != Path("/usr"):
            yield real.parent.parent
    # rustup's programs find the real ones in its toolchains.
    yield from sorted((Path.home() / ".rustup" / "toolchains").glob("stable*"))


def _touches(folder: Path, others: Sequence[Path]) -> bool:
    return is_below(folder, others) or any(other.is_relative_to(folder) for other in others)


def is_below(path: Path, folders: Sequence[Path]) -> bool:
    """Whether `path` is one of `folders` or lies in one."""
    return any(path.is_relative_to(folder) for folder in folders)


def visible_search_path(search_path: str, interpreters: Sequence[Path]) -> str:
    """PATH for the sandbox: the interpreters first, then the entries that exist in there."""
    system = [Path(name) for name in (*SYSTEM_FOLDERS, *(f"/{name}" for name in _USR_LINKS))]
    visible = [
        entry
        for entry in search_path.split(os.pathsep)
        if entry.startswith("/") and is_below(Path(entry).resolve(), [*system, *interpreters])
    ]
    first = [str(folder / "bin") for folder in interpreters]
    always = ["/usr/local/bin", "/usr/bin", "/bin"]
    return os.pathsep.join(dict.fromkeys([*first, *visible, *always]))


@dataclass(frozen=True)
class Mount:
    """One thing that a sandbox sees: `ro` and `rw` show `source` at `target`, `tmpfs` an empty folder."""

    kind: str
    source: Path
    target: Path


@dataclass(frozen=True)
class PrivateGit:
    """The git folders of one run: the shared ones are read-only, the private ones take its writes.

    `common` is the bare repository of the worktree, `entry` its folder `worktrees/<id>`. `refs`
    and `logs` cover those of `common`; new objects go to `objects`. With an `entry_copy` that
    covers `entry`, nothing that git outside reads is written by the agent.
    """

    common: Path
    entry: Path
    refs: Path
    logs: Path
    objects: Path
    entry_copy: Path | None = None

    def prepare(self) -> None:
        """Create what is missing; existing private refs and objects are kept."""
        for name, private in (("refs", self.refs), ("logs", self.logs)):
            shared = self.common / name
            shared.mkdir(exist_ok=True)  # without it there is nothing to mount the private one on
            if not private.exists():
                shutil.copytree(shared, private, symlinks=True)
        for folder in (self.objects, self._nothing):
            folder.mkdir(parents=True, exist_ok=True)
        # An empty file, read-only in the sandbox, so that nobody can make one with content.
        ((self.entry_copy or self.entry) / "config.worktree").touch()

    def arguments(self) -> list[str]:
        """The mounts as arguments for bubblewrap."""
        options = {"ro": "--ro-bind", "rw": "--bind"}
        arguments: list[str] = []
        for mount in self.mounts():
            if mount.kind == "tmpfs":
                arguments += ["--tmpfs", str(mount.target)]
            else:
                arguments += [options[mount.kind], str(mount.source), str(mount.target)]
        return arguments

    def mounts(self) -> list[Mount]:
        """The common directory, of which just what a commit has to write can be written.

        The folder itself takes new names, which vanish with the command: git makes `packed-refs.lock`
        there when it deletes a ref, so `git stash pop` would leave the stash behind.
        """
        shared = [
            path
            for path in sorted(self.common.iterdir())
            if path.name not in _PRIVATE_NAMES and not path.name.endswith(".lock")
        ]
        entry = self.entry_copy or self.entry
        return [
            Mount("tmpfs", self.common, self.common),
            *(Mount("ro", path, path) for path in shared),
            Mount("ro", self._nothing, self.common / "hooks"),
            *(Mount("ro", store, store) for store in self.alternates()),
            # The entries of other cards are hidden, so `worktrees` is replaced by an empty folder.
            Mount("tmpfs", self.common / "worktrees", self.common / "worktrees"),
            Mount("rw", entry, self.entry),
            *(
                Mount("ro", entry / name, self.entry / name)
                for name in ("commondir", "gitdir", "config.worktree")
            ),
            Mount("rw", self.refs, self.common / "refs"),
            Mount("rw", self.logs, self.common / "logs"),
            Mount("rw", self.objects, self.objects),
        ]

    @property
    def _nothing(self) -> Path:
        """An empty folder in place of the hooks."""
        return self.refs.with_name("no-hooks")

    def alternates(self) -> list[Path]:
        """Object stores outside `common` that it borrows from, also indirectly."""
        found: list[Path] = []
        waiting = [self.common / "objects"]
        while waiting:
            store = waiting.pop()
            listed = store / "info" / "alternates"
            if not listed.is_file():
                continue
            for line in listed.read_text().splitlines():
                other = (store / line).resolve() if line.strip() else store
                if other not in found and not other.is_relative_to(self.common):
                    found.append(other)
                    waiting.append(other)
        return found

    def environment(self) -> dict[str, str]:
        """Where git finds old objects and puts new ones."""
        return {
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.common / "objects"),
        }
