"""Tool profiles: the least set of tools that a task needs, and what of the shell goes with it.

A profile only takes away. What it leaves is judged by the policy as ever.
"""

from collections.abc import Sequence
from enum import StrEnum


class Profile(StrEnum):
    """The profiles, narrowest first; the same words as `board.states.ToolProfile`."""

    READ_ONLY = "read-only"
    EDIT = "edit"
    EDIT_TEST = "edit-test"
    FULL = "full"


_READING_TOOLS = frozenset(
    {"read_file", "list_files", "glob", "grep", "bash", "todo_write", "report_result"}
)
_FILE_TOOLS = frozenset({"write_file", "edit_file"})
_READING = frozenset({"L1", "L6"})
_TESTING = frozenset({"L1", "L2", "L3", "L4", "L5", "L6"})
_GIT_READING = frozenset(
    ["status", "log", "diff", "show", "blame", "shortlog", "grep", "ls-files", "rev-parse",
     "for-each-ref", "cat-file", "describe", "ls-tree", "rev-list", "merge-base", "name-rev",
     "show-ref", "diff-tree"]
)  # fmt: skip
_GIT_LISTS = frozenset(
    [("branch",), ("branch", "-a"), ("branch", "-r"), ("branch", "-v"), ("branch", "-vv"),
     ("branch", "--list"), ("branch", "--show-current"), ("tag",), ("tag", "-l"),
     ("tag", "--list"), ("stash", "list"), ("remote",), ("remote", "-v"), ("worktree", "list")]
)  # fmt: skip


def narrower(first: str, second: str) -> Profile:
    """The narrower of two profiles; empty is `full`."""
    order = [*Profile]
    return min(Profile(first or Profile.FULL), Profile(second or Profile.FULL), key=order.index)


def has_tool(profile: Profile, tool: str) -> bool:
    """Whether a profile has a tool at all; one that is not known only if it has everything."""
    match profile:
        case Profile.READ_ONLY:
            return tool in _READING_TOOLS
        case Profile.EDIT | Profile.EDIT_TEST:
            return tool in _READING_TOOLS | _FILE_TOOLS
        case Profile.FULL:
            return True


def has_command(
    profile: Profile, rules: Sequence[str], argv: Sequence[Sequence[str]], *, is_check: bool
) -> bool:
    """Whether a profile has a shell text that the built-in `rules` allow; none: they do not."""
    match profile:
        case Profile.READ_ONLY | Profile.EDIT:
            return not is_check and bool(rules) and _only_reads(rules, argv)
        case Profile.EDIT_TEST:
            return is_check or (bool(rules) and _TESTING.issuperset(rules))
        case Profile.FULL:
            return True


def _only_reads(rules: Sequence[str], argv: Sequence[Sequence[str]]) -> bool:
    """git's rule covers reading and adding, so its commands are looked at one by one."""
    if not (_READING | {"L4"}).issuperset(rules):
        return False
    return all(_reads_history(words[1:]) for words in argv if words and words[0] == "git")


def _reads_history(words: Sequence[str]) -> bool:
    plain = list(words)
    while plain[:1] in (["--no-pager"], ["-P"]) or plain[:1] == ["-c"]:
        del plain[: 2 if plain[0] == "-c" else 1]
    return tuple(plain) in _GIT_LISTS or (bool(plain) and plain[0] in _GIT_READING)
