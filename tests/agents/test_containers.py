"""Commands in containers of a real podman: what they may, what they may not, and that nothing of them is left."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.container_probe import find_engine
from agents.containers import ContainerError, ContainerShell, Engine
from agents.sandbox_mounts import PrivateGit
from agents.workspaces import commit_all, private_git, remove_worktree
from tests import containers
from tests.agents.workspaces.repos import run_git
from tests.attacks.scene import SECRET, Scene, refs_of, scene_in
from tests.attacks.test_files import CHANGES, READS
from tests.product import ROOT

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(containers.why_not()), reason=containers.why_not()),
    pytest.mark.xdist_group("containers"),
]
NAP = f"sleep 4712.{os.getpid()}"  # no other test process sleeps so long
DEAD_SECONDS = 5.0


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Podman with the image for tests, tried."""
    with (
        containers.podman(tmp_path_factory.mktemp("podman") / "all") as names,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in names.items():
            patch.setenv(name, value)
        yield find_engine("podman", containers.IMAGE)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with scene_in(tmp_path / "held") as built:
        yield built


def shell_of(scene: Scene, engine: Engine) -> ContainerShell:
    git = private_git(scene.worktree)
    return ContainerShell(
        scene.worktree.path,
        scratch=scene.private / "scratch",
        outputs=scene.private / "outputs",
        engine=engine,
        git=PrivateGit(git.common, git.entry, git.refs, git.logs, git.objects, git.entry_copy),
    )


def run(shell: ContainerShell, command: str, *, code: int = 0) -> str:
    result = shell.run(command, timeout_seconds=60)
    assert result.exit_code == code, result.output.decode()
    return result.output.decode().strip()


def named(scene: Scene, command: str) -> str:
    """The attack with the places that it names."""
    places = {
        "COMMON": scene.worktree.git_dir,
        "ENTRY": scene.worktree.entry,
        "OTHER": scene.other.path,
        "DATA": scene.data,
        "SECRET": scene.data / "secret.key",
        "MARKER": scene.home_marker,
        "VICTIM": scene.victim.pid,
    }
    return "\n".join([*(f"export {name}='{place}'" for name, place in places.items()), command])


def test_a_command_works_in_the_image_and_in_the_worktree(scene: Scene, engine: Engine) -> None:
    shell = shell_of(scene, engine)
    assert shell.sandbox_level == "podman"
    assert run(shell, "cat /etc/image; pwd") == f"made for tests\n{scene.worktree.path}"
    run(shell, "mkdir -p new && echo x >new/file && echo kept >/tmp/kept")
    made = scene.worktree.path / "new/file"
    assert (made.read_text(), made.stat().st_uid) == ("x\n", os.geteuid())
    assert run(shell, "cat /tmp/kept; ls -A ~") == "kept"
    run(shell, "exit 7", code=7)
    assert run(shell, "echo out; echo err >&2") == "out\nerr"
    assert run(shell, "cat; echo ended") == "ended"  # it has no input


def test_git_works_and_its_commits_are_private_and_kept(scene: Scene, engine: Engine) -> None:
    shell, refs = shell_of(scene, engine), refs_of(scene)
    (name, *_) = run(shell, "git ls-files").splitlines()
    run(shell, f"echo mine >>{name}; git stash push -q && git stash pop -q && grep -q mine {name}")
    run(shell, "git add -A && git commit -qm Mine && git branch other && git branch -d -q other")
    assert run(shell, "git log -1 --format=%s; git status --porcelain; git stash list") == "Mine"
    assert refs_of(scene) == refs
    commit_all(scene.worktree, "Turn")
    remove_worktree(scene.worktree, scene.place.hub)
    kept = run_git(scene.place.hub, "for-each-ref", "--format=%(subject)", "refs/kept")
    assert "Mine" in kept.splitlines()


def test_nothing_that_is_shared_changes(scene: Scene, engine: Engine) -> None:
    """Without a sandbox each of these attacks works: `tests/attacks/test_files.py` sees to that."""
    shell, refs, before = shell_of(scene, engine), refs_of(scene), scene.shared_files()
    # All in one container: one for each takes a second.
    run(shell, named(scene, "\n".join(f"({attack}\n)" for attack in CHANGES.values())) + "\ntrue")
    assert scene.shared_files() == before
    assert refs_of(scene) == refs


def test_nothing_secret_is_read(
    scene: Scene, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "SECRET_KEY", "HTTPS_PROXY", "DATABASE_URL"):
        monkeypatch.setenv(name, SECRET)
    shell = shell_of(scene, engine)
    attacks = [*READS.values(), "env; cat /proc/1/environ"]
    said = run(shell, named(scene, "\n".join(f"({attack}\n)" for attack in attacks)) + "\necho all")
    assert SECRET not in said.replace(f"echo {SECRET}", "")
    assert "HOME=" in said
    assert said.endswith("all")


def test_a_command_has_no_rights_and_no_network(scene: Scene, engine: Engine) -> None:
    shell = shell_of(scene, engine)
    status = run(shell, "cat /proc/self/status")
    assert "NoNewPrivs:\t1" in status
    assert "CapBnd:\t0000000000000000" in status
    assert "Seccomp:\t2" in status
    for command in (
        "echo x >/usr/x",
        "echo x >/etc/x",
        f"echo x >/dev/tcp/127.0.0.1/{scene.tcp.listener.getsockname()[1]}",
        "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 3)'",
        "ls /run/podman/podman.sock /var/run/docker.sock",
        f"kill -0 {scene.victim.pid}",
        "mkdir m && mount -t tmpfs none m || python3 -c 'import os; os.chroot(\".\")'",
    ):
        assert shell.run(command, timeout_seconds=60).exit_code != 0, command


def test_processes_without_end_are_held_and_gone(scene: Scene, engine: Engine) -> None:
    shell = shell_of(scene, engine)
    many = f"for i in $(seq 3000 2>/dev/null || echo {{1..3000}}); do {NAP} & done; echo all"
    result = shell.run(f"set -e; ({many}) 2>&1", timeout_seconds=60)
    assert b"esource temporarily unavailable" in result.output
    assert not alive(NAP)


@pytest.mark.parametrize("way", ["plainly", "in a session of its own", "deaf"])
def test_a_cancelled_command_is_dead_within_seconds(way: str, scene: Scene, engine: Engine) -> None:
    shell, cancel = shell_of(scene, engine), threading.Event()
    leave = "import os, sys; os.fork() and os._exit(0); os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])"
    command = {
        "plainly": NAP,
        "in a session of its own": f"python3 -c '{leave}' {NAP}; {NAP}",
        "deaf": f"trap '' TERM INT HUP; {NAP} & {NAP}; {NAP}",
    }[way]
    ended: list[str] = []
    thread = threading.Thread(
        target=lambda: ended.append(shell.run(command, timeout_seconds=100, cancel=cancel).ended_by)
    )
    thread.start()
    until(lambda: alive(NAP))
    started = time.monotonic()
    cancel.set()
    until(lambda: not alive(NAP), seconds=DEAD_SECONDS)
    thread.join()
    assert ended == ["cancelled"]
    assert time.monotonic() - started < 3 * DEAD_SECONDS  # with the engine's own tidying
    assert containers_left() == ""


def test_a_command_dies_with_its_worker(scene: Scene, engine: Engine, tmp_path: Path) -> None:
    program = tmp_path / "worker.py"
    program.write_text(
        "from pathlib import Path\n"
        "from agents.container_probe import find_engine\n"
        "from agents.containers import ContainerShell\n"
        f"place = Path({str(scene.private)!r})\n"
        f"engine = find_engine('podman', {containers.IMAGE!r})\n"
        f"shell = ContainerShell(Path({str(scene.worktree.path)!r}), scratch=place / 'scratch',\n"
        "    outputs=place / 'outputs', engine=engine)\n"
        f"shell.run({NAP!r}, timeout_seconds=200)\n"
    )
    worker = subprocess.Popen(
        [sys.executable, str(program)], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    try:
        until(lambda: alive(NAP))
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    until(lambda: not alive(NAP), seconds=DEAD_SECONDS)


def test_what_is_missing_is_said_and_nothing_takes_its_place(engine: Engine) -> None:
    assert engine.has_python
    for name, image, words in (
        ("podman", "localhost/nothing:1", "podman has no image localhost/nothing:1 on "),
        ("lxc", containers.IMAGE, "not a container engine"),
    ):
        with pytest.raises(ContainerError, match=words):
            find_engine(name, image)


def test_a_lost_image_is_an_error_and_not_the_commands(scene: Scene, engine: Engine) -> None:
    gone = Engine("podman", engine.program, "0" * 64)
    with pytest.raises(OSError, match="lost the image"):
        shell_of(scene, gone).run("true", timeout_seconds=60)


def test_a_path_that_no_engine_can_be_told_is_refused(tmp_path: Path, engine: Engine) -> None:
    folder = tmp_path / "a,readonly=false"
    folder.mkdir()
    with pytest.raises(ContainerError, match="comma"):
        ContainerShell(folder, scratch=tmp_path, outputs=tmp_path, engine=engine)


def alive(words: str) -> list[int]:
    """Return the processes whose command line is `words`, zombies aside."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if line == words:
            found.append(int(path.parent.name))
    return found


def containers_left() -> str:
    done = subprocess.run(
        ["podman", "ps", "--all", "--quiet"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def until(condition: object, *, seconds: float = 30.0) -> None:
    """Wait until `condition()` is true."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
