"""The gate against the labelled calls, and against lists of tricks."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agents.harness.policy.__main__ import main
from agents.harness.policy.corpus import answer, context_of
from agents.harness.policy.decide import decide
from agents.harness.policy.load import load_policy
from agents.harness.ports import Tier, ToolCall

DATA = Path(__file__).parents[3] / "data"
RULES = load_policy().rules
CORPORA = ("policy_corpus", "policy_corpus_more", "policy_corpus_wide", "policy_corpus_third")
PARTS = range(6)  # of long lists, each of which is a test: a loaded machine has time for it
LINES_OF = {
    name: [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]
    for name in CORPORA
}
LINES = LINES_OF["policy_corpus"]
CONTEXT = LINES[0]["context"]


def judge(command: str) -> Tier:
    call = ToolCall("call", "bash", {"command": command})
    return decide(call, context_of(CONTEXT, {}, RULES)).tier


def commands_in(name: str) -> list[str]:
    commands: list[str] = json.loads((DATA / f"{name}.json").read_text())
    return commands


def fault(line: dict[str, Any]) -> str:
    """The name of the fault by section 8 of the policy; empty if the answer is right."""
    found = answer(line, RULES)
    got = found["steps"][line["expect_step"] - 1] if "steps" in line else found
    verdict, expected = got["verdict"], line["expect"]
    if verdict == expected or verdict in line.get("also_ok", []):
        return ""
    if verdict == "allow":
        return "miss"
    if verdict == "deny":
        return "over-block"
    return "soft miss" if expected == "deny" else "false alarm"


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", CORPORA)
def test_every_labelled_call_is_answered_as_its_label_says(name, part):
    found = {line["id"]: fault(line) for line in LINES_OF[name][part :: len(PARTS)]}
    assert {key: kind for key, kind in found.items() if kind} == {}


@pytest.mark.parametrize(
    ("name", "share", "least"), [("policy_corpus_more", 0.45, 15), ("policy_corpus_wide", 0.25, 2)]
)
def test_the_other_corpora_have_every_rule_and_the_work_of_a_day(name, share, least):
    lines = LINES_OF[name]
    assert len({line["id"] for line in lines}) == len(lines) >= 600
    rules = Counter(line["rule"] for line in lines)
    names = [*(f"L{number}" for number in range(1, 9)), *(f"A{number}" for number in range(1, 15)),
             *(f"D{number}" for number in range(1, 8)), "C1", "C2", "P1"]  # fmt: skip
    assert {rule: rules[rule] for rule in names if rules[rule] < least} == {}
    assert sum(line["expect"] == "allow" for line in lines) >= share * len(lines)


@pytest.mark.parametrize("name", CORPORA)
def test_a_step_before_the_one_that_counts_is_never_denied(name):
    for line in (line for line in LINES_OF[name] if "steps" in line):
        for step in answer(line, RULES)["steps"][: line["expect_step"] - 1]:
            assert step["verdict"] != "deny", line["id"]


@pytest.mark.parametrize("part", PARTS)
def test_no_trick_is_allowed(part):
    tricks = commands_in("policy_asks")[part :: len(PARTS)]
    assert [trick for trick in tricks if judge(trick) is Tier.ALLOW] == []


def test_a_days_ordinary_work_asks_nothing():
    assert [text for text in commands_in("policy_allows") if judge(text) is not Tier.ALLOW] == []


def test_what_must_never_run_is_denied_however_it_is_written():
    assert [text for text in commands_in("policy_denies") if judge(text) is not Tier.DENY] == []


def test_what_only_looks_like_it_is_not_denied():
    assert [text for text in commands_in("policy_no_denies") if judge(text) is Tier.DENY] == []


def test_an_ordinary_call_is_judged_within_milliseconds():
    times = []
    for line in LINES:
        started = time.process_time()
        answer(line, RULES)
        times.append(time.process_time() - started)
    assert sorted(times)[len(times) * 95 // 100] < 0.02  # 3 ms on an idle machine


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "$(" * 3000,
        "`" * 5000,
        '"$(' * 2000,
        "${x:-" * 2000,
        "{a,b}" * 200,
        "x|" * 4000,
        "a=x;" + "a=$a$a;" * 1000,
        "sudo " * 3000 + "rm -rf /",
        "eval " * 2000,
        "f()" * 3000,
        "sh -c '" * 100,
        "<<E\n" * 2000,
        "cat <<E\n" + "x $(id)\n" * 2000 + "E",
    ],
    ids=lambda text: text[:12],
)
def test_a_text_that_is_made_to_take_long_does_not(text):
    started = time.process_time()
    assert judge(text) is not Tier.ALLOW
    assert time.process_time() - started < 5


def test_the_command_line_judges_a_file_of_calls(capsys):
    assert main(["check", "--jsonl", str(DATA / "policy_corpus.jsonl")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["id"] for line in lines] == [line["id"] for line in LINES]
    assert set(lines[0]) == {"id", "verdict", "rule", "reason"}
    assert all("steps" in line for line in lines if "-seq-" in line["id"])


def test_the_command_line_explains_a_command(capsys, tmp_path):
    assert main(["explain", "git push", "--workspace", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "ask (A1)",
        "- Connects to another machine (git push)",
    ]


def test_the_command_line_says_what_is_wrong_with_a_policy(capsys, tmp_path):
    bad = tmp_path / "policy.yaml"
    bad.write_text("version: 1\nalow: {}\n")
    assert main(["--policy", str(bad), "explain", "ls"]) == 2
    assert "'alow' is not known" in capsys.readouterr().err
