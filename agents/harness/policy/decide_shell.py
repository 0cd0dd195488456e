"""Judges a call of the shell tool."""

from collections.abc import Iterator, Sequence
from functools import partial

from agents.harness.policy import asks, denies, files, targets
from agents.harness.policy.allowing import rules_for
from agents.harness.policy.commands import Command
from agents.harness.policy.context import Context
from agents.harness.policy.findings import Finding
from agents.harness.policy.named_files import named
from agents.harness.policy.opinions import Opinion
from agents.harness.policy.programs_paths import Denied, Refused
from agents.harness.policy.recipes import RECIPES
from agents.harness.policy.simple import NotUnderstoodError, read_simple
from agents.harness.ports import Json, Tier, ToolCall

MOST_EFFECTS = 60
_ALLOWS = {
    "L1": "Only reads",
    "L2": "Changes files in the workspace",
    "L3": "Tests or builds",
    "L4": "Reads the local history, or adds to it",
    "L5": "Runs a text without effects",
    "L6": "Only reads",
    "L7": "Stays on this machine",
    "L9": "Reads from a host on the project's allow-list",
}
_VAGUE = frozenset({"A7", "A8", "A9"})


def judge(call: ToolCall, context: Context) -> Opinion:
    """Deny what is recognised as such, allow what is known to be harmless, ask for the rest."""
    text = str(call.input.get("command", ""))
    judged = denies.judge(context, text)
    commands = judged.commands
    tier, findings, rules = _answer(context, text, judged)
    if context.noted is not None:
        for command in (*commands, *judged.inside):
            context.noted.changed.update(targets.written(context, command))
    paths = list(dict.fromkeys(_paths(context, commands)))
    return Opinion(
        tier,
        findings,
        paths=paths,
        scripts=list(_scripts(context, commands)),
        effects=[_effect(command) for command in commands[:MOST_EFFECTS]],
        rules=rules,
        argv=list(dict.fromkeys(_argv(command) for command in (*commands, *judged.inside))),
        simple=_simple(text),
        is_check=_is_check(context, text),
        named=partial(named, context, (*commands, *judged.inside)),
    )


def _answer(
    context: Context, text: str, judged: denies.Judged
) -> tuple[Tier, list[Finding], Sequence[str]]:
    """The tier, the findings, and the rules that allow the text."""
    if judged.findings:
        return Tier.DENY, sorted(judged.findings, key=lambda finding: finding.rule), ()
    if _is_check(context, text):
        return Tier.ALLOW, [Finding("L3", "Is a check or the set-up that a person has written")], ()
    try:
        rules = rules_for(context, text)
    except NotUnderstoodError as error:
        refused = Finding("A9", f"Is not understood: {error}")
    except Denied as found:
        return Tier.DENY, [Finding(found.rule, found.reason)], ()
    except Refused as found:
        refused = Finding(found.rule, _sentence(found.reason))
    else:
        return Tier.ALLOW, [Finding(rules[0], _ALLOWS[rules[0]])], rules
    return Tier.ASK, _reasons(context, judged.commands, refused), ()


def _reasons(context: Context, commands: Sequence[Command], refused: Finding) -> list[Finding]:
    """Worst first; that a command is not known says less than what has been recognised in it."""
    found = asks.reasons(context, commands)
    if refused.rule in _VAGUE:
        return [*found, refused]
    return asks.by_severity([refused, *found])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_check(context: Context, text: str) -> bool:
    return text.strip() in {command.strip() for command in context.exact_commands}


def _simple(text: str) -> tuple[str, ...] | None:
    """The words of a text that is one simple command without patterns."""
    try:
        arguments = read_simple(text)
    except NotUnderstoodError:
        return None
    if any(argument.glob for argument in arguments):
        return None
    return tuple(argument.text for argument in arguments)


def _argv(command: Command) -> tuple[str, ...]:
    """The words with the program's bare name, as people write them in rules."""
    return (command.name, *command.arguments)


def _paths(context: Context, commands: Sequence[Command]) -> Iterator[tuple[str, str]]:
    """What looks like a path, as written and as it is; a link shows its target."""
    for command in commands:
        for word in [*command.words, *(one.target for one in command.redirections)]:
            text = word.text
            if word.known and "/" in text and "\n" not in text and not text.startswith("-"):
                yield text, files.real(context, text, cwd=command.cwd)


def _scripts(context: Context, commands: Sequence[Command]) -> Iterator[str]:
    for command in commands:
        path = denies.script_of(context, command)
        if path is not None:
            yield path
        for recipe in RECIPES.get(command.name, ()):
            yield files.real(context, recipe, cwd=command.cwd)


def _effect(command: Command) -> Json:
    """One command as it is shown to the person who approves."""
    argv = [word.text if word.known else f"{word.text}(not known)" for word in command.words]
    effect: Json = {"argv": argv}
    if command.through:
        effect["through"] = list(command.through)
    if command.redirections:
        effect["redirections"] = [
            f"{one.number}{one.operator}{one.target.text}" for one in command.redirections
        ]
    return effect
