"""What an agent might attack, all real: a repository, another card, the product's data, servers, a process.

Each attack is a shell text that ends with 0 if it worked. The same text is tried without a sandbox
on a scene of its own: there it has to work, or it would prove nothing.
"""

import os
import secrets
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.harness.ports import CommandResult
from agents.sandbox import Sandbox
from agents.sandbox_levels import SandboxLevel
from agents.sandbox_mounts import PrivateGit
from agents.sandbox_probe import probe
from agents.workspaces.records import Worktree
from agents.workspaces.worktrees import private_git
from tests.agents.workspaces.conftest import Place, place_in
from tests.agents.workspaces.repos import make_repository, run_git

BUBBLEWRAP = probe()
LANDLOCK = probe(only="landlock")
NONE = SandboxLevel("none", "to see that an attack would work")
SECRET = "sk-ant-very-secret-0123456789"


@dataclass
class Server:
    """Counts who connects."""

    listener: socket.socket
    connections: int = 0

    def watch(self) -> None:
        """Answer until the socket is closed."""
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()


@dataclass
class Scene:
    """One run's place among everything that it must not reach."""

    place: Place
    worktree: Worktree
    other: Worktree
    data: Path
    home_marker: Path
    victim: subprocess.Popen[bytes]
    tcp: Server
    unix: Server
    datagrams: socket.socket
    private: Path

    def shell(self, level: SandboxLevel, *, network: bool = False) -> Sandbox:
        """The shell of the run at a level."""
        git = private_git(self.worktree)
        return Sandbox(
            self.worktree.path,
            scratch=self.private / "scratch",
            outputs=self.private / "outputs",
            level=level,
            git=PrivateGit(git.common, git.entry, git.refs, git.logs, git.objects, git.entry_copy),
            hidden=[self.data],
            network=network,
        )

    def run(
        self, level: SandboxLevel, command: str, *, seconds: float = 20, network: bool = False
    ) -> CommandResult:
        """Run a text, with the names of this scene as variables of the shell."""
        names = {
            "COMMON": self.worktree.git_dir,
            "ENTRY": self.worktree.entry,
            "OTHER": self.other.path,
            "DATA": self.data,
            "SECRET": self.data / "secret.key",
            "MARKER": self.home_marker,
            "VICTIM": self.victim.pid,
            "PORT": self.tcp.listener.getsockname()[1],
            "UDP_PORT": self.datagrams.getsockname()[1],
            "SOCKET": self.data / "product.sock",
        }
        lines = [f"export {name}='{value}'" for name, value in names.items()]
        with closing(self.shell(level, network=network)) as shell:
            shell.get_ready()  # as for an agent's command
            return shell.run("\n".join([*lines, command]), timeout_seconds=seconds)

    def shared_files(self) -> dict[str, bytes]:
        """Everything outside the run's own folders, as it is now: files, links, folders."""
        found = {}
        for folder in (
            self.place.hub,
            self.place.clone,
            self.other.path,
            self.data,
            self.place.source,
        ):
            for path in folder.rglob("*"):
                found[str(path)] = _content(path)
        return found


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return b"link to " + os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else b"folder, socket or the like"


@contextmanager
def scene_in(folder: Path) -> Iterator[Scene]:
    """Build a scene; stop its servers and its process at the end."""
    place = place_in(folder / "work")
    make_repository(place.source)
    place.fetch()
    data = folder / "product"
    data.mkdir()
    (data / "secret.key").write_text(SECRET)
    (data / "db.sqlite3").write_bytes(b"x" * 1000)
    with ExitStack() as stack:
        marker = Path.home() / f".pullcord-attack-{secrets.token_hex(4)}"
        marker.write_text(SECRET)
        stack.callback(marker.unlink)
        victim = subprocess.Popen(
            ["sleep", "600"], env={"API_KEY": SECRET, "PATH": os.environ["PATH"]},
        )  # fmt: skip
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        tcp = Server(stack.enter_context(socket.create_server(("127.0.0.1", 0))))
        # The path of a socket must be short, and the one of a test's folder may be long.
        short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pc-")))
        unix_socket = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix_socket.bind(str(short / "s"))
        unix_socket.listen()
        (short / "s").rename(data / "product.sock")
        unix = Server(unix_socket)
        for server in (tcp, unix):
            threading.Thread(target=server.watch, daemon=True).start()
            stack.callback(server.listener.shutdown, socket.SHUT_RDWR)
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)  # noqa: FBT003
        worktree = place.start("KEY-1-1", target_branch="main")
        other = place.start("KEY-2-1", target_branch="main")
        (other.path / "notes.txt").write_text(SECRET)
        private = folder / "private"
        for name in ("scratch", "outputs"):
            (private / name).mkdir(parents=True)
        yield Scene(place, worktree, other, data, marker, victim, tcp, unix, datagrams, private)


def refs_of(scene: Scene) -> str:
    """The refs of the clone and the hub."""
    return run_git(scene.place.clone, "for-each-ref") + run_git(scene.place.hub, "for-each-ref")
