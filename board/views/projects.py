"""The projects of a person, and making a new one."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def list_all(request: HttpRequest) -> HttpResponse:
    """Show the projects that the person is a member of."""
    return render(request, "projects/list.html")
