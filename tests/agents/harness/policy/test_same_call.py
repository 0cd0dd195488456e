"""What a call runs is judged as it will be then, also if the call itself changes it before."""

import pytest

from agents.harness.policy.corpus import context_of
from agents.harness.policy.decide import decide
from agents.harness.policy.rules import Policy
from agents.harness.ports import Tier, ToolCall

CONTEXT = "workspace=/code/wt/card-17 repo=/code/repo scratch=/tmp sandbox=on"
FILES = {"x.sh": "ls\n", "y.txt": "rm -rf src\n", "self.sh": "ls\ncp y.txt self.sh\nls\n"}


def judge(command):
    call = ToolCall("call", "bash", {"command": command})
    return decide(call, context_of(CONTEXT, FILES, Policy())).tier


@pytest.mark.parametrize(
    "change",
    [
        "python -c \"open('x.sh','w').write('rm -rf sr'+'c')\"",
        "python gen.py",
        'node -e \'require("fs").writeFileSync("x.sh","a")\'',
        "perl -pi -e 's/ls/id/' x.sh",
        "sed -i s/ls/id/ x.sh",
        "awk '{print > \"x.sh\"}' y.txt",
        "iconv -o x.sh y.txt",
        "sort -o x.sh y.txt",
        "yq -i '.a=1' x.sh",
        "curl -so x.sh localhost:8000",
        "cp y.txt x.sh",
        "cp d/x.sh .",
        "ln -sf y.txt x.sh",
        "xz -d x.sh.xz",
        "zstd -d x.sh.zst",
        "split -n1 y.txt x.s",
        "gcc -E -P -o x.sh y.txt",
        "git checkout -- x.sh",
        "cat y.txt > x.sh &",
        "exec > x.sh; cat y.txt",
        "sh x.sh & cp y.txt x.sh",
    ],
)
def test_a_script_that_the_call_changes_asks(change):
    assert judge(f"{change}\nsh x.sh") is not Tier.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "sh self.sh",
        "sh x.sh & cp y.txt x.sh; wait",
        "for i in 1 2; do sh x.sh; cp y.txt x.sh; done",
    ],
)
def test_a_script_that_is_changed_while_it_runs_asks(command):
    assert judge(command) is Tier.ASK


@pytest.mark.parametrize(
    "command",
    [
        "sh x.sh",
        "touch a.txt; sh x.sh",
        "chmod +x x.sh && ./x.sh",
        "printf 'ls\\n' > z.sh; sh z.sh",
        "sh x.sh > out.txt; cat out.txt",
        "gcc -O2 -o hello hello.c && ./hello",
        "rustc --edition 2021 -O src/one.rs -o /tmp/one && /tmp/one",
        "go build -o bin/app ./cmd/app && ./bin/app --help",
        "cc x.c && ./a.out",
    ],
)
def test_what_is_not_changed_or_was_compiled_runs(command):
    assert judge(command) is Tier.ALLOW
