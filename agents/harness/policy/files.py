"""What a path means to the policy: inside, protected, secret, the product's, vital to the host."""

import itertools
import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from agents.harness.policy.context import Context
from agents.harness.policy.secrets import is_secret_name

POLICY_FOLDER = ".pullcord"  # a repository's share of the policy

_SYSTEM = frozenset(
    [
        "bin",
        "boot",
        "dev",
        "etc",
        "home",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "media",
        "mnt",
        "opt",
        "proc",
        "root",
        "run",
        "sbin",
        "srv",
        "sys",
        "usr",
        "var",
    ]
)
_READABLE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/etc")
_SECRET_PLACE = re.compile(
    r".*/(?:\.ssh|\.aws|\.kube|\.gnupg|\.config/gcloud|\.docker/config\.json)(?:/.*)?"
    r"|/etc/ssl/private(?:/.*)?|/etc/(?:shadow|gshadow|sudoers)(?:-|\.d)?(?:/.*)?|/etc/ssh(?:/.*)?",
    re.DOTALL,
)

_PROTECTED_FOLDERS = frozenset(
    [
        ".git",
        ".husky",
        ".githooks",
        ".circleci",
        ".buildkite",
        ".vscode",
        ".idea",
        ".devcontainer",
        ".claude",
        ".cursor",
        ".codex",
        ".gemini",
    ]
)
_PROTECTED_NAMES = frozenset(
    [
        ".gitlab-ci.yml",
        ".drone.yml",
        "jenkinsfile",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        ".pre-commit-config.yaml",
        ".gitattributes",
        ".gitmodules",
        "codeowners",
        ".envrc",
        "agents.md",
        "claude.md",
        "gemini.md",
        ".mcp.json",
        ".npmrc",
        ".pypirc",
        "pip.conf",
    ]
)
_PROTECTED_PREFIXES = (".woodpecker", ".yarnrc")
_PROTECTED_PAIRS = (
    (".github", "workflows"),
    ("node_modules", ".bin"),
    (".venv", "bin"),
    ("venv", "bin"),
)

# Where code hides that runs at log-in or for everybody.
_PERSISTENCE = re.compile(
    r"/etc/(?:sudoers|passwd|shadow|gshadow|crontab|ld\.so\.preload|rc\.local)-?"
    r"|/etc/(?:sudoers\.d|cron[^/]*|systemd|init\.d)(?:/.*)?"
    r"|/var/spool/cron(?:/.*)?|(?:/usr)?/lib/systemd(?:/.*)?"
    r"|.*/\.ssh/authorized_keys2?"
)
_DEVICE = re.compile(
    r"/dev/(?:[shv]d[a-z]|xvd|nvme|mmcblk|loop|dm-|md\d|mapper/|disk/|sr\d|nbd|ram\d|mem|kmem|port)"
    r".*"
)
_KERNEL = re.compile(r"/proc/sys(?:/.*)?|/proc/sysrq-trigger|/sys(?:/.*)?")
_ENVIRONMENT = re.compile(r"/proc/[^/]+(?:/task/[^/]+)?/environ")
_PRODUCT_DATA = re.compile(r".*\.(?:sqlite3?|db|key|pem|env)(?:-\w+)?|.*secret.*|.*credential.*")
_PRODUCT_DATA_NAMES = (".env", "db.sqlite3", "pullcord.sqlite3", "secret_key", "key.pem")
_PRODUCT_DATA_FOLDERS = frozenset({"data", "media", "secrets", "keys", "backups"})


def absolute(text: str, *, cwd: str, home: str) -> str:
    """A path as the shell would take it, absolute and without dots."""
    if text == "~" or text.startswith("~/"):
        text = home + text[1:]
    elif text.startswith("~"):
        name, _, rest = text[1:].partition("/")
        text = f"/root/{rest}" if name == "root" else f"/home/{name}/{rest}"
    path = os.path.normpath(text if text.startswith("/") else f"{cwd}/{text}")
    return "/" + path.lstrip("/")  # POSIX keeps two leading slashes


def real(context: Context, text: str, *, cwd: str | None = None) -> str:
    """The place that a path as written really is, links followed."""
    base = cwd or context.cwd or str(context.workspace)
    path = absolute(text, cwd=base, home=str(context.home))
    if ".." in text.split("/"):
        path = _upwards(context, text, base)
    return context.files.real(path)


def _upwards(context: Context, text: str, base: str) -> str:
    """`link/..` is the folder above the place that the link leads to, not the one it is in."""
    first, slash, rest = text.partition("/")
    here = absolute(first, cwd=base, home=str(context.home)) if slash and first else "/"
    here, parts = (here, rest.split("/")) if slash else (base, [text])
    if first == "..":
        here, parts = base, text.split("/")
    for part in parts:
        if part == "..":
            here = context.files.real(here).rpartition("/")[0] or "/"
        elif part not in ("", "."):
            here = f"{here.rstrip('/')}/{part}"
    return here


def is_below(path: str, folder: str | os.PathLike[str]) -> bool:
    """Whether `path` is `folder` or below it, by whole components."""
    top = str(folder).rstrip("/")
    return path == (top or "/") or path.startswith(top + "/")


def is_inside(context: Context, path: str) -> bool:
    """Whether a real path is in the workspace, or in scratch (but not scratch itself)."""
    if is_below(path, context.workspace):
        return True
    return is_below(path, context.scratch) and path != str(context.scratch)


def is_protected(context: Context, path: str) -> bool:
    """Rule A5: files that other programs trust. `path` is real and inside."""
    parts = [part.casefold() for part in PurePosixPath(_relative(context, path)).parts]
    if any(part in _PROTECTED_FOLDERS or part.startswith(_PROTECTED_PREFIXES) for part in parts):
        return True
    if any(pair in _PROTECTED_PAIRS for pair in itertools.pairwise(parts)):
        return True
    return bool(parts) and parts[-1] in _PROTECTED_NAMES


def joins_protected(texts: Sequence[str]) -> bool:
    """Whether texts, put together, may be the path of a protected folder: `.github`, `workflows`."""
    ends = {text.rstrip("/").rpartition("/")[2].casefold() for text in texts}
    begins = {text.removeprefix("./").partition("/")[0].casefold() for text in texts}
    return any(folder in ends and inner in begins for folder, inner in _PROTECTED_PAIRS)


def holds_protected(path: str) -> bool:
    """Whether a real path is of a folder that has a protected one in it: `.github/workflows`."""
    return path.rpartition("/")[2].casefold() in {folder for folder, _ in _PROTECTED_PAIRS}


def _relative(context: Context, path: str) -> str:
    workspace = str(context.workspace)
    return path[len(workspace) :].lstrip("/") if is_below(path, workspace) else path


def is_policy(context: Context, path: str) -> bool:
    """Rule D4: the repository's share of the policy, in the workspace or the main checkout."""
    for root in (context.workspace, context.repository):
        if root is not None and is_below(path, root):
            parts = PurePosixPath(path[len(str(root)) :].lstrip("/")).parts
            if parts and parts[0].casefold() == POLICY_FOLDER:
                return True
    return False


def is_product(context: Context, path: str) -> bool:
    """Whether a real path belongs to this product; a worktree below its data does not."""
    own = [
        context.workspace,
        context.scratch,
        *([context.repository] if context.repository else []),
    ]
    if any(is_below(path, root) and is_below(str(root), product)
           for root in own for product in context.product_paths):  # fmt: skip
        return False
    return any(is_below(path, product) for product in context.product_paths) or (
        bool(set("*?[") & set(path))
        and any(_may_be_below(path, str(product)) for product in context.product_paths)
    )


def _may_be_below(pattern: str, folder: str) -> bool:
    """Whether a pattern finds `folder` or what is below it; one that finds everything does not count."""
    parts, names = pattern.split("/"), folder.split("/")
    if len(parts) < len(names) or any(set(part) <= set("*") for part in parts[1 : len(names)]):
        return False
    return all(fnmatchcase(name, part) for name, part in zip(names, parts, strict=False))


def is_product_data(context: Context, path: str) -> bool:
    """Rule D5: what of the product must not even be read."""
    if not is_product(context, path):
        return False
    name = path.rpartition("/")[2].casefold()
    if is_secret(path) or _PRODUCT_DATA.fullmatch(name):
        return True
    if set("*?[") & set(name) and any(fnmatchcase(one, name) for one in _PRODUCT_DATA_NAMES):
        return True
    for product in context.product_paths:
        if is_product(context, path):
            parts = {product.name, *PurePosixPath(path[len(str(product)) :]).parts}
            if parts & _PRODUCT_DATA_FOLDERS:
                return True
    return False


def is_secret(path: str) -> bool:
    """Rule A12: a file or folder that holds credentials."""
    rest, _, last = path.rstrip("/").rpartition("/")
    if is_secret_name(last) or is_secret_name(rest.rpartition("/")[2]):
        return True
    return _SECRET_PLACE.fullmatch(path) is not None


def is_readable(context: Context, path: str) -> bool:
    """Rules L1 and L6: where reading needs no question (secrets are another matter)."""
    if is_inside(context, path) or path == "/dev/null":
        return True
    if context.repository is not None and is_below(path, context.repository):
        return True
    if is_product(context, path):
        return False
    if is_below(path, "/proc") or is_below(path, "/sys"):
        return re.search(r"^/proc/(?:\d|self|thread-self|kcore|kmsg|kallsyms)", path) is None
    if is_below(path, "/etc") and _SECRET_PLACE.fullmatch(path):
        return False
    return any(is_below(path, folder) for folder in _READABLE)


def is_vital(context: Context, path: str) -> bool:
    """Rule D1: what the host or the shared repository cannot live without, or holds such things."""
    parts = PurePosixPath(path).parts[1:]
    if not parts or (len(parts) == 1 and parts[0] in _SYSTEM):
        return True
    if path in ("/usr/bin", "/usr/lib", "/usr/local", "/usr/sbin", "/usr/share", "/var/lib"):
        return True
    two = 2
    if len(parts) == two and parts[0] == "home":
        return True
    dear = [context.home, *context.product_paths]
    if context.repository is not None:
        dear += [context.repository, context.repository / ".git"]
        if is_below(path, context.repository / ".git"):
            return True
    return any(is_below(str(place), path) for place in dear)


def is_persistence(path: str) -> bool:
    """Rule D7: a back door, if an agent writes there."""
    return _PERSISTENCE.fullmatch(path) is not None


def is_device(path: str) -> bool:
    """Rule D2: a block device or memory."""
    return _DEVICE.fullmatch(path) is not None


def is_kernel(path: str) -> bool:
    """Rule D3: a setting or trigger of the kernel."""
    return _KERNEL.fullmatch(path) is not None


def is_environment(path: str) -> bool:
    """Rule D5: the environment of a process."""
    return _ENVIRONMENT.fullmatch(path) is not None
