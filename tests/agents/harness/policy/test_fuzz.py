"""The gate against the real bash: whatever runs in an allowed program was seen."""

import shlex
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.harness.policy.expanding import Expander
from agents.harness.policy.parse import parse
from agents.harness.policy.syntax import Script, Simple
from agents.harness.policy.values import UNKNOWN, State
from tests.agents.harness.policy.fuzzing import unsound

TEXTS = st.text(
    alphabet=string.printable.replace("\r", "").replace("\v", "").replace("\f", ""), max_size=20
)


def words_of(script: Script) -> list[str]:
    (item,) = script.items
    ((_, pipeline),) = item.pipelines
    (node,) = pipeline.nodes
    assert isinstance(node, Simple)
    expander = Expander(State(frozenset({"/"})), ("/home/agent", "/tmp"), lambda _: UNKNOWN)  # noqa: S108  the names of the places
    return [field.text for field in expander.fields(node.words)]


def test_what_bash_executes_in_an_allowed_program_was_seen_by_the_gate():
    assert unsound(300, seed=20) == []


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(TEXTS.filter(lambda text: "\\\n" not in text), max_size=4))
def test_words_in_quotes_are_read_as_they_were_before_they_were_quoted(texts):
    if not any("#" in text and "\\" in text for text in texts):
        assert words_of(parse(f"echo {shlex.join(texts)}")[0]) == ["echo", *texts]
