"""Attacks through sockets: outside, the machine's own servers, sockets with names, rare families."""

import errno

import pytest

from agents.sandbox_levels import SandboxLevel
from tests.attacks.scene import NONE, Scene

_PYTHON = "python3 -c 'import os, socket\n{0}'"

# Each reaches a server of this machine if nothing holds it.
REACHES = {
    "TCP": _PYTHON.format('socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 2)'),
    "TCP by bash": 'exec 3<>"/dev/tcp/127.0.0.1/$PORT"',
    "TCP by mapped address": _PYTHON.format(
        'socket.create_connection(("::ffff:127.0.0.1", int(os.environ["PORT"])), 2)'
    ),
    "a socket with a name": _PYTHON.format(
        'socket.socket(socket.AF_UNIX).connect(os.environ["SOCKET"])'
    ),
    "a socket with a name, by its folder": _PYTHON.format(
        'os.chdir(os.environ["DATA"]); socket.socket(socket.AF_UNIX).connect("product.sock")'
    ),
    "UDP": _PYTHON.format(
        's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); '
        's.sendto(b"x", ("127.0.0.1", int(os.environ["UDP_PORT"])))'
    ),
}  # fmt: skip


def reached(scene: Scene) -> bool:
    """Whether anything has come to one of the servers."""
    try:
        scene.datagrams.recv(10)
    except BlockingIOError:
        return bool(scene.tcp.connections or scene.unix.connections)
    return True


@pytest.mark.parametrize("name", REACHES)
def test_no_server_of_the_machine_is_reached(
    name: str, level: SandboxLevel, scene: Scene, open_scene: Scene
) -> None:
    control = open_scene.run(NONE, REACHES[name])
    assert control.exit_code == 0, control.output.decode()
    scene.run(level, REACHES[name])
    assert not reached(scene)


def test_an_address_outside_is_not_reached(level: SandboxLevel, scene: Scene) -> None:
    for attack in ("exec 3<>/dev/tcp/192.0.2.1/80", "exec 3<>/dev/tcp/169.254.169.254/80",
                   "getent hosts example.org"):  # fmt: skip
        result = scene.run(level, attack)
        assert result.exit_code != 0
        assert result.seconds < 5  # refused at once, not by a time limit


@pytest.mark.parametrize(
    ("family", "kind"),
    [("packet", (17, 3)), ("algorithms", (38, 5)), ("virtual machines", (40, 1)), ("keys", (15, 3)),
     ("bluetooth", (31, 3)), ("can", (29, 3)), ("tipc", (30, 1)), ("netfilter", (16, 3))],
)  # fmt: skip
def test_rare_families_of_sockets_are_refused(
    family: str, kind: tuple[int, int], level: SandboxLevel, scene: Scene
) -> None:
    number, sort = kind
    protocol = 12 if family == "netfilter" else 0
    program = f"""
try:
    socket.socket({number}, {sort}, {protocol})
except OSError as error:
    print(error.errno)"""
    answer = scene.run(level, _PYTHON.format(program)).output.decode().strip()
    wanted = errno.EAFNOSUPPORT if level.name == "bubblewrap" else errno.EPERM
    assert answer == str(wanted)


def test_a_pair_of_sockets_works_and_is_not_connected_anew(
    level: SandboxLevel, scene: Scene
) -> None:
    stream = 'a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"'
    assert scene.run(level, _PYTHON.format(stream)).exit_code == 0
    anew = 'a, b = socket.socketpair(type=socket.SOCK_DGRAM); a.connect(os.environ["SOCKET"])'
    assert scene.run(level, _PYTHON.format(anew)).exit_code != 0
    assert not reached(scene)


def test_a_setup_with_network_reaches_servers_and_no_named_socket(
    level: SandboxLevel, scene: Scene
) -> None:
    """A person wrote it, and it may fetch packages; it may not speak to the machine's programs."""
    assert scene.run(level, REACHES["TCP"], network=True).exit_code == 0
    scene.tcp.connections = 0
    assert scene.run(level, REACHES["a socket with a name"], network=True).exit_code != 0
    assert not reached(scene)
