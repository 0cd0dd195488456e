"""The gate: one call and what is known about the world in, one verdict out.

The strictest answer wins. The rules and their names: docs/reference/policy.md.
"""

from collections.abc import Callable
from dataclasses import replace

from agents.harness.policy import decide_files, decide_mcp, decide_shell, network, people
from agents.harness.policy.context import Context, Noted, Remembered
from agents.harness.policy.critical import is_critical
from agents.harness.policy.digest import digest, facts, grant_for
from agents.harness.policy.findings import Finding
from agents.harness.policy.opinions import Opinion
from agents.harness.ports import Tier, ToolCall, Verdict

_JUDGES: dict[str, Callable[[ToolCall, Context], Opinion]] = {
    "bash": decide_shell.judge,
    "read_file": decide_files.judge_reading,
    "list_files": decide_files.judge_reading,
    "glob": decide_files.judge_searching,
    "grep": decide_files.judge_searching,
    "write_file": decide_files.judge_writing,
    "edit_file": decide_files.judge_writing,
    "mcp": decide_mcp.judge,
}
_HARMLESS = frozenset({"todo_write", "report_result"})  # they touch nothing but the run itself
_CHANGES = frozenset({"write_file", "edit_file"})
_NETWORK_TOOLS = frozenset({"web_fetch", "web_search"})


def decide(call: ToolCall, context: Context) -> Verdict:
    """What the policy says about `call` as things are at this moment."""
    context = replace(context, files=Remembered(context.files), noted=Noted())
    opinion = _opinion(call, context)
    seen = people.seen(call, context, opinion)
    ruling = people.judge(seen, context.rules, context.profile)
    known = facts(
        context,
        paths=opinion.paths,
        scripts=opinion.scripts,
        named=opinion.named() if ruling.tier is Tier.ASK else (),
        target=opinion.paths[0][1] if call.tool in _CHANGES and opinion.paths else "",
    )
    tier, rule = ruling.tier, ruling.rule
    reasons = tuple(dict.fromkeys(finding.reason for finding in ruling.findings))
    touchy = is_critical([finding.rule for finding in opinion.findings], opinion.effects)
    record = {
        **people.as_record(seen, ruling, profile=context.profile),
        "scripts": dict(known["bound"]),
        "critical": touchy,
    }
    if tier is Tier.ASK and not touchy and grant_for(call, known) in context.grants:
        tier, rule = Tier.ALLOW, "grant"
        reasons = ("A person has allowed this very call before.", *reasons)
    return Verdict(
        tier,
        rule,
        reasons,
        digest(call, known),
        known,
        tuple(opinion.effects),
        record=record,
        critical=tier is Tier.ASK and touchy,
    )


def see(call: ToolCall, context: Context) -> people.Seen:
    """What the built-in rules see of `call`, before any rule of a person."""
    context = replace(context, files=Remembered(context.files), noted=Noted())
    return people.seen(call, context, _opinion(call, context))


def _opinion(call: ToolCall, context: Context) -> Opinion:
    if call.tool in _HARMLESS:
        return Opinion(Tier.ALLOW, [Finding("L1", "Touches nothing but the run itself")])
    if call.tool in _JUDGES:
        return _JUDGES[call.tool](call, context)
    if call.tool in _NETWORK_TOOLS and any(
        network.is_product(context, host, port)
        for host, port in network.addresses_in(str(call.input.get("url", "")))
    ):
        return Opinion(Tier.DENY, [Finding("D4", "Calls this product's own address")])
    if call.tool in _NETWORK_TOOLS:
        return Opinion(Tier.ASK, [Finding("A1", "Connects to another machine")])
    return Opinion(Tier.ASK, [Finding("A14", f"Uses a tool that is not known ({call.tool})")])
