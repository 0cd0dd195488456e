"""A container image for tests, made of this machine's own programs: bash, git, Python and a few small ones.

No registry is asked. Podman keeps it, and all that tests run of it, in a folder of its own.
"""

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

IMAGE = "localhost/pullcord-test:1"
PROGRAMS = (
    "bash", "sh", "git", "python3", "cat", "ls", "grep", "id", "sleep", "mkdir", "rm", "touch", "head", "tail",
    "sort", "wc", "env", "uname", "sed", "find", "kill", "ps", "cut", "tr", "readlink", "chmod", "mv", "cp",
)  # fmt: skip
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
FOLDERS = (
    "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "tmp", "var/tmp", "run", "home", "root", "proc", "sys", "dev",
)  # fmt: skip
ETC = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\n",
    "etc/group": "root:x:0:\n",
    "etc/image": "made for tests\n",
}


def why_not() -> str:
    """Return why tests with containers cannot run here, or an empty string."""
    if shutil.which("podman") is None:
        return "podman is not installed."
    missing = [name for name in PROGRAMS if _found(name) is None]
    return f"The image for tests needs {', '.join(missing)}." if missing else ""


@contextmanager
def podman(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the environment in which podman has IMAGE, with `folder` as its store."""
    folder.mkdir(parents=True)
    settings = folder / "containers.conf"
    # Podman refuses a longer `runroot` than 50 characters, and then no container is tidied away for 20 s.
    short = Path(tempfile.mkdtemp(prefix="pc-"))
    # On control groups of both versions at once crun refuses to start, and runc does not.
    runtime = 'runtime = "runc"\n' if shutil.which("runc") else ""
    settings.write_text(
        f'[engine]\n{runtime}cgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        # The default is one for all stores, and a reset of another one would empty it.
        f'tmp_dir = "{short}"\n'
    )
    store = folder / "storage.conf"
    store.write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/store"\nrunroot = "{short}/run"\n'
    )
    names = {"CONTAINERS_CONF": str(settings), "CONTAINERS_STORAGE_CONF": str(store)}
    environment = {**os.environ, **names}
    image = folder / "image.tar"
    write_image(image)
    subprocess.run(
        ["podman", "import", "--quiet", str(image), IMAGE],
        env=environment,
        check=True,
        capture_output=True,
    )
    image.unlink()
    try:
        tried = subprocess.run(
            ["podman", "run", "--rm", "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024",
             IMAGE, "id"],
            env=environment, check=False, capture_output=True, text=True,
        )  # fmt: skip
        if tried.returncode:
            pytest.skip(
                f"podman cannot run a container on this machine: {tried.stderr.strip()[-300:]}"
            )
        yield names
    finally:
        subprocess.run(
            ["podman", "system", "reset", "--force"],
            env=environment,
            check=False,
            capture_output=True,
        )
        shutil.rmtree(short, ignore_errors=True)


def write_image(path: Path) -> None:
    """Write the root of the image as an archive."""
    with tarfile.open(path, "w") as archive:
        for name in FOLDERS:
            _add(archive, tarfile.TarInfo(name), kind=tarfile.DIRTYPE)
        for name, target in LINKS.items():
            link = tarfile.TarInfo(name)
            link.linkname = target
            _add(archive, link, kind=tarfile.SYMTYPE)
        for name, text in ETC.items():
            _add_text(archive, name, text)
        taken: set[str] = set()
        for source in _files():
            where = _place(source)
            if where not in taken:
                taken.add(where)
                archive.add(source.resolve(), where, recursive=False)


def _files() -> Iterator[Path]:
    programs = [path for name in PROGRAMS if (path := _found(name)) is not None]
    core = Path("/usr/lib/git-core")
    extensions: list[Path] = []
    git = Path("/usr/bin/git").stat().st_size  # the other names of the same program
    for folder in (*Path("/usr/lib").glob("python3.*"), core):
        for path in sorted(folder.rglob("*")):
            skipped = {
                "__pycache__",
                "test",
                "dist-packages",
                "idlelib",
                "tkinter",
                "lib2to3",
                "config-3.11-x86_64-linux-gnu",
            }
            if path.is_file() and not skipped & set(path.parts) and path.stat().st_size != git:
                extensions.append(path)
    yield from programs
    yield from extensions
    yield from _libraries([*programs, *(p for p in extensions if p.suffix == ".so")])


def _libraries(programs: Iterable[Path]) -> Iterator[Path]:
    done = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        found = re.search(r"(/\S+) \(0x", line)
        if found:
            yield Path(found[1])


def _place(path: Path) -> str:
    """Where a file goes: below usr, for bin and lib are links."""
    name = str(path).lstrip("/")
    return name if name.startswith("usr/") else f"usr/{name}"


def _found(name: str) -> Path | None:
    place = shutil.which(name, path="/usr/bin:/bin")
    return None if place is None else Path(place)


def _add_text(archive: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(text)
    archive.addfile(entry, io.BytesIO(text.encode()))


def _add(archive: tarfile.TarFile, entry: tarfile.TarInfo, *, kind: bytes) -> None:
    entry.type = kind
    entry.mode = 0o755
    archive.addfile(entry)
