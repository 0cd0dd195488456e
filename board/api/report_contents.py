"""Turns a report into an answer of the API."""

from dataclasses import asdict

from board.api.answers import PersonAnswers, ReportAnswer, RuleQuestions
from board.api.contents import dollars
from board.reports import Report


def describe_report(report: Report) -> ReportAnswer:
    """Return the numbers of a report."""
    counts = (
        "days", "runs", "succeeded", "failed", "questions", "questions_per_run", "open", "approved",
        "denied", "expired", "asked_back", "median_seconds", "cost_microusd",
    )  # fmt: skip
    return ReportAnswer(
        **{name: getattr(report, name) for name in counts},
        cost=dollars(report.cost_microusd),
        people=[PersonAnswers(**asdict(row)) for row in report.people],
        rules=[RuleQuestions(**asdict(row)) for row in report.rules],
    )
