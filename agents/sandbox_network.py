"""How a command in the first level's sandbox reaches the proxy of its run, see `agents/proxy.py`.

A network namespace has nothing but its own loopback, so a forwarder in there leads a port of it to the
proxy's socket, which is bound in. Programs find the port by the variables that they all know.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from agents.sandbox_mounts import Mount

FORWARDER = Path(__file__).with_name("sandbox_forwarder.py")
PORT = 61_080  # above the range from which programs are given ports
_SOCKET = "/run/proxy.sock"
_PROGRAM = "/run/forwarder.py"
_LOCAL = "localhost,127.0.0.1,::1"


def mount_list(socket: Path | None) -> list[Mount]:
    """The same as `mounts`, for containers."""
    if socket is None:
        return []
    return [Mount("ro", socket, Path(_SOCKET)), Mount("ro", FORWARDER, Path(_PROGRAM))]


def mounts(socket: Path | None) -> list[str]:
    """Arguments for bubblewrap, after the ones that make /run; none without a proxy."""
    if socket is None:
        return []
    return ["--ro-bind", str(socket), _SOCKET, "--ro-bind", str(FORWARDER), _PROGRAM]


def command(argv: Sequence[str], *, python: str = "") -> list[str]:
    """`argv` behind the forwarder. The interpreter is the real one: an environment's is not in there."""
    return [
        python or str(Path(sys.executable).resolve()),
        "-I",
        "-S",
        _PROGRAM,
        _SOCKET,
        str(PORT),
        *argv,
    ]


def environment() -> dict[str, str]:
    """What makes programs use the proxy, except for their own servers."""
    proxy = f"http://127.0.0.1:{PORT}"
    names = {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": _LOCAL}
    # Node.js looks at the others only when it is told to.
    return (
        names | {name.upper(): value for name, value in names.items()} | {"NODE_USE_ENV_PROXY": "1"}
    )
