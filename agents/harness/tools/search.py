"""The search tools. The searching is done by git, in the sandbox.

Not by Python: a pattern of a model can take forever, and a thread that matches a regular
expression can neither be stopped nor lets others run.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from agents.harness.errors import ToolError
from agents.harness.policy.secrets import SECRET_GLOBS
from agents.harness.ports import CommandResult, ToolOutput
from agents.harness.tools.output import bounded
from agents.harness.tools.paths import folder_inside, is_link, parts_inside
from agents.harness.tools.registry import Tool, ToolContext, object_schema

TIMEOUT_SECONDS = 30
MOST_FILES = 1000
MOST_LINES = 400
MOST_LINES_OF_ONE_FILE = 50
LINE_CHARACTERS = 500
_MOST_ALTERNATIVES = 64

# Outside a repository the folder is given an empty one, so that git can search it all the same.
_PREPARE = (
    "git rev-parse --git-dir >/dev/null 2>&1 || "
    '{ export GIT_DIR="$(mktemp -d)/g" GIT_WORK_TREE=.; git init -q; }; '
)
_GIT = ["git", "-c", "core.quotepath=off", "-c", "grep.fullName=false", "--no-pager"]


def glob(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """The paths that match a pattern, in order."""
    pattern = str(arguments["pattern"])
    specs = [_glob_spec(one) for one in _alternatives(_inside(context, pattern))]
    listing = [*_GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    result = _search(context, [*listing, *specs])
    paths = sorted({path for path in _text(result).split("\0") if path})
    if result.exit_code != 0:
        raise ToolError(f"The search failed: {_text(result)[-500:]}")
    # A tracked file that has been deleted is still listed.
    paths = [path for path in paths if _exists(context, path)]
    if not paths:
        return ToolOutput("[no file matches; files that git ignores are not searched]")
    lines = paths[:MOST_FILES]
    if len(paths) > MOST_FILES:
        lines.append(f"[{len(paths) - MOST_FILES} more files; narrow the pattern down]")
    return ToolOutput(bounded(context, "\n".join(lines)))


def grep(context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """The lines that match a regular expression: `path:line:text`."""
    pattern = str(arguments["pattern"])
    folder = _existing(context, str(arguments.get("path", ".")))
    specs = _specs(context, folder, arguments.get("glob"))
    command = [*_GIT, "grep", "--untracked", "--no-color", "-nI", f"-m{MOST_LINES_OF_ONE_FILE}"]
    result = _search(context, [*command, "-P", "-e", pattern, "--", *specs])
    if result.exit_code not in (0, 1) and "USE_LIBPCRE" in _text(result):
        result = _search(context, [*command, "-E", "-e", pattern, "--", *specs])
    if result.exit_code == 1:
        return ToolOutput("[no line matches; files that git ignores and secrets are not searched]")
    if result.exit_code != 0:
        raise ToolError(f"The search failed: {_text(result)[-500:].strip()}")
    lines = [_shortened(line) for line in _text(result).split("\n") if line]
    shown = lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        shown.append(f"[{len(lines) - MOST_LINES} more lines; narrow the search down]")
    return ToolOutput(bounded(context, "\n".join(shown)))


def _search(context: ToolContext, command: list[str]) -> CommandResult:
    try:
        result = context.shell.run(
            _PREPARE + shlex.join(command),
            timeout_seconds=TIMEOUT_SECONDS,
            on_output=lambda _chunk: None,  # it is shown as a whole
            cancel=context.cancel,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"The search could not be started: {error}") from error
    if result.ended_by == "exit":
        return result
    raise ToolError("The search was stopped: it took too long or found too much. Narrow it down.")


def _text(result: CommandResult) -> str:
    return result.output.decode("utf-8", "replace")


def _inside(context: ToolContext, pattern: str) -> str:
    """A pattern relative to the workspace."""
    return "/".join(parts_inside(context.workspace, pattern)) or "**"


def _existing(context: ToolContext, path: str) -> tuple[str, ...]:
    """The components of a path that exists and is no link."""
    parts = parts_inside(context.workspace, path)
    if not parts:
        return parts
    with folder_inside(context.workspace, parts[:-1]) as folder:
        if is_link(folder, parts[-1]):
            raise ToolError(f"{path} is a symbolic link; links are not followed.")
    if not _exists(context, "/".join(parts)):
        raise ToolError(f"{path} does not exist.")
    return parts


def _exists(context: ToolContext, path: str) -> bool:
    found = context.workspace / path
    return found.is_symlink() or found.exists()


def _specs(context: ToolContext, folder: tuple[str, ...], pattern: object) -> list[str]:
    """What git is to search: a folder, maybe a pattern below it, and never a secret."""
    excluded = [f":(exclude,icase,glob)**/{secret}" for secret in SECRET_GLOBS]
    if pattern is None:
        return [f":(literal){'/'.join(folder)}" if folder else ".", *excluded]
    prefix = "".join(f"{_escaped(name)}/" for name in folder)
    wanted = [prefix + _anywhere(one) for one in _alternatives(_inside(context, str(pattern)))]
    return [*(f":(glob){one}" for one in wanted), *excluded]


def _glob_spec(pattern: str) -> str:
    return f":(glob){_anywhere(pattern)}"


def _anywhere(pattern: str) -> str:
    """A pattern without a slash matches in every folder, as in .gitignore."""
    return pattern if "/" in pattern else f"**/{pattern}"


def _escaped(name: str) -> str:
    return re.sub(r"([*?\[\\])", r"\\\1", name)


def _alternatives(pattern: str) -> list[str]:
    """Expand `{a,b}`, which git does not know."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop(0)
        match = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if match is None:
            done.append(one)
        else:
            before, after = one[: match.start()], one[match.end() :]
            waiting += [before + choice + after for choice in match[1].split(",")]
        if len(done) + len(waiting) > _MOST_ALTERNATIVES:
            raise ToolError("The pattern has too many alternatives.")
    return done


def _shortened(line: str) -> str:
    line = line.rstrip("\r")
    return line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]} [...]"


TOOLS = (
    Tool(
        name="glob",
        description=(
            "Find files by name in the whole workspace, for example `*.py`, `src/**/test_*.ts` or "
            "`*.{css,html}`. A pattern without a slash matches in every folder. Use it when you "
            "know a part of a name; use grep when you know a part of the content. Files that git "
            "ignores are left out; list_files shows them."
        ),
        schema=object_schema({"pattern": {"type": "string", "minLength": 1, "maxLength": 1000}}),
        run=glob,
        read_only=True,
        repeatable=True,
    ),
    Tool(
        name="grep",
        description=(
            "Find lines by a regular expression (Perl's syntax, one line at a time) and show them "
            "as `path:line:text`. Use it to find where something is defined or used; do not use "
            "bash (grep, rg) for that. `path` is a file or folder to search, `glob` a pattern for "
            "file names, for example `*.py`. For text with brackets or dots escape them. Files "
            "that git ignores and files that may hold secrets are left out."
        ),
        schema=object_schema(
            {"pattern": {"type": "string", "minLength": 1, "maxLength": 2000}},
            {
                "path": {"type": "string", "description": "Relative to the workspace."},
                "glob": {"type": "string", "minLength": 1, "maxLength": 1000},
            },
        ),
        run=grep,
        read_only=True,
        repeatable=True,
    ),
)
