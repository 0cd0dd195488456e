"""Lets a process die with the one that started it, so that a killed test run leaves nothing behind."""

import ctypes
import signal

PR_SET_PDEATHSIG = 1  # prctl(2)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies, however it dies. Linux only."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
