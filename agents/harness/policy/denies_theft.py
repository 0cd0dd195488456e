"""Rule D7: no secret leaves, nobody gets a shell here, nothing stays behind for later."""

import itertools
import re
from collections.abc import Callable, Iterator

from agents.harness.policy import files, network, targets
from agents.harness.policy.commands import Command
from agents.harness.policy.context import Context
from agents.harness.policy.findings import Finding
from agents.harness.policy.shell import names_secret, reads_secret
from agents.harness.policy.wrappers import SHELLS

NET_CATS = frozenset({"nc", "ncat", "netcat"})
_LONGEST_PIPE = 50
NET_DEVICE = re.compile(r"/dev/(?:tcp|udp)/")
_NET_EXEC = re.compile(r"-\w*[ec]$|--(?:sh-)?exec")
_SOCAT_EXEC = re.compile(r"(?i)\b(?:exec|system):")
THEFT = Finding("D7", "Sends a secret to another machine")
REVERSE_SHELL = Finding("D7", "Gives another machine a shell here")


def stays_behind(context: Context, command: Command) -> Iterator[Finding]:
    """Log-in and system-wide persistence."""
    for path in targets.written(context, command):
        if files.is_persistence(path):
            yield Finding("D7", f"Leaves a back door ({path})")
    checks_only = any(re.match(r"-\w*c|--check", argument) for argument in command.arguments)
    if command.name in ("visudo", "vipw", "vigr") and not checks_only:
        yield Finding("D7", f"Leaves a back door ({command.name})")


def reverse_shells(_context: Context, command: Command) -> Iterator[Finding]:
    """A shell whose input and output are a connection."""
    name, line = command.name, " ".join(command.arguments)
    if name in SHELLS:
        targets_of = [one.target.text for one in command.redirections]
        found = any(NET_DEVICE.match(text) for text in targets_of) or _told_by_net(command)
    elif name in NET_CATS:
        found = any(_NET_EXEC.match(argument) for argument in command.arguments)
        found = found or _listens_to_shell(command)
    else:
        found = name == "socat" and _SOCAT_EXEC.search(line) is not None
    if found:
        yield REVERSE_SHELL


def _listens_to_shell(command: Command) -> bool:
    """`cat fifo | sh -i | nc host port`: what the shell says goes outside."""
    upstream = command.upstream
    return (
        upstream is not None
        and upstream.name in SHELLS
        and all(argument.startswith("-") for argument in upstream.arguments)
    )


def _told_by_net(command: Command) -> bool:
    """`nc host port | sh | nc host port`: what the shell is told comes from outside."""
    before = command.upstream
    if before is None:
        return False
    if before.name == "openssl":
        return before.arguments[:1] == ["s_client"]
    return before.name in (*NET_CATS, "telnet", "socat")


def leaks(context: Context, command: Command) -> Iterator[Finding]:
    """A secret in the arguments, in the input or upstream of a connection to outside."""
    if network.is_outside(command) and (
        _carries_secret(context, command) or secret_upstream(context, command)
    ):
        yield THEFT


def _carries_secret(context: Context, command: Command) -> bool:
    if any(word.tainted for word in command.words):
        return True
    if command.name in ("ssh", "git"):
        return False  # `ssh -i key host` uses a key to log in, it does not send it
    keys = _keys(command)
    texts = [text.lstrip("@<") for text in command.arguments if text not in keys]
    inputs = [one.target for one in command.redirections if one.operator in ("<", "<>", "<<<")]
    texts += [word.text for word in inputs]
    return any(word.tainted for word in inputs) or any(
        names_secret(context, text, command.cwd) for text in texts
    )


def _keys(command: Command) -> set[str]:
    """The words behind `-i`, `--cert`, `--key`, `--cacert`: they are used, not sent."""
    options = {"-i", "--cert", "--key", "--cacert", "-E", "-CAfile"}
    if command.name != "curl":
        options.add("-F")
    return {after for before, after in itertools.pairwise(command.arguments) if before in options}


def secret_upstream(context: Context, command: Command) -> bool:
    """Whether something that pipes into the command, at whatever distance, reads a secret."""
    upstream = command.upstream
    for _ in range(_LONGEST_PIPE):
        if upstream is None:
            return False
        if reads_secret(context, upstream):
            return True
        upstream = upstream.upstream
    return False


RULES: tuple[Callable[[Context, Command], Iterator[Finding]], ...] = (
    stays_behind,
    reverse_shells,
    leaks,
)
