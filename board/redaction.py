"""Takes known secrets out of what the board itself stores or shows; the work is done by `settings.REDACTOR`."""

from functools import cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string


def redact(value: Any) -> Any:
    """Return a JSON value without secrets in its strings."""
    return _redactor().json(value)


@cache
def _redactor() -> Any:
    return import_string(settings.REDACTOR)
