"""Which files go first: those that take longest, so that no process is left alone with one at the end."""

from collections.abc import Sequence

import pytest

# Seconds of processor time, all processes of the file together, as measured on a busy machine. Half of
# a number too much or too little changes nothing; what is not here takes less than twenty.
HEAVY = {
    "tests/chaos/test_fleet.py": 115,
    "tests/e2e/test_pages.py": 65,
    "tests/agents/test_harmless_lines.py": 60,
    "tests/test_benchmarks.py": 50,
    "tests/attacks/test_files.py": 50,
    "tests/e2e/test_planted_secrets.py": 45,
    "tests/e2e/test_live.py": 44,
    "tests/e2e/test_approvals.py": 42,
    "tests/e2e/test_cards.py": 40,
    "tests/agents/test_way_of_a_card.py": 35,
    "tests/chaos/test_leases.py": 35,
    "tests/agents/test_up.py": 30,
    "tests/board/test_consistency.py": 30,
    "tests/agents/test_container_of_a_run.py": 29,
    "tests/agents/test_changed_approvals.py": 28,
    "tests/e2e/test_board.py": 25,
    "tests/test_warm.py": 25,
    "tests/chaos/test_kills.py": 25,
    "tests/e2e/test_policies.py": 23,
    "tests/attacks/test_processes.py": 23,
    "tests/agents/test_merging.py": 22,
    "tests/agents/test_rehearsal.py": 20,
}


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with the long files first. What is equally long stays in the order that it has."""
    return sorted(items, key=lambda item: -HEAVY.get(item.nodeid.partition("::")[0], 0))
