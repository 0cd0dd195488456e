"""Log lines and last words of a process without secrets: messages, their arguments and tracebacks."""

import logging
import sys
import traceback
from types import TracebackType

from agents.harness.redaction import shared


class RedactedFormatter(logging.Formatter):
    """Formats a record as usual, then takes the secrets out of all of it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with its traceback if there is one."""
        return shared.text(super().format(record))


def redact_last_words() -> None:
    """Let the traceback of a process that ends by an exception be redacted."""
    sys.excepthook = _say


def _say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(shared.text("".join(traceback.format_exception(kind, error, trace))))
