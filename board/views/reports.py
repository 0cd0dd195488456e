"""The reports of a project: runs, questions and their answers, cost."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from board.access import get_project
from board.reports import PERIODS, report
from board.views.people import person

DAYS = 14  # unless the address says otherwise


@require_safe
def show(request: HttpRequest, key: str) -> HttpResponse:
    """Show the numbers of the last days."""
    project = get_project(person(request), key)
    asked = request.GET.get("days", "")
    days = int(asked) if asked in {str(each) for each in PERIODS} else DAYS
    context = {
        "project": project,
        "place": "board",
        "tab": "reports",
        "report": report(project, days=days),
        "periods": PERIODS,
    }
    return render(request, "projects/reports.html", context)
