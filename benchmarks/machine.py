"""What every benchmark prints first, and how it prints its figures."""

import os
import platform
import statistics
import sys
from collections.abc import Sequence


def describe() -> None:
    """Print the machine and how busy it is: a figure means nothing without them."""
    load = os.getloadavg()[0]
    print(
        f"{platform.platform()}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}"
    )


def figure(name: str, seconds: Sequence[float], *, goal: str = "") -> None:
    """Print the median, the 95th percentile and the worst of some durations, in milliseconds."""
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    row = f"{name:<52} median {statistics.median(ordered) * 1000:8.1f}  p95 {p95 * 1000:8.1f}"
    print(f"{row}  max {ordered[-1] * 1000:8.1f} ms  n={len(ordered)}  {goal and f'goal: {goal}'}")
    sys.stdout.flush()


def value(name: str, text: object, *, goal: str = "") -> None:
    """Print one figure."""
    print(f"{name:<52} {text}  {goal and f'goal: {goal}'}")
    sys.stdout.flush()
