"""Whether a shell text may run without a question: each command on each of its ways is allowed."""

from agents.harness.policy import agreeing
from agents.harness.policy.context import Context
from agents.harness.policy.judging import judge
from agents.harness.policy.parse import parse
from agents.harness.policy.programs_paths import Refused
from agents.harness.policy.simple import NotUnderstoodError
from agents.harness.policy.values import State
from agents.harness.policy.walk import Walker

# What a text is named after, if it does several things.
_ORDER = ("L9", "L2", "L3", "L5", "L7", "L4", "L6")


def rules_for(context: Context, text: str) -> tuple[str, ...]:
    """The rules that allow the text, the telling one first. Raises Refused, or NotUnderstoodError."""
    walker = Walker(context, judge)
    script, heads = parse(text)
    agreeing.check(text, heads)
    folder = context.files.real(str(context.workspace))
    try:
        walker.script(script, State(frozenset({folder})))
    except RecursionError as error:
        raise NotUnderstoodError("it is nested too deeply") from error
    # A redirection writes, whichever command stands before it.
    rules = {*walker.rules, *(["L2"] if walker.written else [])}
    found = [rule for rule in _ORDER if rule in rules]
    if "L1" in rules or not found:
        found.append("L1")
    return tuple(found)


def is_allowed(context: Context, text: str) -> bool:
    """Whether `rules_for` finds any."""
    try:
        rules_for(context, text)
    except (NotUnderstoodError, Refused):
        return False
    return True
