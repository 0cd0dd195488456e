"""Rules of people and tool profiles, on what the built-in rules have seen."""

import json
from dataclasses import replace

import pytest

from agents.harness.policy import people, policy_yaml
from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide, see
from agents.harness.policy.examples import paper_context
from agents.harness.policy.load import PolicyText, load_texts
from agents.harness.policy.profiles import Profile, narrower
from agents.harness.policy.replay import Recorded, Rules, is_whole, judge_again
from agents.harness.policy.rules import Policy
from agents.harness.ports import Tier, ToolCall


def rules(text: str, *, origin: str = "project BIL") -> Policy:
    return load_texts([PolicyText(f"version: 1\n{text}", origin)]).rules


def ours(text: str) -> dict[str, Policy]:
    return {"rules": rules(text)}


def test_a_rule_says_whose_it_is_where_it_stands_and_why(gate):
    text = 'ask:\n  commands:\n    - {rule: "pytest --slow *", because: "Takes an hour"}\n'
    verdict = gate("bash", ours(text), command="cd src && pytest --slow -x")
    assert (verdict.tier, verdict.rule) == (Tier.ASK, "policy")
    expected = "The policy of project BIL asks about `pytest --slow *`: Takes an hour"
    assert verdict.reasons[0] == expected


@pytest.mark.parametrize(
    "command",
    [
        "echo x > LICENSE",
        "cp README.md LICENSE",
        "sed -i s/a/b/ ./LICENSE",
        "for f in LICENSE; do touch $f; done",
        "cd src && touch ../LICENSE",
    ],
)
def test_a_protected_file_is_protected_from_the_shell_too(gate, command):
    verdict = gate("bash", ours("deny: {writes: [license]}"), command=command)
    assert (verdict.tier, verdict.rule) == (Tier.DENY, "policy"), verdict.reasons


def test_files_by_a_pattern_ask_where_a_file_is_protected(gate, context):
    (context.workspace / "a.py").write_text("")
    command = "for f in *.py; do sed -i s/a/b/ $f; done"
    assert gate(command).tier is Tier.ALLOW
    assert gate("bash", ours("deny: {writes: ['x/*.py']}"), command=command).tier is Tier.ASK


@pytest.mark.parametrize(
    ("tool", "fields"),
    [
        ("read_file", {"path": "internal/plan.md"}),
        ("grep", {"path": "internal", "pattern": "x"}),
        ("bash", {"command": "cat internal/plan.md"}),
        ("bash", {"command": "cd internal && head -3 plan.md"}),
    ],
)
def test_reading_can_be_denied(gate, tool, fields):
    text = "deny: {reads: [internal, 'internal/*']}"
    assert gate(tool, ours(text), **fields).tier is Tier.DENY
    assert gate(tool, ours("deny: {reads: [other]}"), **fields).tier is Tier.ALLOW


def test_a_word_of_a_printed_text_is_no_file(gate):
    assert gate("bash", ours("deny: {reads: [plan]}"), command="echo plan").tier is Tier.ALLOW


def test_a_tool_and_a_built_in_rule_can_be_made_stricter(gate):
    assert gate("grep", ours("deny: {tools: [grep]}"), pattern="x").tier is Tier.DENY
    assert gate("bash", ours("deny: {rules: [A2]}"), command="uv add x").tier is Tier.DENY
    asked = gate("bash", ours("ask: {rules: [L3]}"), command="ls && pytest")
    assert (asked.tier, asked.rule) == (Tier.ASK, "policy")


def test_a_command_in_a_script_is_found(gate, context):
    (context.workspace / "do.sh").write_text("#!/bin/sh\nset -e\npytest --slow\n")
    verdict = gate("bash", ours("deny: {commands: ['pytest --slow *']}"), command="sh do.sh")
    assert (verdict.tier, verdict.rule) == (Tier.DENY, "policy")


def test_stars_within_the_words_of_a_rule_that_denies(gate):
    text = "deny: {commands: ['git * main', 'npm run deploy:*']}"
    for command in ("git push origin main", "git -C . push --force origin main"):
        assert gate("bash", ours(text), command=command).tier is Tier.DENY
    assert gate("bash", ours(text), command="npm run deploy:eu").tier is Tier.DENY
    assert gate("bash", ours(text), command="git log main -- x").tier is Tier.ALLOW


def test_the_strictest_scope_wins_in_any_order():
    sources = [
        PolicyText("version: 1\nallow: {commands: [make x]}", "the organisation"),
        PolicyText("version: 1\nask: {commands: [make x]}", "project BIL"),
        PolicyText("version: 1\nallow: {commands: [make x, make y]}", "card BIL-1"),
    ]
    for ordered in (sources, sources[::-1]):
        policy = load_texts(ordered).rules
        seen = seen_of("make x")
        assert people.judge(seen, policy).tier is Tier.ASK
        denied = policy + rules("deny: {commands: [make x]}")
        assert people.judge(seen, denied).tier is Tier.DENY


def seen_of(command: str) -> people.Seen:
    return see(ToolCall("x", "bash", {"command": command}), paper_context())


def test_the_version_changes_with_the_rules_and_not_with_their_words():
    def version(text: str) -> str:
        return load_texts([PolicyText(f"version: 1\n{text}")]).version

    first = version("ask: {commands: [a, b]}")
    assert version("# said otherwise\nask:\n  commands: [b, a]\n") == first
    assert version("ask: {commands: [a]}") != first
    assert version("deny: {commands: [a, b]}") != first


TOOLS = {
    "read_file": {"path": "a"},
    "write_file": {"path": "a", "content": ""},
    "report_result": {},
    "invented": {},
}


@pytest.mark.parametrize(
    ("profile", "denied"),
    [
        (Profile.READ_ONLY, {"write_file", "invented"}),
        (Profile.EDIT, {"invented"}),
        (Profile.EDIT_TEST, {"invented"}),
        (Profile.FULL, set()),
    ],
)
def test_a_profile_has_no_other_tools(gate, profile, denied):
    verdicts = {tool: gate(tool, {"profile": profile}, **fields) for tool, fields in TOOLS.items()}
    verdicts["report_result"] = gate("report_result", {"profile": profile}, summary="x")
    verdicts["invented"] = gate("invented", {"profile": profile}, x="y")
    refused = {tool for tool, verdict in verdicts.items() if verdict.tier is Tier.DENY}
    assert refused == denied
    assert all(verdicts[tool].rule == "profile" for tool in denied)


@pytest.mark.parametrize(
    ("command", "allowed_from"),
    [
        ("ls && cat README.md | head", Profile.READ_ONLY),
        ("git log --oneline -3; git branch", Profile.READ_ONLY),
        ("git --no-pager diff", Profile.READ_ONLY),
        ("touch x", Profile.EDIT_TEST),
        ("cat README.md > copy", Profile.EDIT_TEST),
        ("git add x", Profile.EDIT_TEST),
        ("git branch new", Profile.EDIT_TEST),
        ("for v in log add; do git $v; done", Profile.EDIT_TEST),
        ("pytest -q", Profile.EDIT_TEST),
        ("./check-all --now", Profile.EDIT_TEST),
        ("uv add requests", Profile.FULL),
    ],
)
def test_how_much_of_the_shell_a_profile_has(gate, command, allowed_from):
    order = [*Profile]
    for profile in Profile:
        given = {"profile": profile, "exact_commands": frozenset({"./check-all --now"})}
        denied = gate("bash", given, command=command).rule == "profile"
        assert denied is (order.index(profile) < order.index(allowed_from)), profile


def test_neither_a_rule_nor_an_answer_widens_a_profile(gate):
    text = "allow: {commands: ['uv add *']}"
    assert gate("bash", ours(text), command="uv add x").tier is Tier.ALLOW
    narrow = {**ours(text), "profile": Profile.EDIT_TEST}
    assert gate("bash", narrow, command="uv add x").rule == "profile"
    assert narrower("edit", "") is Profile.EDIT
    assert narrower("read-only", "full") is Profile.READ_ONLY


CALLS: list[tuple[str, dict[str, object]]] = [
    ("bash", {"command": "pytest -q"}),
    ("bash", {"command": "ls; sudo git push"}),
    ("bash", {"command": "uv add x"}),
    ("bash", {"command": "rm -rf /"}),
    ("bash", {"command": "echo x > LICENSE"}),
    ("bash", {"command": "sh do.sh"}),
    ("write_file", {"path": "src/a.py", "content": "x"}),
    ("read_file", {"path": "/etc/hosts"}),
    ("grep", {"pattern": "x", "path": "docs"}),
    ("invented", {"x": 1}),
]
POLICIES = [
    "",
    "ask: {rules: [L1, L2, L3]}",
    "deny: {commands: ['git push *', 'make *'], writes: [license]}",
    "allow: {commands: ['uv add *', pytest -q]}\nask: {reads: ['/etc/*'], tools: [grep]}",
]


@pytest.mark.parametrize("before", POLICIES)
@pytest.mark.parametrize("after", POLICIES)
@pytest.mark.parametrize("profile", [Profile.FULL, Profile.EDIT])
def test_a_recorded_call_is_judged_again_as_the_gate_would_have(
    context: Context, before, after, profile
):
    script = context.workspace / "do.sh"
    for tool, given in CALLS:
        script.write_text("make x\n")
        call = ToolCall("x", tool, given)
        first = decide(call, replace(context, rules=rules(before)))
        expected = decide(call, replace(context, rules=rules(after), profile=profile))
        script.unlink()  # what is judged again needs no files
        record = json.loads(json.dumps(first.record))
        again = judge_again(Recorded(tool, given, record), Rules(rules(after), profile))
        assert (again.tier, again.rule) == (expected.tier, expected.rule), call
        assert again.reason == expected.reasons[0]


def test_a_call_that_is_too_long_says_so(gate):
    record = gate("; ".join(f"echo {n} {'x' * 80}" for n in range(400))).record
    assert not is_whole(record)
    assert record["verdict"][0] in {"allow", "ask"}
    assert not is_whole(None)
    assert not is_whole({})
    with pytest.raises(ValueError, match="not whole"):
        people.seen_in(record)


def test_tiers_are_read_in_their_other_spellings():
    text = "version: 1\nalways_allow: [make docs]\nAsk user: [x]\nalways-deny: {commands: [y]}"
    policy, problems = policy_yaml.read(text)
    assert not problems
    assert [str(rule) for _, _, rule in policy.all()] == ["y", "x", "make docs"]
    assert [rule.source.line for _, _, rule in policy.all()] == [4, 3, 2]
