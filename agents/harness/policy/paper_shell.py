"""What a shell call leaves in a world on paper, as far as that is certain.

For the steps of a labelled sequence: files that are put together from known texts.
"""

import re
from collections.abc import MutableMapping

from agents.harness.policy import files
from agents.harness.policy.commands import Command
from agents.harness.policy.context import Context
from agents.harness.policy.printing import printed
from agents.harness.policy.shell import read


def carry_out(context: Context, entries: MutableMapping[str, str], text: str) -> None:
    """Change `entries` (path -> content, or `-> target`) as the commands of `text` would."""
    for command in read(context, text).commands:
        content = _output(context, command)
        for redirection in command.redirections:
            if redirection.operator in (">", ">>", ">|") and redirection.target.known:
                path = files.real(context, redirection.target.text, cwd=command.cwd)
                before = entries.get(path, "") if redirection.operator == ">>" else ""
                if content is not None:
                    entries[path] = before + content
                else:
                    entries.pop(path, None)  # nobody can look at it
        _change(context, entries, command)


def _output(context: Context, command: Command) -> str | None:
    """What the command prints, if that is known."""
    return printed(context, _without_redirections(command))


def _without_redirections(command: Command) -> Command:
    here = [one for one in command.redirections if one.operator.startswith("<")]
    return Command(command.words, command.assignments, here, command.upstream, command.cwd)


def _plain(command: Command) -> list[str]:
    return [word.text for word in command.words[1:] if word.known and not word.text.startswith("-")]


def _change(context: Context, entries: MutableMapping[str, str], command: Command) -> None:
    """`cp`, `mv`, `ln`, `rm` and `tee` with files that are known."""
    paths = [files.absolute(word, cwd=command.cwd or str(context.workspace), home=str(context.home))
             for word in _plain(command)]  # fmt: skip
    two = 2
    if command.name == "tee" and command.upstream is not None:
        said = _output(context, command.upstream)
        entries.update({path: said for path in paths if said is not None})
    elif command.name == "rm":
        for path in paths:
            entries.pop(path, None)
    elif len(paths) == two and command.name in ("cp", "mv") and paths[0] in entries:
        copy = command.name == "cp"
        entries[paths[1]] = entries[paths[0]] if copy else entries.pop(paths[0])
    elif len(paths) == two:
        _by_first_word(entries, command.name, _plain(command)[0], paths[1])


def _by_first_word(entries: MutableMapping[str, str], name: str, first: str, path: str) -> None:
    if name == "ln":
        entries[path] = f"-> {first}"
    elif name == "sed":
        _replace(entries, first, path)


def _replace(entries: MutableMapping[str, str], script: str, path: str) -> None:
    match = re.fullmatch(r"s([/|#,])([\w /.-]*)\1([^\\&]*)\1g?", script)
    if match is not None and path in entries:
        entries[path] = entries[path].replace(match[2], match[3])
