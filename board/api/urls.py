"""Addresses under /api/v1/. Whatever is asked there, the answer is JSON."""

from collections.abc import Callable, Iterable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, re_path
from django.views.decorators.csrf import csrf_exempt

from board.api import failures
from board.api.site import api

View = Callable[..., HttpResponse]


def in_json(view: View) -> View:
    """Return a view that answers a wrong method in JSON too, which ninja does not."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if response.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
            return response
        return failures.not_allowed(", ".join(sorted(response["Allow"].split(", "))))

    return answer


@csrf_exempt
def unknown(request: HttpRequest) -> HttpResponse:
    """Answer for an address that the API does not have."""
    return failures.missing(request)


def answering_json(patterns: Iterable[URLPattern | URLResolver]) -> list[URLPattern]:
    """Return ninja's addresses, each answering in JSON whatever happens."""
    found = [pattern for pattern in patterns if isinstance(pattern, URLPattern)]
    for pattern in found:
        is_root = pattern.name == "api-root"  # ninja finds its prefix by this name
        pattern.callback = unknown if is_root else in_json(pattern.callback)
    return found


app_name = "api"
urlpatterns = [*answering_json(api.urls[0]), re_path(r"", unknown)]
