"""Policies are tried before they count, and lists of another program are converted with a report."""

import json

import pytest

from agents.harness.policy.convert import ConversionError, Fate, convert
from agents.harness.policy.examples import check, warnings
from agents.harness.policy.policy_yaml import read
from agents.harness.ports import Tier

POLICY = """\
version: 1
deny:
  commands:
    - rule: git push *
      because: Only people push
      match: ["sudo git push -f", "ls | xargs git push"]
      not_match: ["git status"]
  writes:
    - {rule: "docs/*", match: [docs/a/b.md], not_match: [src/docs.py]}
  reads:
    - {rule: internal/*, match: [internal/x]}
allow:
  commands:
    - {rule: make docs, match: [make docs], not_match: ["make docs; ls"]}
"""


def test_a_policy_whose_examples_hold_is_fine():
    assert check(POLICY) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("git status", "git push", 7, "deny: `git push *` covers `git push`"),
        ("sudo git push -f", "git pull", 6, "deny: `git push *` does not cover `git pull`"),
        ("docs/a/b.md", "a.md", 9, "deny: `docs/*` does not cover `a.md`"),
        ("make docs]", "make doc]", 14, "allow: `make docs` does not cover `make doc`"),
        ('[make docs], not_match: ["make docs; ls"]', "['make docs; ls']", 14, "not one simple"),
        ("make docs, match: [make docs]", "rm -rf /, match: [rm -rf /]", 14, "stays denied"),
        ("because", "why", 5, "'why' is not known; known are rule, because, match, not_match"),
        ("internal/*, ", "'**', ", 11, "would match everything"),
    ],
)
def test_a_rule_that_does_not_do_what_its_example_says_is_refused_with_its_line(
    old, new, line, message
):
    assert old in POLICY
    problems = check(POLICY.replace(old, new))
    assert [problem.line for problem in problems] == [line], problems
    assert message in problems[0].message


def test_every_problem_is_said_at_once():
    problems = check("version: 1\nask:\n  command: [x]\n  rules: [D1, A1, Z9]\nalow: {}")
    assert [problem.line for problem in problems] == [3, 4, 4, 5]


@pytest.mark.parametrize("text", ["[" * 5000, "version: 1\nask: &a\n  commands: [*a]", "a: b: c"])
def test_a_hostile_text_is_a_problem_and_no_crash(text):
    assert check(text)


def test_examples_are_bounded():
    many = "".join(f"    - ls {number}\n" for number in range(301))
    head = "version: 1\ndeny:\n  commands:\n  - rule: ls *\n    match:\n"
    (problem,) = check(head + many)
    assert (problem.line, problem.message) == (306, "has more than 300 examples")
    (problem,) = check(f"{head}    - ls {'x' * 1000}\n")
    assert "longer than 1,000 characters" in problem.message


def test_a_broad_rule_is_warned_of():
    found = list(warnings("version: 1\nallow:\n  commands:\n  - make docs *\n  - python *\n"))
    assert [(one.line, "any program" in one.message) for one in found] == [(5, True)]


LISTS = {
    "allow": ["Bash(npm run test:*)", "Bash(python:*)", "Bash(uv add:*)", "Bash(git push:*)",
              "Bash(cd x && ls)", "Bash(rm -rf /)", "Bash", "Read(./src/**)", "Read(~/.zshrc)",
              "WebFetch(domain:example.org)", "Bash(sudo:*)", "Bash(unknown * --x)", "Nonsense(",
              "mcp__db__read", "Bash(python manage.py seed)"],
    "ask": ["Bash(git commit:*)"],
    "deny": ["Bash(git push:*)", "Bash(rm -rf *)", "Read(./.env)", "Read(**/*.pem)",
             "Edit(migrations/**)", "Bash(curl * | sh)", "WebSearch", "mcp__db"],
}  # fmt: skip


def test_a_claude_list_is_converted_with_a_word_on_every_entry():
    found = convert(json.dumps({"permissions": LISTS}))
    assert [entry.text for entry in found.entries] == [
        one for each in LISTS.values() for one in each
    ]
    fates = {(entry.tier, entry.text): entry.fate for entry in found.entries}
    assert fates["allow", "Bash(npm run test:*)"] is Fate.NOT_NEEDED
    for unsafe in ("Bash(python:*)", "Bash(git push:*)", "Bash(sudo:*)", "Bash", "Bash(rm -rf /)"):
        assert fates["allow", unsafe] is Fate.LEFT_OUT, unsafe
    assert fates["allow", "Bash(cd x && ls)"] is Fate.UNKNOWN
    assert fates["deny", "Bash(curl * | sh)"] is Fate.UNKNOWN
    assert all(entry.says for entry in found.entries)
    assert check(found.policy) == []
    policy, _ = read(found.policy)
    assert [str(rule) for rule in policy.allow.commands] == ["uv add *", "python manage.py seed"]
    denied = {str(rule) for tier, _, rule in policy.all() if tier == "deny"}
    assert {"git push *", "rm -rf *", ".env", "*.pem", "*/*.pem", "migrations/*"} <= denied
    assert {"web_search", "mcp:db:*"} <= denied


ARTICLE = {
    "allow": ["Read", "Write", "Bash(npm test)", "Bash(git status)", "Bash(git diff)"],
    "deny": ["Bash(git push)", "Bash(git commit)", "Bash(rm -rf *)"],
}


def test_the_lists_of_the_article_become_three_rules_that_deny(gate):
    found = convert(json.dumps(ARTICLE))
    assert {entry.fate for entry in found.entries if entry.tier == "allow"} == {Fate.NOT_NEEDED}
    policy, _ = read(found.policy)
    assert [str(rule) for rule in policy.deny.commands] == ["git push", "git commit", "rm -rf *"]
    for command in ("npm test", "git status", "git diff"):
        assert gate("bash", {"rules": policy}, command=command).tier is Tier.ALLOW
    assert gate("bash", {"rules": policy}, command="rm -rf build").tier is Tier.DENY


def test_what_the_list_denied_is_never_allowed_after_it(gate):
    policy, _ = read(convert(json.dumps(LISTS)).policy)
    for command in ("git push", "sudo git push -f origin", "rm -rf x", "cat .env", "head a/b.pem"):
        assert gate("bash", {"rules": policy}, command=command).tier is Tier.DENY, command
    for command in ("curl x | sh", "git commit -m x", "python -c 'import os; os.system(\"x\")'"):
        assert gate("bash", {"rules": policy}, command=command).tier is Tier.ASK, command


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"permissions": {"allow": "x"}}', "[" * 9999]
)
def test_what_is_no_list_is_refused_with_a_reason(text):
    with pytest.raises(ConversionError):
        convert(text)
