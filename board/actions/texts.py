"""Text that every database takes."""

from typing import Any


def clean(value: Any) -> Any:
    """Return JSON without what PostgreSQL refuses: NUL characters and lone surrogates."""
    match value:
        case str():
            return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
        case dict():
            return {clean(name): clean(part) for name, part in value.items()}
        case list() | tuple():
            return [clean(part) for part in value]
        case _:
            return value
