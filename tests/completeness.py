"""A run that leaves nothing out: where everything has to be there, a test that is skipped has failed.

`.ci/run` sets PULLCORD_TESTS_REQUIRE_ALL=1. Without it a machine that lacks bubblewrap, Landlock,
control groups or a browser runs what it can, and says what it could not.
"""

import os
from collections.abc import Generator
from typing import Any

import pytest

from tests.databases import REQUIRE_ALL

# What no installation can change: the test, up to its parameters, and what the machine is that cannot do it.
ALLOWED = {
    "tests/agents/test_sandbox.py::test_without_the_program_the_level_is_lower_and_says_what_to_install": (
        "a kernel before 6.12, whose Landlock does not hold signals and cannot pretend to"
    ),
    "tests/attacks/test_processes.py::test_other_sets_of_calls_are_refused": (
        "a processor that has no second set of system calls"
    ),
    "tests/attacks/test_processes.py::test_an_older_landlock_takes_the_signals_away": (
        "a processor whose numbers of system calls the test does not know"
    ),
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure."""
    report = yield
    _refuse(report, item.nodeid)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a whole file that leaves itself out into a failure."""
    report = yield
    _refuse(report, collector.nodeid)
    return report


def _refuse(report: Any, nodeid: str) -> None:
    if not report.skipped or os.environ.get(REQUIRE_ALL) != "1":
        return
    if nodeid.partition("[")[0] in ALLOWED:
        return
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    if hasattr(report, "wasxfail"):
        del report.wasxfail  # with it a failure is not counted
    report.outcome = "failed"
    report.longrepr = f"Left out, but {REQUIRE_ALL}=1 says that nothing may be: {why}"
