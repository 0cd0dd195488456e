"""Leads connections to this sandbox's loopback to the proxy outside; a program of its own, without imports of ours.

    python -I -S sandbox_forwarder.py SOCKET PORT COMMAND ...

It listens on 127.0.0.1:PORT, which is in the sandbox's own network, before the command begins; each
connection is carried to the socket with a name. The command takes over this very process, so its exit
code and its signals are its own. What forwards ends with the sandbox.
"""

# Each import is paid for in every command: `socket` alone would cost 8 ms.
import _signal as signal  # type: ignore[import-not-found]
import _socket as sockets
import os
import select
import sys

_CHUNK = 65_536  # bytes
_BACKLOG = 64


def main(arguments: list[str]) -> None:
    """Start the forwarder, and become the command."""
    path, port, *command = arguments
    server = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM)
    server.bind(("127.0.0.1", int(port)))
    server.listen(_BACKLOG)
    child = os.fork()
    if child == 0:
        if os.fork() == 0:  # no child of the command, which might wait for all of its own
            _serve(server, path)
        os._exit(0)
    os.waitpid(child, 0)
    os.execvp(command[0], command)  # noqa: S606  the sockets are closed by that


def _serve(server: sockets.socket, path: str) -> None:
    """Take connections for ever; each has a process of its own."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for number in range(3):  # nobody waits for the end of what we do not write
        os.dup2(nothing, number)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        number, _ = server._accept()  # type: ignore[attr-defined]  # noqa: SLF001
        try:
            if os.fork() == 0:
                _carry(number, path)
                os._exit(0)
        except OSError:  # the limit of processes: this connection ends, and later ones may not
            pass
        os.close(number)


def _carry(inner: int, path: str) -> None:
    """Carry bytes both ways until both sides have ended. A fault ends this process, and so both."""
    proxy = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    proxy.connect(path)
    ends = {inner: sockets.socket(fileno=inner), proxy.fileno(): proxy}
    other = {inner: proxy.fileno(), proxy.fileno(): inner}
    reading = [*ends]
    while reading:
        for number in select.select(reading, [], [])[0]:
            chunk = ends[number].recv(_CHUNK)
            if chunk:
                ends[other[number]].sendall(chunk)
            else:
                reading.remove(number)
                ends[other[number]].shutdown(sockets.SHUT_WR)


if __name__ == "__main__":
    main(sys.argv[1:])
