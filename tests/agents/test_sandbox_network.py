"""The way out of the first level's sandbox: real commands, a forwarder, the proxy, and a server as the host."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agents.proxy import Place, Proxy
from agents.sandbox import Sandbox
from agents.sandbox_levels import SandboxLevel
from agents.sandbox_probe import probe
from tests.agents.test_proxy import HOST, Server

needs_bubblewrap = pytest.mark.skipif(probe().name != "bubblewrap", reason=probe().message)


class Outside:
    """A server and a proxy in a loop of their own: commands block the one who runs them."""

    def __init__(self, path: Path) -> None:
        self.server = Server()
        self.notes: list[str] = []
        self.path = path
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(20)

    async def _open(self) -> None:
        self._listening = await asyncio.start_server(self.server.serve, "127.0.0.1", 0)
        self.server.port = self._listening.sockets[0].getsockname()[1]
        self._proxy = Proxy(
            [HOST],
            say=lambda text, _level: self.notes.append(text),
            resolver=self._resolve,
            is_reachable=lambda _address: True,
        )
        await self._proxy.start(self.path)

    async def _resolve(self, _host: str, _port: int) -> Sequence[Place]:
        return [("127.0.0.1", self.server.port)]

    async def _shut(self) -> None:
        await self._proxy.close()
        self._listening.close()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    outside = Outside(tmp_path / "proxy.sock")
    yield outside
    outside.close()


def sandbox(folder: Path, level: SandboxLevel, *, proxy: Path | None) -> Sandbox:
    for name in ("work", "scratch", "outputs"):
        (folder / name).mkdir()
    return Sandbox(
        folder / "work",
        scratch=folder / "scratch",
        outputs=folder / "outputs",
        level=level,
        proxy=proxy,
    )


@pytest.fixture
def shell(outside: Outside, tmp_path: Path) -> Sandbox:
    return sandbox(tmp_path, probe(), proxy=outside.path)


def said(shell: Sandbox, command: str) -> str:
    result = shell.run(command, timeout_seconds=30)
    return f"{result.exit_code} {result.output.decode()}".strip()


PYTHON = (
    "python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())' "
)


@needs_bubblewrap
def test_a_listed_host_is_reached_by_the_variables_that_programs_know(
    shell: Sandbox, outside: Outside
):
    assert said(shell, f"{PYTHON} http://{HOST}/a") == "0 hello"
    assert outside.server.heads[0].startswith(b"GET /a HTTP/1.1\r\nHost: host.example\r\n")
    assert outside.notes == ["Network: GET host.example allowed"]


@needs_bubblewrap
def test_a_tunnel_is_made_for_https(shell: Sandbox, outside: Outside):
    connect = (
        "exec 3<>/dev/tcp/127.0.0.1/${https_proxy##*:}; "
        rf"printf 'CONNECT {HOST}:443 HTTP/1.1\r\n\r\nclient hello\r\n\r\n' >&3; cat <&3"
    )
    answer = said(shell, connect)
    assert answer.startswith("0 HTTP/1.1 200 ")
    assert answer.endswith("hello")
    assert outside.server.heads == [b"client hello\r\n\r\n"]


@needs_bubblewrap
@pytest.mark.parametrize(
    "command",
    [
        f"{PYTHON} http://other.example/",
        f"{PYTHON} http://{HOST}.evil.example/",
        f"{PYTHON} http://127.0.0.1.:80/",
        f"{PYTHON} https://other.example/",
        f"env -u http_proxy -u HTTP_PROXY {PYTHON} http://{HOST}/",
        "exec 3<>/dev/tcp/{address}/{port}",
        "exec 3<>/dev/tcp/192.0.2.1/80",
        f"getent hosts {HOST}",
        "ls /run/../{path}",
        "echo x > /run/proxy.sock",
        "rm /run/proxy.sock",
    ],
)
def test_nothing_else_is_reached(shell: Sandbox, outside: Outside, command: str):
    command = command.replace("{port}", str(outside.server.port))
    command = command.replace("{address}", "127.0.0.1").replace("{path}", str(outside.path))
    assert not said(shell, command).startswith("0 ")
    assert not outside.server.heads


@needs_bubblewrap
def test_the_command_is_what_it_is_without(shell: Sandbox):
    assert said(shell, "exit 7") == "7"
    assert said(shell, "wait; jobs; echo $(ps -o comm= --ppid $$ | grep -c python)") == "0 0"
    assert said(shell, "echo out; echo err >&2") == "0 out\nerr"
    assert said(shell, "kill -9 $$").split()[0] != "0"
    result = shell.run("echo begun; sleep 60", timeout_seconds=1)
    assert result.ended_by == "timeout"
    assert result.output == b"begun\n"


@needs_bubblewrap
def test_many_connections_at_once_end_none_of_the_later_ones(shell: Sandbox):
    flood = (
        "import os, socket, urllib.request as u\n"
        "port = int(os.environ['http_proxy'].rsplit(':')[-1])\n"
        "held = [socket.create_connection(('127.0.0.1', port)) for _ in range(200)]\n"
        "[one.close() for one in held]\n"
        "import time\n"
        "for _ in range(100):\n"
        "    try:\n"
        f"        print(u.urlopen('http://{HOST}/').read().decode()); break\n"
        "    except OSError: time.sleep(0.1)\n"
    )
    assert said(shell, f'python3 -c "{flood}"') == "0 hello"


@needs_bubblewrap
def test_without_a_list_there_is_no_forwarder(tmp_path: Path):
    shell = sandbox(tmp_path, probe(), proxy=None)
    assert said(shell, "env | grep -ci proxy; ls /run") == "0 0"


def test_the_lower_levels_have_none(tmp_path: Path):
    shell = sandbox(tmp_path, SandboxLevel("none", "for a test"), proxy=tmp_path / "proxy.sock")
    assert said(shell, "env | grep -ci proxy; true") == "0 0"
