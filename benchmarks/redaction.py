"""What it costs to look for secrets: python -m benchmarks.redaction

CPU time, because the machine may do other things: per line, per chunk of a pipe, and for a new run.
"""

import secrets
import time
from collections.abc import Callable

from agents.harness.redaction import Redactor, Secret
from benchmarks.machine import describe, value

LINE = b"tests/board/actions/test_audit.py::test_the_database_refuses_to_rewrite PASSED [ 33%] in 0.13 s\n"
KNOWN = 41  # secrets: a model key and what a large .env holds
LINES_A_SECOND = 5_000  # of a noisy build


def main() -> None:
    """Print the figures."""
    describe()
    known = [Secret("KEY", f"sk-ant-api03-{secrets.token_urlsafe(70)}")]
    known += [Secret(f"VALUE_{n}", secrets.token_urlsafe(24)) for n in range(KNOWN - 1)]
    seconds = cpu(lambda: Redactor(known), 5)
    value(f"A redactor with {KNOWN} secrets", f"{seconds * 1000:.0f} ms")
    redactor = Redactor(known)
    for name, data in (("a line", LINE), ("64 KiB", LINE * (65_536 // len(LINE)))):
        times = 2_000_000 // len(data)
        whole = cpu(lambda data=data: redactor.data(data), times)  # type: ignore[misc]
        stream = redactor.stream()
        piece = cpu(lambda data=data, stream=stream: stream.feed(data), times)  # type: ignore[misc]
        value(f"A text of {name}", f"{whole * 1e6:.1f} µs, {len(data) / whole / 1e6:.1f} MB/s")
        value(
            f"A stream in pieces of {name}",
            f"{piece * 1e6:.1f} µs, {len(data) / piece / 1e6:.1f} MB/s",
        )
        share = piece * LINES_A_SECOND * len(LINE) / len(data)
        value(f"  of a core at {LINES_A_SECOND} lines/s", f"{share:.1%}", goal="no visible cost")


def cpu(call: Callable[[], object], times: int) -> float:
    """Return the seconds of CPU time of one call."""
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times


if __name__ == "__main__":
    main()
