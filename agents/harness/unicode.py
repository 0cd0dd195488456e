"""Text that UTF-8, JSON and every database take: no lone surrogates, no NUL."""

from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(value: Any) -> Any:
    """Return a JSON value with every string in it cleaned; what needs no change is not copied.

    A lone surrogate cannot be encoded to UTF-8, and PostgreSQL refuses NUL in text and jsonb.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def clean_text(text: str) -> str:
    """Join surrogate pairs, and put U+FFFD where a surrogate stands alone or a NUL was."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
