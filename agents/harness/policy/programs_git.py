"""Git commands that only read (rule L4)."""

import itertools
import re
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
        "check-ignore",
        "check-attr",
        "check-ref-format",
        "diff-tree",
        "diff-index",
        "diff-files",
        "show-ref",
        "show-branch",
        "whatchanged",
        "range-diff",
        "var",
        "verify-commit",
        "version",
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
        options = [] if name in ("config", "format-patch") else options
    elif name in programs_git_change.CHECKS:
        if not files.is_inside(context, context.cwd or str(context.workspace)):
            raise Refused("A4", f"Changes a repository outside the workspace (git {name})")
        return programs_git_change.CHECKS[name](context, options)
    elif name in _READING:
        options = _without_index(context, options) if name == "diff" else options
        _check_options(name, options)
    else:
        raise Refused("A7", f"`git {name}` may change the history, the files or the settings")
    _check_paths(context, options)
    return "L4"


def _without_index(context: Context, options: list[str]) -> list[str]:
    """`git diff --no-index A B` reads two files, like `diff`."""
    rest = [one for one in options if one != "--no-index"]
    for one in rest if len(rest) < len(options) else ():
        if not one.startswith("-") and not files.is_inside(context, files.real(context, one)):
            raise Refused("A7", f"`git diff --no-index` reads another place ({one})")
    return rest


def _check_paths(context: Context, options: list[str]) -> None:
    for before, option in itertools.pairwise(["", *options]):
        if before != "-L":
            _check_path(context, option)
        elif ":" in option:  # a range, and a file behind the last colon
            check_read(context, option.rpartition(":")[2])


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


def _reads(
    pattern: str, *, needs: str = "", most: int = 0, verbs: tuple[str, ...] = ()
) -> Callable[[list[str]], bool]:
    """Options that match `pattern`, at most `most` plain words, and one option of `needs` if given.

    With `verbs` the first word has to be one of them.
    """

    def check(options: list[str]) -> bool:
        rest = list(options)
        if verbs:
            if rest[:1] not in [[verb] for verb in verbs]:
                return False
            rest = rest[1:]
        plain = [option for option in rest if not option.startswith("-")]
        known = all(re.fullmatch(pattern, option) for option in rest if option.startswith("-"))
        is_asked_for = not needs or any(re.fullmatch(needs, option) for option in rest)
        return known and is_asked_for and (len(plain) <= most)

    return check


_MANY = 50
_SELECTS = r"--(?:sort|format|contains|no-contains|merged|no-merged|points-at|column|color)(?:=.+)?|--no-color|-i"
_DIFFS = (
    r"-p|-u|-U\d+|--stat|--name-only|--name-status|--numstat|--shortstat|--patch|--color(?:=\w+)?|--no-color|-w|-M"
    r"|--include-untracked|--only-untracked|-n|-\d+|--oneline|--date=\w+|--format=.+|--pretty=.+|--all"
)
_LISTINGS: dict[str, Callable[[list[str]], bool]] = {
    "branch": lambda options: (
        _reads(rf"-[arv]+|--all|--list|-l|--show-current|--remotes|--verbose|{_SELECTS}")(options)
        or _reads(rf"-[arv]+|--all|--list|-l|--remotes|{_SELECTS}", most=_MANY,
                  needs=r"--list|-l|--(?:no-)?contains|--(?:no-)?merged|--points-at")(options)
    ),
    "tag": lambda options: not options or _reads(
        rf"-l|--list|-n\d*|{_SELECTS}", most=_MANY, needs=r"-l|--list|-n\d*|--(?:no-)?(?:contains|merged)|--points-at"
    )(options),
    "stash": _reads(_DIFFS, most=1, verbs=("list", "show")),
    "worktree": _reads(r"--porcelain|-v|-z|--verbose", verbs=("list",)),
    "remote": lambda options: (
        _reads(r"-v|--verbose")(options) or _reads(r"--push|--all", most=1, verbs=("get-url",))(options)
    ),
    "reflog": lambda options: (
        _reads(_DIFFS)(options) or _reads(_DIFFS, most=1, verbs=("show", "exists", "HEAD", "-n"))(options)
    ),
    "version": _reads(r"--build-options"),
    "help": _reads(r"-a|-g|--all|--guides", needs=r"-a|-g|--all|--guides"),
    "submodule": _reads(r"--recursive|--cached", most=_MANY, verbs=("status", "summary")),
    "notes": _reads(r"(?!)", most=1, verbs=("list", "show")),
    "bisect": _reads(r"(?!)", verbs=("log", "terms")),
    "symbolic-ref": _reads(r"-q|--short|--quiet", most=1),
    "format-patch": _reads(r"-\d+|--stdout|--no-stat|-k|-n\d*|-N|--root", most=1, needs=r"--stdout"),
    "am": _reads(r"--show-current-patch(?:=\w+)?", needs=r"--show-current-patch(?:=\w+)?"),
}  # fmt: skip


def _reads_setting(options: list[str]) -> bool:
    """`git config` with one key and nothing to set."""
    gets = r"--get|--get-all|--get-regexp|--list|-l|get|list"
    shows = (
        rf"{gets}|--name-only|--show-origin|--show-scope|-z|--null|--local|--type=\w+|--bool|--int"
    )
    plain = [option for option in options if not re.fullmatch(shows, option)]
    is_key = len(plain) == 1 and re.fullmatch(r"[A-Za-z][\w-]*(?:\.[\w/.*:@-]+)+", plain[0])
    is_list = not plain and any(option in ("--list", "-l", "list") for option in options)
    return is_list or (is_key is not None and bool(is_key))


_LISTINGS["config"] = _reads_setting
