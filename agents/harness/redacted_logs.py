"""Log lines without secrets: messages, their arguments and tracebacks."""

import logging

from agents.harness.redaction import shared


class RedactedFormatter(logging.Formatter):
    """Formats a record as usual, then takes the secrets out of all of it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with its traceback if there is one."""
        return shared.text(super().format(record))
