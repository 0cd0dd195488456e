"""Which files go first: those that take longest, so that no process is left alone with one at the end."""

from collections.abc import Sequence

import pytest

# Seconds of processor time, all processes of the file together, as measured on a busy machine. Half of
# a number too much or too little changes nothing; what is not here takes less than twenty.
HEAVY = {
    "tests/chaos/test_fleet.py": 300,
    "tests/e2e/test_live.py": 100,
    "tests/test_benchmarks.py": 90,
    "tests/chaos/test_leases.py": 80,
    "tests/chaos/test_kills.py": 80,
    "tests/agents/test_changed_approvals.py": 75,
    "tests/e2e/test_pages.py": 70,
    "tests/attacks/test_files.py": 50,
    "tests/agents/test_traps.py": 45,
    "tests/e2e/test_approvals.py": 45,
    "tests/e2e/test_cards.py": 45,
    "tests/e2e/test_planted_secrets.py": 45,
    "tests/attacks/test_processes.py": 40,
    "tests/e2e/test_board.py": 40,
    "tests/agents/test_merging.py": 37,
    "tests/agents/test_rehearsal.py": 36,
    "tests/agents/test_policy_of_a_run.py": 33,
    "tests/agents/test_way_of_a_card.py": 33,
    "tests/e2e/test_policies.py": 30,
    "tests/agents/test_up.py": 30,
    "tests/agents/test_attempts.py": 29,
    "tests/agents/test_instructions.py": 25,
    "tests/agents/test_fetching.py": 23,
    "tests/agents/test_network_of_a_run.py": 22,
}


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with the long files first. What is equally long stays in the order that it has."""
    return sorted(items, key=lambda item: -HEAVY.get(item.nodeid.partition("::")[0], 0))
