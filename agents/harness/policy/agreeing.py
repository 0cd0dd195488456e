"""A second reader of shell texts: where it sees other commands than the strict one, we do not know."""

import tree_sitter
import tree_sitter_bash

from agents.harness.policy.simple import NotUnderstoodError

_LANGUAGE = tree_sitter.Language(tree_sitter_bash.language())
_HEADS = tree_sitter.Query(
    _LANGUAGE,
    "(command name: (command_name) @head) (declaration_command) @head (unset_command) @head"
    " (test_command) @test (ERROR) @error (MISSING) @error",
)
_PREFIXES = ("time", "!")  # of a pipeline; the other reader takes the first for a command


def check(text: str, heads: frozenset[int]) -> None:
    """Raise NotUnderstoodError unless the same commands begin at the same places."""
    source = text.encode()
    tree = tree_sitter.Parser(_LANGUAGE).parse(source)
    found = tree_sitter.QueryCursor(_HEADS).captures(tree.root_node)
    if "error" in found or tree.root_node.has_error:
        raise NotUnderstoodError("the two readers of it do not agree")
    seen = {node.start_byte for node in found.get("head", [])}
    for node in found.get("test", []):
        if source[node.start_byte : node.start_byte + 2] != b"[[":
            seen.add(node.start_byte)
    if not text.isascii():
        seen = {len(source[:at].decode("utf-8", "replace")) for at in seen}
    if _without_time(text, seen, frozenset(heads)) != heads:
        raise NotUnderstoodError("the two readers of it do not agree")


def _without_time(text: str, seen: set[int], expected: frozenset[int]) -> set[int]:
    """The other reader takes `time` for a command: what stands behind it is one."""
    found = set(seen)
    for at in seen - expected:
        if text.startswith("time", at):
            rest = text[at + 4 :]
            begin = at + 4 + len(rest) - len(rest.lstrip(" \t"))
            found.discard(at)
            if not text.startswith("(", begin):  # the commands in it have been seen by themselves
                found.add(begin + (3 if text.startswith("-p ", begin) else 0))
    return found
