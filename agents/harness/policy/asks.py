"""Why a command has to be asked for, in words for the person who is asked (rules A1 to A12).

The answer does not depend on this: what is not allowed asks. This finds the reasons that count.
"""

import re
from collections.abc import Iterator, Sequence

from agents.harness.policy import files, network, targets
from agents.harness.policy.code import INTERPRETERS
from agents.harness.policy.commands import Command
from agents.harness.policy.context import Context
from agents.harness.policy.findings import Finding
from agents.harness.policy.shell import reads_secret

_MOST_COMMANDS = 200  # nobody reads more reasons
_SEVERITY = (
    "A6",
    "A12",
    "A11",
    "A5",
    "A4",
    "A3",
    "A7",
    "A2",
    "A1",
    "A13",
    "A10",
    "A8",
    "A9",
    "A14",
)

_INSTALLS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("pip", "pip3", "pipx", "conda", "mamba", "gem", "brew", "corepack"),
                    frozenset({"install", "uninstall", "download", "upgrade", "enable", "create"})),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"),
                    frozenset({"install", "i", "ci", "add", "remove", "uninstall", "update",
                               "upgrade", "dlx", "create", "init", "link"})),
    **dict.fromkeys(("apt", "apt-get", "dnf", "yum", "apk", "pacman", "zypper"),
                    frozenset({"install", "add", "remove", "purge", "update", "upgrade", "-S"})),
    "uv": frozenset({"add", "remove", "sync", "pip", "tool", "lock"}),
    "poetry": frozenset({"add", "remove", "install", "update", "lock"}),
    "cargo": frozenset({"install", "add", "remove", "update"}),
    "dpkg": frozenset({"-i", "--install", "-r", "--remove", "-P", "--purge", "--unpack", "--configure"}),
    "rpm": frozenset({"-i", "-ivh", "-U", "-Uvh", "-F", "-e", "--install", "--upgrade", "--erase"}),
    "go": frozenset({"install", "get", "mod"}),
    "bundle": frozenset({"install", "add", "update"}),
    "composer": frozenset({"install", "require", "update"}),
}  # fmt: skip
_PRIVILEGE = frozenset(
    [
        "sudo",
        "su",
        "doas",
        "pkexec",
        "chown",
        "chgrp",
        "mount",
        "umount",
        "useradd",
        "usermod",
        "userdel",
        "groupadd",
        "passwd",
        "visudo",
        "systemctl",
        "service",
        "setcap",
        "iptables",
        "nft",
        "ufw",
    ]
)
_OUTLIVING = frozenset(
    {"nohup", "setsid", "disown", "crontab", "at", "batch", "systemd-run", "tmux", "screen"}
)
_INFRASTRUCTURE = frozenset(
    [
        "kubectl",
        "helm",
        "oc",
        "terraform",
        "tofu",
        "pulumi",
        "ansible",
        "ansible-playbook",
        "aws",
        "gcloud",
        "az",
        "doctl",
        "flyctl",
        "fly",
        "heroku",
        "vercel",
        "netlify",
        "docker",
        "podman",
        "nerdctl",
        "docker-compose",
        "psql",
        "mysql",
        "mongosh",
        "redis-cli",
        "mongo",
        "twine",
    ]
)
_DELETING = frozenset({"rm", "rmdir", "shred", "unlink"})
_CHANGES_DATA = re.compile(r"(?i)\b(?:delete|drop|truncate|update|insert|alter|replace)\b")
_RUNNERS = frozenset({"npx", "uvx", "pipx", "bunx"})
_PUBLISHERS = frozenset({"npm", "pnpm", "yarn", "cargo", "make", "gh", "poetry", "uv"})
_PUBLISHING = re.compile(r"^(?:publish|deploy|release|upload|push)\b")
_GIT_HISTORY = frozenset(
    [
        "reset",
        "rebase",
        "filter-branch",
        "filter-repo",
        "update-ref",
        "reflog",
        "gc",
        "prune",
        "clean",
        "checkout",
        "restore",
        "switch",
        "branch",
        "tag",
        "stash",
        "worktree",
        "config",
        "commit",
        "merge",
        "cherry-pick",
        "revert",
        "am",
        "apply",
        "rm",
        "mv",
        "submodule",
        "notes",
        "replace",
        "symbolic-ref",
    ]
)
_GIT_NETWORK = frozenset(["push", "fetch", "pull", "clone", "ls-remote", "remote", "submodule"])
_LOADERS = re.compile(
    r"LD_\w+|DYLD_\w+|BASH_ENV|ENV|PATH|NODE_OPTIONS|PYTHONSTARTUP|PYTHONPATH|PERL5OPT|RUBYOPT"
    r"|GIT_\w+|PAGER|EDITOR|VISUAL|LESSOPEN|BROWSER"
)


def reasons(context: Context, commands: Sequence[Command]) -> list[Finding]:
    """The reasons to ask, worst first, each once."""
    found = [
        finding
        for command in commands[:_MOST_COMMANDS]
        for finding in _of_command(context, command)
    ]
    return by_severity(found)


def by_severity(findings: Sequence[Finding]) -> list[Finding]:
    """Worst first, each once."""
    return sorted(dict.fromkeys(findings), key=_severity)


def _severity(finding: Finding) -> int:
    return _SEVERITY.index(finding.rule) if finding.rule in _SEVERITY else -1


def _of_command(context: Context, command: Command) -> Iterator[Finding]:
    name = command.name
    shown = " ".join([name, *(a for a in command.arguments[:1] if a.isalnum())])
    yield from _by_program(command, shown)
    yield from _written(context, command)
    if reads_secret(context, command):
        yield Finding("A12", "Reads a file that may hold secrets")
    if command.words and not command.words[0].known:
        yield Finding("A9", "Runs a program whose name is not known beforehand")
    for variable, _ in command.assignments:
        if _LOADERS.fullmatch(variable):
            yield Finding("A9", f"Sets {variable}, which makes other programs run code")
    if command.background:
        yield Finding("A10", "Starts something in the background")


def _by_program(command: Command, shown: str) -> Iterator[Finding]:
    name, arguments = command.name, command.arguments
    if _installs(name, arguments):
        yield Finding("A2", f"Installs or removes packages, from the internet ({shown})")
    if name in _RUNNERS:
        yield Finding("A2", f"May run a package from the internet ({name})")
    if name in _PRIVILEGE or (name == "chmod" and _wide_mode(arguments)):
        yield Finding("A6", f"Changes rights, users or services ({shown})")
    if name == "git":
        yield from _git(arguments)
    elif network.is_client(command) and network.is_outside(command):
        yield Finding("A1", f"Connects to another machine ({name})")
    yield from _by_effect(command, shown)


def _installs(name: str, arguments: list[str]) -> bool:
    if re.fullmatch(r"python[\d.]*", name):
        return arguments[:2] == ["-m", "pip"]
    if name == "uv" and arguments[:1] == ["pip"]:
        return not {"list", "show", "freeze", "check", "tree"}.intersection(arguments[1:2])
    return bool(_INSTALLS.get(name, frozenset()).intersection(arguments))


def _by_effect(command: Command, shown: str) -> Iterator[Finding]:
    name, arguments = command.name, command.arguments
    if name in _OUTLIVING:
        yield Finding("A10", f"Starts something that goes on after the command ({name})")
    if name in _INFRASTRUCTURE:
        yield Finding("A11", f"Acts on infrastructure or data outside ({shown})")
    if name in _PUBLISHERS and any(_PUBLISHING.match(argument) for argument in arguments[:2]):
        yield Finding("A11", f"Publishes or deploys something ({shown})")
    yield from _by_text(command)
    if name in _DELETING or (name == "find" and "-delete" in arguments):
        yield Finding("A3", f"Deletes files ({' '.join(command.argv)[:80]})")
    if name == "sqlite3" and any(_CHANGES_DATA.search(argument) for argument in arguments):
        yield Finding("A11", "Changes the data of a database (sqlite3)")
    if name == "pre-commit" and "install" in arguments:
        yield Finding("A5", "Installs hooks (pre-commit)")


def _by_text(command: Command) -> Iterator[Finding]:
    if _runs_text(command):
        yield Finding("A8", f"Runs program text that was not looked at ({command.name})")
    if command.name in ("eval", "source", "."):
        yield Finding("A9", f"Runs text that may have been made elsewhere ({command.name})")


def _runs_text(command: Command) -> bool:
    if command.name in ("awk", "gawk", "mawk", "vim", "vi", "ex", "emacs"):
        return True
    language = re.sub(r"[\d.]+$", "", command.name)
    return bool(set(INTERPRETERS.get(language, ())).intersection(command.arguments))


def _wide_mode(arguments: list[str]) -> bool:
    return any(re.match(r"-\w*R|[0-7]*7{3}$|[ugoa]*\+s|[2467]\d{3}$", word) for word in arguments)


def _git(arguments: list[str]) -> Iterator[Finding]:
    plain = [argument for argument in arguments if not argument.startswith("-")]
    verb = plain[0] if plain else ""
    if verb in _GIT_NETWORK and not (verb == "remote" and len(plain) == 1):
        yield Finding("A1", f"Connects to another machine (git {verb})")
    elif verb in _GIT_HISTORY:
        yield Finding("A7", f"Changes the history, the files or the settings of git (git {verb})")


def _written(context: Context, command: Command) -> Iterator[Finding]:
    for path in targets.written(context, command):
        if path == "/dev/null":
            continue
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            yield Finding("A1", f"Connects to another machine ({path})")
        elif not files.is_inside(context, path):
            deletes = command.name in _DELETING
            rule, verb = ("A3", "Deletes") if deletes else ("A4", "Writes")
            yield Finding(rule, f"{verb} outside the workspace ({path})")
        elif files.is_protected(context, path):
            yield Finding("A5", f"Changes a protected file ({path})")
