"""How many requests one person's programs may make. Counted in the memory of each web process."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

REQUESTS_A_MINUTE = 600  # ten a second: more than a script needs, less than a loop gone wild
MAX_CALLERS = 10_000  # remembered at once; the longest silent is forgotten first


class Buckets:
    """A token bucket for each caller: it holds a minute's worth and refills evenly."""

    def __init__(
        self, *, per_minute: int = REQUESTS_A_MINUTE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._size = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._lock = threading.Lock()
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, caller: Hashable) -> float:
        """Take one request from the caller's bucket; return 0, or the seconds to wait if it is empty."""
        now = self._clock()
        with self._lock:
            level, since = self._levels.pop(caller, (self._size, now))
            level = min(self._size, level + (now - since) * self._per_second)
            wait = 0.0 if level >= 1 else (1 - level) / self._per_second
            self._levels[caller] = (level if wait else level - 1, now)
            if len(self._levels) > MAX_CALLERS:
                self._levels.popitem(last=False)
        return wait


requests = Buckets()
