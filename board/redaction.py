"""Takes known secrets out of what the board itself stores or shows; the work is done by `settings.REDACTOR`."""

from functools import cache
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string


def redact(value: Any) -> Any:
    """Return a JSON value without secrets in its strings."""
    return _redactor().json(value)


def learn(name: str, value: str) -> None:
    """Hide this value too, in all that this process redacts from now on."""
    _redactor().learn([SimpleNamespace(name=name, value=value)])


@cache
def _redactor() -> Any:
    return import_string(settings.REDACTOR)
