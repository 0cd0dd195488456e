"""What package managers tell of what is installed (rule L1, or L3 where they read the project's own files)."""

import re

from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import check_values

_NAME = r"(?: (?!-)[\w.+:@/*~^-]+)"

# Of each program, all of its arguments joined by blanks. What asks another machine is not here.
_QUERIES = {
    "dpkg": rf"(?:-[lLsS]|--list|--listfiles|--status|--search|--get-selections|--print-architecture){_NAME}*",
    "dpkg-query": rf"(?:-[lLsSW]|--list|--listfiles|--status|--search|--show){_NAME}*",
    "rpm": rf"-q[ailRc]*(?: -[ailRc]+)*{_NAME}*",
    "apk": rf"info(?: -[aedswLrR]+)*{_NAME}*",
    "apt": rf"(?:list --installed|list --manual-installed|show|policy|depends|rdepends){_NAME}*",
    "apt-cache": rf"(?:show|showpkg|policy|depends|rdepends|search|madison|stats|pkgnames){_NAME}*",
    "apt-mark": r"show(?:auto|manual|hold)",
    "gem": rf"(?:list|which|contents|environment|env)(?: --local| -l| -a| --all)*{_NAME}*",
    "brew": rf"(?:list|deps|leaves)(?: --versions| --formula| --cask)*{_NAME}*",
    "conda": rf"(?:list|info)(?: --json)?{_NAME}*|env list",
    "mamba": rf"(?:list|info)(?: --json)?{_NAME}*|env list",
    "pipx": r"list(?: --short| --json)?",
}  # fmt: skip
_PROJECTS = {
    "uv": rf"pip (?:list|show|freeze|check|tree)(?: -q| --quiet| --format[= ]json| --exclude-editable)*{_NAME}*",
    "poetry": rf"show(?: --tree| -t| --no-dev| --all| -a| --only=?\w*| --with=?\w*)*{_NAME}*"
              r"|check(?: --lock| --strict)*|env (?:info(?: -p| --path)?|list)|version(?: -s| --short)?",
    "pdm": r"list(?: --tree| --graph| --json| --freeze)*|info(?: --\w+)?|show --\w+",
    "pipenv": r"graph(?: --bare| --json)?|--venv|--where|--py",
    "bundle": rf"(?:list|show|info|check|platform)(?: --paths| --path| --name-only)*{_NAME}*",
    "composer": rf"(?:show|licenses|check-platform-reqs|depends|why|validate)"
                rf"(?: --installed| -i| --tree| -t| --name-only| --direct| -D| --no-check-publish| --strict)*{_NAME}*",
}  # fmt: skip


def listing_rule(context: Context, name: str, arguments: list[str]) -> str:
    """The rule that lets a package manager tell what is installed, "" if this is anything else."""
    words = " ".join(arguments)
    if name in _QUERIES and re.fullmatch(_QUERIES[name], words):
        return "L1"
    if name in _PROJECTS and re.fullmatch(_PROJECTS[name], words):
        check_values(context, arguments)
        return "L3"
    return ""
