"""Git commands that add to the local history or the index (rule L4)."""

import re
from collections.abc import Callable

from agents.harness.policy import files
from agents.harness.policy.context import Context
from agents.harness.policy.programs_archives import check_patch_file
from agents.harness.policy.programs_paths import Refused, check_change, check_read

_REVISION = re.compile(r"[\w./@^~{}:-]+")
_NAME = re.compile(r"[A-Za-z0-9_][\w./+-]*")
# `git reset a/b.py` unstages it; a branch of such a name would be odd.
_LOOKS_LIKE_FILE = re.compile(r"(?!origin/|refs/|HEAD)[\w./-]*\.[A-Za-z]\w*")
_SHORT_COMMIT = re.compile(r"-[aqvs]+m?|-[aqvs]*m(?=.)")
_Options = tuple[str, ...]


def _plain(name: str, words: list[str], flags: _Options, values: _Options = ()) -> list[str]:
    """The words that are no options; what is behind `--` stands behind it here, too."""
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*found, word, *rest]
        if not word.startswith("-") or word == "-":
            found.append(word)
        elif word in values and rest:
            rest.pop(0)
        elif word not in flags and not any(
            word.startswith(f"{value}=") for value in values if value.startswith("--")
        ):
            raise Refused("A7", f"`git {name} {word}` may change the history or start programs")
    return found


def _paths(context: Context, words: list[str], *, change: bool) -> None:
    for word in words:
        if word == "--":
            continue
        if word.startswith(":"):
            raise Refused("A7", f"`{word}` is a path that git reads in a way of its own")
        if files.is_secret(files.real(context, word)):
            raise Refused("A12", f"Commits a file that may hold secrets ({word})")
        (check_change if change else check_read)(context, word)


def _add(context: Context, words: list[str]) -> str:
    found = _plain("add", words, ("-A", "--all", "-u", "--update", "-v", "--verbose", "-N", "-n",
                                  "--intent-to-add", "--dry-run"))  # fmt: skip
    _paths(context, found, change=False)
    if any(word in ("-A", "--all", ".") for word in words):
        for name in context.files.matches(".env*", folder=str(context.workspace), limit=50):
            # What git ignores is not added, but which files those are is not looked at here.
            if files.is_secret(name) and not _is_ignored(context, name.rpartition("/")[2]):
                raise Refused("A12", f"Commits a file that may hold secrets ({name})")
    return "L4"


def _is_ignored(context: Context, name: str) -> bool:
    """Whether the `.gitignore` at the top names such files in the usual ways."""
    content = context.files.read(f"{context.workspace}/.gitignore") or b""
    lines = {line.strip().lstrip("/") for line in content.decode("utf-8", "replace").splitlines()}
    return bool(lines & {name, ".env*", ".env.*" if name != ".env" else name, "*.env"})


def _commit(context: Context, words: list[str]) -> str:
    rest: list[str] = []
    given = list(words)
    while given:
        word = given.pop(0)
        if word == "--":
            rest += given
            break
        if re.fullmatch(r"-[aqvs]*m", word) and given:
            given.pop(0)
        elif re.fullmatch(r"-[aqvs]+|-[aqvs]*m.+", word, re.DOTALL):
            continue
        elif word in ("-F", "--file") and given:
            if given[0] != "-":
                check_read(context, given[0])
            given.pop(0)
        else:
            rest.append(word)
    found = _plain("commit", rest, ("--all", "--quiet", "--verbose", "--allow-empty", "--signoff",
                   "--dry-run", "--no-edit", "--no-gpg-sign", "--no-status", "--short"),
                   ("--message", "--author", "--date", "--fixup", "--squash", "--trailer"))  # fmt: skip
    _paths(context, found, change=False)
    return "L4"


def _revisions(
    name: str, flags: _Options, values: _Options = ()
) -> Callable[[Context, list[str]], str]:
    def check(_context: Context, words: list[str]) -> str:
        for word in _plain(name, words, flags, values):
            if not _REVISION.fullmatch(word):
                raise Refused("A7", f"`git {name} {word}` is not known")
        return "L4"

    return check


def _apply(context: Context, words: list[str]) -> str:
    found = _plain("apply", words, ("--check", "--stat", "--numstat", "--summary", "-v", "--verbose",
                   "-3", "--3way", "--cached", "--index", "-R", "--reverse", "--recount", "-p1", "-p0",
                   "--reject", "--whitespace=fix", "--whitespace=nowarn", "--ignore-whitespace"))  # fmt: skip
    for word in found:
        if word != "-":
            check_patch_file(context, word)
    if {"--check", "--stat", "--numstat", "--summary"} & set(words) and "--apply" not in words:
        return "L4"
    if not found or "-" in found:
        raise Refused("A5", "Changes the files that a patch names, which cannot be looked at")
    return "L4"


def _stash(context: Context, words: list[str]) -> str:
    verb = words[0] if words and not words[0].startswith("-") else "push"
    rest = words[1:] if words and words[0] == verb else words
    if verb in ("push", "save"):
        flags = (
            "-u",
            "--include-untracked",
            "-k",
            "--keep-index",
            "-q",
            "--quiet",
            "--staged",
            "-S",
        )
        found = _plain("stash push", rest, flags, ("-m", "--message"))
        _paths(context, found, change=False)
    elif verb in ("pop", "apply"):
        _revisions(f"stash {verb}", ("--index", "-q", "--quiet"))(context, rest)
    else:
        raise Refused("A7", f"`git stash {verb}` may lose what was put aside")
    return "L4"


def _create(
    name: str, flags: _Options, values: _Options = ()
) -> Callable[[Context, list[str]], str]:
    """`git branch NAME [START]`, `git tag [-a] [-m TEXT] NAME [COMMIT]`."""

    def check(_context: Context, words: list[str]) -> str:
        found = _plain(name, words, flags, values)
        two = 2
        if not 1 <= len(found) <= two or not _NAME.fullmatch(found[0]):
            raise Refused("A7", f"`git {name}` like this is not known")
        if len(found) == two and not _REVISION.fullmatch(found[1]):
            raise Refused("A7", f"`git {name}` like this is not known")
        return "L4"

    return check


def _switch(_context: Context, words: list[str]) -> str:
    found = _plain(
        "switch", words, ("-c", "--create", "-q", "--quiet", "-d", "--detach", "--track", "-")
    )
    two = 2
    if not 1 <= len(found) <= two or not all(_REVISION.fullmatch(word) for word in found):
        raise Refused("A7", "`git switch` like this is not known")
    return "L4"


def _checkout(context: Context, words: list[str]) -> str:
    """Switching branches, creating one, and restoring files that are named."""
    found = _plain(
        "checkout", words, ("-b", "-q", "--quiet", "--detach", "--track", "--ours", "--theirs")
    )
    if "--" in found:
        at = found.index("--")
        if at > 1 or not all(_REVISION.fullmatch(word) for word in found[:at]):
            raise Refused("A7", "`git checkout` like this is not known")
        _named(context, found[at + 1 :])
        return "L4"
    if "-b" in words:
        two = 2
        is_known = 1 <= len(found) <= two and all(_REVISION.fullmatch(word) for word in found)
    else:
        # A name may be that of a branch or that of a file; both are restored by themselves only.
        is_known = len(found) == 1 and _REVISION.fullmatch(found[0]) is not None
        is_known = is_known and found[0].strip("./") != ""
    if not is_known:
        raise Refused("A7", "Discards changes, or may do so (git checkout)")
    if found and found[0] != "-" and "-b" not in words:
        _not_a_folder(context, found[0])
    return "L4"


def _not_a_folder(context: Context, word: str) -> None:
    if context.files.matches(f"{word}/*", folder=context.cwd or str(context.workspace), limit=1):
        raise Refused("A7", f"Discards all changes in a folder ({word})")


def _named(context: Context, paths: list[str]) -> None:
    """Files may be restored by name, but not everything at once."""
    if not paths:
        raise Refused("A7", "Discards changes that are not named")
    for path in paths:
        if path.startswith(":") or path.rstrip("/") in ("", ".", "..") or set("*?[") & set(path):
            raise Refused("A7", f"Discards all changes ({path})")
        check_change(context, path)


def _restore(context: Context, words: list[str]) -> str:
    found = _plain("restore", words, ("--staged", "-S", "--worktree", "-W", "-q", "--quiet", "--ours",
                                      "--theirs"), ("--source", "-s"))  # fmt: skip
    paths = [word for word in found if word != "--"]
    is_staged = ("--staged" in words or "-S" in words) and not {"--worktree", "-W"} & set(words)
    if is_staged:
        for path in paths:
            check_read(context, path, metadata_only=True)
        return "L4"
    _named(context, paths)
    return "L4"


def _reset(context: Context, words: list[str]) -> str:
    """Unstaging: `git reset [HEAD] [--] PATH...`."""
    found = _plain("reset", words, ("-q", "--quiet"))
    paths = [word for word in found if word not in ("--", "HEAD")]
    is_file = bool(found) and all(_LOOKS_LIKE_FILE.fullmatch(word) for word in found)
    if found and found[0] not in ("HEAD", "--") and "--" not in found and not is_file:
        raise Refused("A7", "Moves the branch to another commit, or may do so (git reset)")
    for path in paths:
        check_read(context, path, metadata_only=True)
    return "L4"


def _move(name: str) -> Callable[[Context, list[str]], str]:
    def check(context: Context, words: list[str]) -> str:
        found = [w for w in _plain(name, words, ("-v", "-k", "-n", "--cached", "-q")) if w != "--"]
        if name == "rm" and "--cached" not in words:
            for path in found:
                place = files.real(context, path)
                if context.files.matches("*", folder=place, limit=1):
                    raise Refused("A3", f"Deletes a folder with all that is in it ({path})")
        for path in found:
            check_change(context, path)
        return "L4"

    return check


CHECKS: dict[str, Callable[[Context, list[str]], str]] = {
    "add": _add,
    "commit": _commit,
    "merge": _revisions("merge", ("--no-edit", "--no-ff", "--ff-only", "--ff", "--squash", "--abort",
                                  "--continue", "--no-commit", "--stat", "-q"), ("-m", "-X")),
    "cherry-pick": _revisions("cherry-pick", ("-x", "--no-commit", "-n", "--abort", "--continue",
                                              "--skip", "--no-edit"), ("-m", "-X")),
    "revert": _revisions("revert", ("--no-edit", "--no-commit", "-n", "--abort", "--continue"), ("-m",)),
    "apply": _apply,
    "stash": _stash,
    "branch": _create("branch", ("--track", "--no-track", "-q")),
    "tag": _create("tag", ("-a", "--annotate"), ("-m", "--message")),
    "switch": _switch,
    "checkout": _checkout,
    "restore": _restore,
    "reset": _reset,
    "mv": _move("mv"),
    "rm": _move("rm"),
}  # fmt: skip
