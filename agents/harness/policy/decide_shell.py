"""Judges a call of the shell tool."""

from collections.abc import Iterator, Sequence

from agents.harness.policy import asks, denies, files
from agents.harness.policy.allowing import rule_for
from agents.harness.policy.commands import Command
from agents.harness.policy.context import Context
from agents.harness.policy.digest import RECIPES
from agents.harness.policy.findings import Finding
from agents.harness.policy.opinions import Opinion
from agents.harness.policy.programs_paths import Denied, Refused
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
}
_VAGUE = frozenset({"A7", "A8", "A9"})


def judge(call: ToolCall, context: Context) -> Opinion:
    """Deny what is recognised as such, allow what is known to be harmless, ask for the rest."""
    text = str(call.input.get("command", ""))
    judged = denies.judge(context, text)
    commands = judged.commands
    tier, findings = _answer(context, text, judged)
    return Opinion(
        tier,
        findings,
        paths=list(_paths(context, commands)),
        scripts=list(_scripts(context, commands)),
        effects=[_effect(command) for command in commands[:MOST_EFFECTS]],
    )


def _answer(context: Context, text: str, judged: denies.Judged) -> tuple[Tier, list[Finding]]:
    denied = [*judged.findings, *_by_people(context, judged.commands)]
    if denied:
        denied.sort(key=lambda finding: finding.rule)
        return Tier.DENY, denied
    try:
        allowed, refused = _allowed(context, text)
    except Denied as found:
        return Tier.DENY, [Finding(found.rule, found.reason)]
    asked = _asked_by_people(context, judged.commands)
    if refused:
        asked += _reasons(context, judged.commands, refused)
    if allowed and not asked:
        if context.sandbox == "bubblewrap":
            return Tier.ALLOW, [allowed]
        return Tier.ASK, [Finding("sandbox", "There is no sandbox on this machine")]
    return Tier.ASK, asked


def _reasons(context: Context, commands: Sequence[Command], refused: Finding) -> list[Finding]:
    """Worst first; that a command is not known says less than what has been recognised in it."""
    found = asks.reasons(context, commands)
    if refused.rule in _VAGUE:
        return [*found, refused]
    return asks.by_severity([refused, *found])


def _allowed(context: Context, text: str) -> tuple[Finding | None, Finding | None]:
    """The rule that allows the text, or the one that refuses to."""
    if text.strip() in {command.strip() for command in context.exact_commands}:
        return Finding("L3", "Is a check or the set-up that a person has written"), None
    if _people_allow(context, text):
        return Finding("policy", "Is allowed by the policy of this installation"), None
    try:
        rule = rule_for(context, text)
        return Finding(rule, _ALLOWS[rule]), None
    except NotUnderstoodError as error:
        return None, Finding("A9", f"Is not understood: {error}")
    except Denied:
        raise
    except Refused as refused:
        return None, Finding(refused.rule, _sentence(refused.reason))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _people_allow(context: Context, text: str) -> bool:
    """Whether it is one simple command that a rule of a person covers."""
    patterns = context.rules.allow.commands
    if not patterns:
        return False
    try:
        arguments = read_simple(text)
    except NotUnderstoodError:
        return False
    argv = tuple(argument.text for argument in arguments)
    has_glob = any(argument.glob for argument in arguments)
    return not has_glob and any(pattern.matches(argv) for pattern in patterns)


def _by_people(context: Context, commands: Sequence[Command]) -> Iterator[Finding]:
    for command in commands:
        for pattern in context.rules.deny.commands:
            if pattern.matches(_argv(command)):
                yield Finding("policy", f"The policy of this installation denies `{pattern}`")


def _asked_by_people(context: Context, commands: Sequence[Command]) -> list[Finding]:
    return [
        Finding("policy", f"The policy of this installation asks about `{pattern}`")
        for command in commands
        for pattern in context.rules.ask.commands
        if pattern.matches(_argv(command))
    ]


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
