"""Which files go first: those that take longest, so that no process is left alone with one at the end."""

from collections.abc import Sequence

import pytest

# Seconds of processor time, all processes of the file together, as measured on SQLite. Half of a number
# too much or too little changes nothing; what is not here takes less than ten.
HEAVY = {
    "tests/agents/test_changed_approvals.py": 80,
    "tests/agents/test_merging.py": 40,
    "tests/agents/test_rehearsal.py": 40,
    "tests/agents/test_policy_of_a_run.py": 36,
    "tests/agents/test_attempts.py": 30,
    "tests/agents/test_instructions.py": 29,
    "tests/agents/test_fetching.py": 28,
    "tests/agents/test_network_of_a_run.py": 25,
}


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with the long files first. What is equally long stays in the order that it has."""
    return sorted(items, key=lambda item: -HEAVY.get(item.nodeid.partition("::")[0], 0))
