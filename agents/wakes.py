"""Who in this process wants to hear a wake-up."""

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def listen(callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback`, from any thread, at each wake-up; returns a function that ends this."""
    _listeners.append(callback)
    return lambda: _listeners.remove(callback)


def wake_all() -> None:
    """Call every listener of this process."""
    for callback in _listeners:
        callback()
