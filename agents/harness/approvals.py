"""What a person's answer means for a call, and the words in which the model is told."""

import json

from agents.harness.ports import Answer, Decision, ToolCall, Verdict

MOST_COMPARED = 100  # files of an edited call; facts name no more, so it is asked about anew


def as_approved(call: ToolCall, answer: Answer) -> ToolCall:
    """The call as the person approved it."""
    return call if answer.input is None else ToolCall(call.id, call.tool, answer.input)


def still_holds(answer: Answer, verdict: Verdict) -> bool:
    """Was exactly this approved? For an edited input: in the same place, by the same rules.

    An edited call has a digest of its own; it may use only files that the person was shown, and
    paths that lead where they led. An edit that makes the call critical was asked about as if it
    were not, so it is asked about anew.
    """
    if answer.digest == verdict.digest:
        return True
    if answer.input is None or (verdict.critical and not answer.critical):
        return False
    same = all(
        answer.facts.get(fact) == verdict.facts.get(fact)
        for fact in ("cwd", "sandbox", "policy", "target")
    )
    shown = {**answer.facts.get("files", {}), **answer.facts.get("scripts", {})}
    used = {**verdict.facts.get("files", {}), **verdict.facts.get("scripts", {})}
    led = answer.facts.get("paths", {})
    paths = verdict.facts.get("paths", {})
    return (
        same
        and len(used) < MOST_COMPARED
        and len(paths) < MOST_COMPARED
        and all(shown.get(path) == digest for path, digest in used.items())
        and all(led.get(written, real) == real for written, real in paths.items())
    )


def denied_by_policy(verdict: Verdict) -> str:
    """What the model reads when the policy denies a call."""
    reasons = " ".join(verdict.reasons) or "No reason is given."
    return f"Denied by the policy (rule {verdict.rule}), not run: {reasons}"


def not_approved(answer: Answer) -> str:
    """What the model reads when no person approved its call."""
    if answer.decision is Decision.DENIED:
        reason = answer.comment.strip() or "no reason given"
        return f"{answer.by} denied this, it was not run: {reason}"
    if answer.decision is Decision.RETURNED:
        return (
            f"Not run yet: {answer.by} wants to know something before deciding.\n\n"
            f"{answer.comment.strip()}\n\n"
            "Answer in words, in your next message. If you still need this call, make it again in"
            " that same message: it will be asked about again, with your answer beside it."
        )
    if answer.decision is Decision.EXPIRED:
        return (
            "Not run: this needed an approval, and nobody answered before it expired."
            " Do not make the same call again; go on without it, or report what you need."
        )
    return "Not run: the question for approval was withdrawn."


def preface(answer: Answer) -> str:
    """What the model reads before the output of a call that a person approved; often nothing."""
    comment = f" {answer.by} says: {answer.comment.strip()}" if answer.comment.strip() else ""
    if answer.input is None:
        return f"[Approved by {answer.by}.{comment}]\n" if comment else ""
    ran = json.dumps(dict(answer.input), ensure_ascii=False)
    return f"[{answer.by} changed this call before approving it. What ran: {ran}.{comment}]\n"


def edited_badly(answer: Answer, problem: str) -> str:
    """What the model reads when the person's edit does not fit the tool."""
    return f"{answer.by} changed this call, but it could not be run so. {problem}"


def outcome_unknown(call: ToolCall, title: str) -> str:
    """What the model reads when a call was lost with its worker."""
    return (
        f"interrupted, outcome unknown: the worker stopped while {call.tool} ({title}) ran."
        " It may have run in full, in part, or not at all. It was not repeated."
        " Check before you go on."
    )
