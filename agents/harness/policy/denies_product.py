"""Rules D4 and D5: the gate stays on, and the product keeps its secrets."""

import itertools
import re
from collections.abc import Callable, Iterator

from agents.harness.policy import files, network, targets
from agents.harness.policy.commands import Command
from agents.harness.policy.context import Context
from agents.harness.policy.findings import Finding

SECRET_VARIABLES = re.compile(
    r"ANTHROPIC_(?:API_KEY|AUTH_TOKEN)|SECRET_KEY|DATABASE_URL|REDIS_URL|PULLCORD_\w*"
)
_LOOKED_FOR = re.compile(  # in a list of variables a part of a name in any case finds them
    rf"{SECRET_VARIABLES.pattern}|anthropic(?!_?\w)|pullcord", re.IGNORECASE
)
_LONGEST_PIPE = 20
_LISTS_VARIABLES = frozenset({"env", "printenv", "set", "declare", "typeset", "export"})
_SIFTS = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "awk", "gawk", "mawk", "sed"})
_SHOWS = frozenset(
    ["cat", "head", "tail", "tac", "nl", "grep", "egrep", "rg", "strings", "base64", "xxd", "od",
     "hexdump", "cp", "tar", "zip", "sed", "awk", "tr", "less", "more"]
)  # fmt: skip
_RESERVED = "PULLCORD_"
_OWN_PROCESSES = re.compile(r"pullcord|manage\.py[ .]+up|board\.asgi|celery.*-A[ .]*board")
_READS_FOLDERS = frozenset({"grep", "rg", "ag", "tar", "zip", "cp", "rsync", "scp", "mv"})
_DECLARING = frozenset({"declare", "typeset", "export"})
_SERVICE_TOOLS = frozenset({"systemctl", "service", "supervisorctl"})
_STOPPING = frozenset(
    {"stop", "restart", "kill", "disable", "mask", "reload", "try-restart", "reset-failed"}
)
_CODE_ENVIRONMENT = re.compile(r"(?i:environ)|getenv|\bENV\b|process\.env|%ENV|\$_ENV|\$_SERVER")
_ENVIRONMENT_TEXT = re.compile(r"/proc/\S*environ$")  # also with a part that is not known
_GREPS = _SIFTS - {"awk", "gawk", "mawk", "sed"}
_INVERTS = re.compile(
    r"-[^-efmABCdD]*v.*|--inv.*"
)  # what is behind the other letters is their value
_JQ_ENVIRONMENT = re.compile(r"\benv\b|\$ENV\b")
_CODE_VARIABLE = re.compile(r"(?:process\.env\.|ENV\{|\$ENV\{)['\"]?(\w+)")
_CODE_SETS = re.compile(  # a test may set such a variable for itself
    r"(?:environ\[|ENV\[|process\.env[.\[])['\"]?(\w+)['\"]?\]?\s*=[^=]"
    r"|setdefault\(\s*['\"](\w+)"
)
_CODE_WRITES = re.compile(
    r"write|open\s*\([^)]*['\"][wax+]|unlink|remove|rename|copy|move|truncate|rmtree|rmSync|chmod"
)

# Agents, and what switches off their own safeguards.
_AGENTS: dict[str, re.Pattern[str]] = {
    "claude": re.compile(r"--dangerously-skip-permissions|bypassPermissions|allow-dangerously"),
    "codex": re.compile(
        r"--dangerously-bypass|--yolo|danger-full-access|sandbox_mode=.?danger|-a never"
        r"|--ask-for-approval[= ]never"
    ),
    "gemini": re.compile(r"--yolo|(?:^| )-\w*y\b|--approval-mode[= ]yolo"),
    "qwen": re.compile(r"--yolo|(?:^| )-\w*y\b|--approval-mode[= ]yolo"),
    "aider": re.compile(r"--yes-always|--yes\b"),
    "cursor-agent": re.compile(r"--force|--yolo|(?:^| )-f\b"),
    "copilot": re.compile(r"--allow-all|--yolo"),
    "amp": re.compile(r"--dangerously-allow-all"),
    "crush": re.compile(r"--yolo|(?:^| )-y\b"),
    "opencode": re.compile(r"--dangerously|--yolo"),
    "droid": re.compile(r"--skip-permissions-unsafe"),
    "goose": re.compile(r"GOOSE_MODE=auto"),
    "cline": re.compile(r"--yolo|(?:^| )-y\b"),
}
# The packages that `npx` and its like start them from.
_PACKAGES = {
    "@anthropic-ai/claude-code": "claude",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini",
    "@qwen-code/qwen-code": "qwen",
    "aider-chat": "aider",
    "opencode-ai": "opencode",
    "@sourcegraph/amp": "amp",
    "@github/copilot": "copilot",
}


def changes_own_files(context: Context, command: Command) -> Iterator[Finding]:
    """D4: the policy and the product's files."""
    for path in targets.written(context, command):
        if files.is_policy(context, path):
            yield Finding("D4", f"Changes the policy ({path})")
        elif files.is_product(context, path):
            yield Finding("D4", f"Changes files of this product ({path})")


def stops_own_processes(context: Context, command: Command) -> Iterator[Finding]:
    """D4: the product's processes, by name."""
    kills = command.name in ("pkill", "killall", "skill", "xkill") or (
        command.name == "fuser" and any(re.match(r"-\w*k|--kill", a) for a in command.arguments)
    )
    stops = command.name in _SERVICE_TOOLS and _STOPPING.intersection(command.arguments)
    if (kills or stops) and names_own_process(context, command.arguments):
        yield Finding("D4", "Stops processes of this product")


def names_own_process(context: Context, arguments: list[str]) -> bool:
    """Whether words name the product's processes, or the port that they listen on."""
    line = " ".join(arguments)
    ports = {port for url in context.product_urls for _, port in network.addresses_in(url)}
    return _OWN_PROCESSES.search(line) is not None or any(
        re.search(rf"(?<![\d.]){port}(?!\d)", line) for port in ports if port
    )


def calls_own_address(context: Context, command: Command) -> Iterator[Finding]:
    """D4: the product's pages and its API, where approvals are given."""
    connects = network.is_client(command) or any(
        one.target.text.startswith("/dev/") for one in command.redirections
    )
    if connects and any(
        network.is_product(context, host, port) for host, port in network.addresses(command)
    ):
        yield Finding("D4", "Calls this product's own address")


def starts_unsafe_agents(_context: Context, command: Command) -> Iterator[Finding]:
    """D4: another agent with its own safeguards switched off."""
    package = re.sub(r"@[\w.^~-]+$", "", command.name)
    pattern = _AGENTS.get(_PACKAGES.get(package, package))
    line = " ".join([*(f"{name}={value.text}" for name, value in command.assignments),
                     *command.arguments])  # fmt: skip
    if pattern is not None and pattern.search(line):
        yield Finding("D4", f"Starts another agent without its safeguards ({command.name})")


def sets_own_variables(_context: Context, command: Command) -> Iterator[Finding]:
    """D4: variables that are reserved for the product."""
    names = [name for name, _ in command.assignments]
    if command.name in ("export", "declare", "typeset", "readonly", "local", "read", "unset"):
        names += command.arguments
    if command.name == "printf" and command.arguments[:1] == ["-v"]:
        names += command.arguments[1:2]
    for name in names:
        if name.startswith(_RESERVED):
            yield Finding("D4", f"Sets a variable of this product ({name.partition('=')[0]})")


def reads_product_secrets(context: Context, command: Command) -> Iterator[Finding]:
    """D5: key and data files, secret variables, environments of processes."""
    words = [*command.words, *(one.target for one in command.redirections)]
    words += [value for _, value in command.assignments]
    for word in words:
        for name in word.names:
            if SECRET_VARIABLES.fullmatch(name):
                yield Finding("D5", f"Uses a secret of this product (${name})")
    yield from _named_variables(command)
    if command.name not in ("echo", "printf", "ls", "stat", "test", "["):
        for text in _paths(command):
            path = files.real(context, text, cwd=command.cwd)
            in_proc = path == "/proc" or path.startswith("/proc/")
            found = in_proc and "environ" in command.arguments and _find_shows(command)
            if files.is_environment(path) or _ENVIRONMENT_TEXT.match(text) or found:
                yield Finding("D5", f"Reads the environment of a process ({text})")
            elif files.is_product_data(context, path) or _reads_all_of_it(context, command, path):
                yield Finding("D5", f"Reads secrets or data of this product ({text})")


def _reads_all_of_it(context: Context, command: Command, path: str) -> bool:
    """`grep -r key FOLDER` of the product reads its secrets, too; so does `find -exec cat`."""
    if command.name == "find":
        return _find_shows(command) and files.is_product(context, path)
    return command.name in _READS_FOLDERS and path in map(str, context.product_paths)


def _find_shows(command: Command) -> bool:
    """Whether `find` hands what it finds to a program that prints or copies it."""
    return any(
        before in ("-exec", "-execdir", "-ok", "-okdir") and word.rpartition("/")[2] in _SHOWS
        for before, word in itertools.pairwise(command.arguments)
    )


def _named_variables(command: Command) -> Iterator[Finding]:
    found = _printed_variable(command)
    if found:
        yield Finding("D5", f"Prints a secret of this product ({found})")
    if command.name == "ps" and any(
        "e" in word and word.isalpha() and not re.fullmatch(r"-\w*[oCpuUgGtsOq]|--\w+", before)
        for before, word in itertools.pairwise(["", *command.arguments])
    ):
        yield Finding("D5", "Shows the environment of other processes (ps e)")


def _printed_variable(command: Command) -> str:
    """What prints variables by their names, if one of them is a secret of the product."""
    name, arguments = command.name, command.arguments
    whole = [one for one in arguments if SECRET_VARIABLES.fullmatch(one)]
    part = SECRET_VARIABLES.search(" ".join(arguments))
    if name == "printenv" or (name in _DECLARING and "-p" in arguments):
        return whole[0] if whole else ""
    reads = name in ("jq", "gojq") and _JQ_ENVIRONMENT.search(" ".join(arguments)) is not None
    if name in _SIFTS and _is_given_variables(command) and not _leaves_out(command):
        part, reads = _LOOKED_FOR.search(" ".join(arguments)), True
    return part[0] if part is not None and reads else ""


def _leaves_out(command: Command) -> bool:
    """Whether `grep -v` shows all lines but those."""
    return command.name in _GREPS and any(map(_INVERTS.fullmatch, command.arguments))


def _is_given_variables(command: Command) -> bool:
    """Whether a list of all variables comes down the pipe, at whatever distance."""
    upstream = command.upstream
    for _ in range(_LONGEST_PIPE):
        if upstream is None or _lists_variables(upstream):
            break
        upstream = upstream.upstream
    return upstream is not None and _lists_variables(upstream)


def _lists_variables(command: Command) -> bool:
    """Whether it prints all variables; `env NAME=value COMMAND` prints what the command does."""
    return command.name in _LISTS_VARIABLES and (
        command.name != "env"
        or all(
            word.startswith("-") or "=" in word or before in ("-u", "--unset", "-C", "--chdir")
            for before, word in itertools.pairwise(["", *command.arguments])
        )
    )


def _paths(command: Command) -> Iterator[str]:
    """The words, and the parts of words, that may be paths."""
    words = [*command.words[1:], *(one.target for one in command.redirections)]
    for word in words:
        text = word.text
        if not text or "\n" in text:
            continue
        yield text
        if text.startswith("file:"):  # the address of a database
            yield text.removeprefix("file:").removeprefix("//").partition("?")[0]
        for mark in ("=", "@", ":"):
            if mark in text:
                yield text.rpartition(mark)[2] or text
                yield text.partition(mark)[0] or text


def in_code(
    context: Context, text: str, strings: tuple[str, ...], cwd: str | None
) -> Iterator[Finding]:
    """D4, D5 and D7 in the text of a program that runs at once."""
    names = {match[1] for match in _CODE_VARIABLE.finditer(text)}
    if _CODE_ENVIRONMENT.search(text):
        names.update(strings)
    sets = {match[1] or match[2] for match in _CODE_SETS.finditer(text)}
    for name in sorted(sets):
        if name.startswith(_RESERVED):
            yield Finding("D4", f"Sets a variable of this product ({name})")
    names -= sets
    for name in sorted(names):
        if SECRET_VARIABLES.fullmatch(name):
            yield Finding("D5", f"Uses a secret of this product ({name})")
    writes = _CODE_WRITES.search(text) is not None
    for string in strings:
        if "/" in string and "\n" not in string and "://" not in string:
            path = files.real(context, string, cwd=cwd)
            yield from _path_in_code(context, path, writes=writes)


def _path_in_code(context: Context, path: str, *, writes: bool) -> Iterator[Finding]:
    if files.is_environment(path):
        yield Finding("D5", f"Reads the environment of a process ({path})")
    elif files.is_product_data(context, path):
        yield Finding("D5", f"Reads secrets or data of this product ({path})")
    elif writes and (files.is_policy(context, path) or files.is_product(context, path)):
        yield Finding("D4", f"Changes the policy or files of this product ({path})")
    elif writes and files.is_persistence(path):
        yield Finding("D7", f"Leaves a back door ({path})")
    elif writes and files.is_device(path):
        yield Finding("D2", f"Writes to the device {path}")
    elif writes and files.is_kernel(path):
        yield Finding("D3", f"Changes a setting of the kernel ({path})")


RULES: tuple[Callable[[Context, Command], Iterator[Finding]], ...] = (
    changes_own_files,
    stops_own_processes,
    calls_own_address,
    starts_unsafe_agents,
    sets_own_variables,
    reads_product_secrets,
)
