"""What no single module can promise: layers, doors, pages without inline code, honest locks."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path
    for package in ("board", "agents")
    for path in (ROOT / package).rglob("*.py")
    if "migrations" not in path.parts
)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHON_LOCKS = ("requirements.lock", "requirements-dev.lock")

# These start processes: the one module for it, the set-up, which runs before it is importable, and
# the launcher and the forwarder, programs of their own, which become the command that they start.
MAY_START_PROCESSES = (
    "agents/landlock_launcher.py",
    "agents/processes.py",
    "agents/sandbox_forwarder.py",
    "board/management/setup.py",
)
# These read the environment: the settings; the entry points, which choose the settings module; and
# the process module, which passes the paths and the language on to children.
MAY_READ_ENVIRONMENT = (
    "agents/harness/__main__.py",
    "agents/processes.py",
    "board/__main__.py",
    "board/asgi.py",
    "board/celery.py",
    "board/management/setup.py",
    "board/settings.py",
)
STARTS_PROCESSES = re.compile(
    r"subprocess|pty|multiprocessing|concurrent\.futures\.ProcessPoolExecutor"
    r"|os\.(system|popen|fork\w*|exec\w+|spawn\w+|posix_spawn\w*)"
    r"|asyncio\.(create_subprocess_\w+|subprocess)"
)
READS_ENVIRONMENT = re.compile(r"os\.(environb?|getenvb?|putenv|unsetenv)")
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "service", "services"}
INLINE = {
    "a style attribute": re.compile(r"<[^>]*\sstyle\s*=", re.IGNORECASE),
    "a style element": re.compile(r"<style\b", re.IGNORECASE),
    "a script without src": re.compile(r"<script\b(?![^>]*\ssrc=)", re.IGNORECASE),
    "an event attribute": re.compile(r"<[^>]*\s(on[a-z]+|hx-on[\w:.-]*)\s*=", re.IGNORECASE),
    "a javascript: address": re.compile(r"[\"'\s]javascript:", re.IGNORECASE),
}


def test_every_import_contract_is_kept():
    # Without its cache, which two test processes would write at once.
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_the_process_module_starts_processes():
    assert uses(STARTS_PROCESSES) <= set(MAY_START_PROCESSES)


def test_only_the_settings_read_the_environment():
    assert uses(READS_ENVIRONMENT) <= set(MAY_READ_ENVIRONMENT)


def test_only_the_actions_publish_events():
    publishers = uses(re.compile(r"board\.events\.publish|events\.publish"))
    assert {path for path in publishers if not path.startswith("board/actions/")} == set()


def test_the_exceptions_from_the_bans_are_the_known_ones():
    known = {*MAY_START_PROCESSES, *MAY_READ_ENVIRONMENT}
    ignores = PYPROJECT["tool"]["ruff"]["lint"]["per-file-ignores"]
    globs = [glob for glob, rules in ignores.items() if "TID251" in rules]
    excepted = {
        relative(path) for path in SOURCES for glob in globs if matches(relative(path), glob)
    }
    assert excepted <= known


def test_every_module_says_what_it_is_for():
    silent = [relative(path) for path in SOURCES if not ast.get_docstring(parse(path))]
    assert silent == []


def test_every_package_is_a_regular_one():
    folders = {path.parent for path in SOURCES}
    assert [relative(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_no_module_has_a_name_that_says_nothing():
    assert [relative(path) for path in SOURCES if VAGUE_NAMES & set(words_of(path))] == []


def test_the_set_up_needs_the_standard_library_only():
    imports = [
        node
        for node in ast.walk(parse(ROOT / "board/management/setup.py"))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    imported = {name.split(".")[0] for node in imports for name in dotted(ast.Module([node], []))}
    assert imported <= sys.stdlib_module_names


@pytest.mark.parametrize("what", INLINE)
def test_no_template_has(what):
    found = [
        f"{relative(path)}: {match[0]}"
        for path in TEMPLATES
        for match in INLINE[what].finditer(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize("lock", PYTHON_LOCKS)
def test_a_python_lock_pins_by_hash_and_names_no_address(lock):
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert [line for line in text.splitlines() if line.startswith("-")] == []
    for entry in entries(text):
        assert re.match(r"^[a-z0-9._-]+==\S+( ; .+)? \\\n", entry), entry
        assert re.findall(r"--hash=sha256:[0-9a-f]{64}", entry), entry


def test_the_development_lock_holds_every_pin_of_the_runtime_lock():
    runtime, development = (set(entries((ROOT / lock).read_text())) for lock in PYTHON_LOCKS)
    assert runtime <= development


def test_the_locks_satisfy_what_the_project_asks_for():
    runtime, development = (pins(lock) for lock in PYTHON_LOCKS)
    groups = PYPROJECT["dependency-groups"]
    tools = [line for group in groups.values() for line in group if isinstance(line, str)]
    asked = [(line, runtime) for line in PYPROJECT["project"]["dependencies"]]
    asked += [(line, development) for line in tools]
    for line, pinned in asked:
        requirement = Requirement(line)
        versions = pinned.get(canonicalize_name(requirement.name), set())
        assert any(requirement.specifier.contains(version) for version in versions), line


def test_the_npm_lock_pins_by_hash_and_names_no_address():
    text = (ROOT / "package-lock.json").read_text()
    assert "://" not in text
    packages = json.loads(text)["packages"]
    root = packages.pop("")
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    manifest = json.loads((ROOT / "package.json").read_text())
    for kind in ("dependencies", "devDependencies"):
        assert root[kind] == manifest[kind]
        for name, version in manifest[kind].items():
            assert packages[f"node_modules/{name}"]["version"] == version


def test_no_file_names_the_host_of_a_registry():
    # Put together here, so that this file names none either.
    parts = [("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com")]
    hosts = [".".join(part) for part in parts]
    named = [
        f"{path}: {host}"
        for path in tracked_files()
        for host in hosts
        if host.encode() in (ROOT / path).read_bytes()
    ]
    assert named == []


def test_the_composed_services_take_their_settings_from_the_example():
    text = (ROOT / "compose.yaml").read_text()
    example = (ROOT / ".env.example").read_text()
    assert set(re.findall(r"\$\{(\w+)", text)) == set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    services = yaml.safe_load(text)["services"]
    ours = {name for name, service in services.items() if service["image"] == "pullcord"}
    assert ours == {"migrate", "web", "worker"}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def uses(pattern: re.Pattern[str]) -> set[str]:
    """The modules that name something the pattern matches as a whole or begins with."""
    return {
        relative(path)
        for path in SOURCES
        if any(re.fullmatch(rf"({pattern.pattern})(\..+)?", name) for name in names(path))
    }


@cache
def names(path: Path) -> frozenset[str]:
    """Every dotted name that a module imports or uses, as the import spells it."""
    return frozenset(dotted(parse(path)))


def dotted(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)


def words_of(path: Path) -> list[str]:
    return [
        word for part in path.relative_to(ROOT).with_suffix("").parts for word in part.split("_")
    ]


def matches(path: str, glob: str) -> bool:
    """Whether ruff applies the glob to the path; `{a,b}` means either."""
    braces = re.search(r"\{([^}]*)\}", glob)
    if braces is None:
        return fnmatch(path, glob)
    choices = braces[1].split(",")
    return any(matches(path, glob.replace(braces[0], choice, 1)) for choice in choices)


def entries(lock: str) -> list[str]:
    return re.findall(r"^\S.*\n(?:[ \t]+.*\n)*", lock, flags=re.MULTILINE)


def pins(lock: str) -> dict[str, set[str]]:
    """The versions that a lock pins of each package; several where markers choose between them."""
    pinned: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE):
        pinned.setdefault(canonicalize_name(name), set()).add(version)
    return pinned


def tracked_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = listed.stdout.decode().split("\0")
    return [path for path in paths if path and (ROOT / path).is_file()]
