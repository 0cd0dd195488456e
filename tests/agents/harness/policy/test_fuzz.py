"""The gate against the real bash: whatever runs in an allowed program was seen."""

from tests.agents.harness.policy.fuzzing import unsound


def test_what_bash_executes_in_an_allowed_program_was_seen_by_the_gate():
    assert unsound(300, seed=20) == []
