"""Git commands that only read (rule L4)."""

from collections.abc import Callable
from dataclasses import replace

from agents.harness.policy import files, programs_git_change
from agents.harness.policy.context import Context
from agents.harness.policy.programs_paths import Refused, check_read

_READING = frozenset(
    [
        "status",
        "log",
        "diff",
        "show",
        "blame",
        "shortlog",
        "grep",
        "ls-files",
        "ls-tree",
        "rev-parse",
        "rev-list",
        "for-each-ref",
        "describe",
        "cat-file",
        "name-rev",
        "merge-base",
        "count-objects",
        "cherry",
    ]
)
# Options that write a file, start a program or look elsewhere; every abbreviation counts.
_DANGEROUS = (
    "--output", "--ext-diff", "--textconv", "--open-files-in-pager", "--no-index", "--contents",
    "--exec-path", "--upload-pack", "--git-dir", "--work-tree", "--filters", "--ignore-revs-file",
    "--batch-command", "--from-file", "--stdin", "--pathspec-from-file", "--exclude-from",
)  # fmt: skip
_HARMLESS_GLOBAL = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
_SAFE_KEYS = ("color.", "advice.", "log.")
_SAFE_SETTINGS = frozenset(
    {"core.quotepath", "user.name", "user.email", "diff.renames", "init.defaultbranch"}
)


def check(context: Context, arguments: list[str]) -> str:
    """`L4`. Raises Refused if this git command discards, rewrites or does more than git."""
    rest, context = _after_global_options(context, arguments)
    if not rest:
        raise Refused("A9", "`git` without a command is not known")
    name, options = rest[0], rest[1:]
    if name in _LISTINGS and _LISTINGS[name](options):
        pass
    elif name in programs_git_change.CHECKS:
        if not files.is_inside(context, context.cwd or str(context.workspace)):
            raise Refused("A4", f"Changes a repository outside the workspace (git {name})")
        return programs_git_change.CHECKS[name](context, options)
    elif name in _READING:
        _check_options(name, options)
    else:
        raise Refused("A7", f"`git {name}` may change the history, the files or the settings")
    for option in options:
        _check_path(context, option)
    return "L4"


def _after_global_options(context: Context, arguments: list[str]) -> tuple[list[str], Context]:
    """The command with its words, and the context in the folder where it works."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _HARMLESS_GLOBAL:
            continue
        if option == "-C" and rest:
            folder = rest.pop(0)
            check_read(context, folder, metadata_only=True)
            context = replace(context, cwd=files.real(context, folder))
        elif option == "-c" and rest and _is_safe_setting(rest[0]):
            rest.pop(0)
        else:
            raise Refused("A7", f"`git {option}` changes what git does")
    return rest, context


def _is_safe_setting(setting: str) -> bool:
    key, _, value = setting.casefold().partition("=")
    if key == "core.pager" or key.startswith("pager."):
        return value == "cat"
    return key in _SAFE_SETTINGS or key.startswith(_SAFE_KEYS)


def _check_options(name: str, options: list[str]) -> None:
    for option in options:
        if option == "--":
            return
        head = option.partition("=")[0]
        shortest = 4  # `--ou` for `--output`; shorter ones are ambiguous to git
        if head.startswith("--"):
            if len(head) >= shortest and any(word.startswith(head) for word in _DANGEROUS):
                raise Refused("A7", f"`git {name} {option}` may write files or start programs")
        elif head.startswith("-O") or (name == "blame" and head.startswith("-S")):
            raise Refused("A7", f"`git {name} {option}` may start programs or read elsewhere")
        elif name in ("grep", "ls-files") and head.startswith(("-f", "-X")):
            raise Refused("A13", f"`git {name} {option}` reads another file")


def _check_path(context: Context, option: str) -> None:
    """Both `path` and `revision:path` may name a secret, or something outside."""
    if option.startswith(":("):
        raise Refused("A9", f"`{option}` is a path that git reads in a way of its own")
    if option.startswith("-"):
        if ":" in option:  # -L1,9:path
            check_read(context, option.rpartition(":")[2])
        return
    check_read(context, option.rpartition(":")[2] or option)
    if ":" in option and not option.startswith(":"):
        check_read(context, option.partition(":")[2])


def _only(*allowed: str) -> Callable[[list[str]], bool]:
    return lambda options: set(options) <= set(allowed)


def _list_first(*first: str) -> Callable[[list[str]], bool]:
    """The first word says that it lists; nothing after it changes that."""
    return lambda options: (
        options[:1] in [[word] for word in first]
        and not any(option.startswith("-") for option in options[1:])
    )


_LISTINGS: dict[str, Callable[[list[str]], bool]] = {
    "branch": _only("-a", "-r", "-v", "-vv", "--all", "--list", "--show-current", "--remotes"),
    "tag": lambda options: not options or _list_first("-l", "--list", "-n")(options),
    "stash": _list_first("list", "show"),
    "worktree": _list_first("list"),
    "remote": _only("-v", "--verbose"),
    "reflog": lambda options: not options or options == ["show"],
    "config": lambda options: (
        len(options) == 2 and options[0] == "--get" and not options[1].startswith("-")  # noqa: PLR2004
    ),
    "version": _only(),
    "help": _only("-a"),
}
