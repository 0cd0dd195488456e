"""The sandbox: what a command can do in it, and what it cannot."""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import landlock, processes, sandbox_mounts
from agents.sandbox import Sandbox
from agents.sandbox_environment import strip_secrets
from agents.sandbox_levels import SandboxLevel
from agents.sandbox_mounts import PrivateGit
from agents.sandbox_probe import look_again, probe

needs_bubblewrap = pytest.mark.skipif(probe().name != "bubblewrap", reason=probe().message)
NONE = SandboxLevel("none", "for a test")


def git(folder: Path, *arguments: str) -> str:
    result = processes.run(
        ["git", "-c", "user.name=Alice", "-c", "user.email=alice@example.org", *arguments],
        cwd=folder,
        env=processes.base_environment(),
        timeout_seconds=20,
    )
    assert result.exit_code == 0, result.stderr.decode()
    return result.stdout.decode().strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare repository with one commit, and two worktrees: card-1 and card-2."""
    folder = tmp_path_factory.mktemp("repository")
    source = folder / "source"
    git(folder, "init", "-q", "-b", "main", str(source))
    (source / "README.md").write_text("hello\n")
    git(source, "add", "README.md")
    git(source, "commit", "-q", "-m", "First")
    git(folder, "clone", "-q", "--bare", str(source), str(folder / "hub.git"))
    git(folder, "clone", "-q", "--bare", "--shared", "hub.git", str(folder / "clone.git"))
    return folder


@pytest.fixture
def shell(repository: Path, tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox in a worktree of its own, as a worker makes it."""
    common, worktree = repository / "clone.git", tmp_path / "card-1"
    name = f"card-{time.monotonic_ns()}"
    git(common, "worktree", "add", "-q", "-b", f"cards/{name}", str(worktree), "main")
    entry = Path((worktree / ".git").read_text().removeprefix("gitdir: ").strip())
    private = tmp_path / "private"
    (tmp_path / "scratch").mkdir()
    (tmp_path / "outputs").mkdir()
    yield Sandbox(
        worktree,
        scratch=tmp_path / "scratch",
        outputs=tmp_path / "outputs",
        level=probe(),
        git=PrivateGit(common, entry, private / "refs", private / "logs", private / "objects"),
    )
    git(common, "worktree", "remove", "--force", str(worktree))


def output(shell: Sandbox, command: str, *, timeout: float = 20) -> str:
    return shell.run(command, timeout_seconds=timeout).output.decode()


def fails(shell: Sandbox, command: str) -> bool:
    result = shell.run(command, timeout_seconds=20)
    return result.exit_code not in (0, None)


@needs_bubblewrap
def test_the_probe_says_in_a_sentence_what_works_here():
    level = probe()
    assert level.name == "bubblewrap"
    assert level.message.startswith("Commands run in bubblewrap.")


@pytest.mark.parametrize(
    ("abi", "name", "word"),
    [(6, "landlock", "Landlock, version 6"), (2, "none", "Linux 6.2"), (0, "none", "no Landlock")],
)
def test_without_the_program_the_level_is_lower_and_says_what_to_install(
    monkeypatch, abi, name, word
):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    if abi > landlock.version():
        pytest.skip("the kernel's Landlock is older")
    monkeypatch.setattr(landlock, "version", lambda: abi)
    level = look_again()
    assert level.name == name
    assert word in level.message
    assert "apt install bubblewrap" in level.message


def test_a_program_that_cannot_isolate_gives_a_lower_level_and_its_reason(tmp_path, monkeypatch):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda *_, **__: str(fake))
    monkeypatch.setattr(landlock, "version", lambda: 0)
    level = look_again()
    assert level.name == "none"
    assert "No permissions to create new namespace" in level.message
    assert "each shell command that does more than read has to be approved" in level.message


def test_no_secret_passes_the_allow_list():
    secrets = ["ANTHROPIC_API_KEY", "PULLCORD_DATA", "SECRET_KEY", "DATABASE_URL", "REDIS_URL",
               "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "LD_PRELOAD"]  # fmt: skip
    assert strip_secrets({**dict.fromkeys(secrets, "x"), "LANG": "C"}) == {"LANG": "C"}


@pytest.mark.parametrize("level", [pytest.param(probe(), marks=needs_bubblewrap), NONE])
def test_a_command_sees_only_neutral_variables(tmp_path, monkeypatch, level):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    monkeypatch.setenv("MY_TOKEN", "sk-very-secret")
    (tmp_path / "w").mkdir()
    shell = Sandbox(tmp_path / "w", scratch=tmp_path, outputs=tmp_path, level=level)
    text = output(shell, "env; cat /proc/self/environ")
    assert "sk-very-secret" not in text
    assert "TERM=dumb" in text
    assert "GIT_TERMINAL_PROMPT=0" in text


def test_without_a_sandbox_a_command_runs_in_the_workspace_and_reports_its_end(tmp_path):
    (tmp_path / "w").mkdir()
    shell = Sandbox(tmp_path / "w", scratch=tmp_path, outputs=tmp_path, level=NONE)
    result = shell.run("pwd; echo no >&2; exit 4", timeout_seconds=5)
    assert (result.exit_code, result.ended_by) == (4, "exit")
    assert result.output.decode() == f"{tmp_path / 'w'}\nno\n"
    assert shell.sandbox_level == "none"


@needs_bubblewrap
@pytest.mark.parametrize(
    "command",
    [
        "echo more >>README.md && git add -A && git commit -q -m Second && git log --oneline",
        "git switch -q -c other && git switch -q -",
        "git tag v1 && git tag -l",
        "git switch -q -c x && echo 1 >x && git add x && git commit -q -m x && git switch -q - && "
        "git merge -q --no-ff -m merged x",
        "echo x >>README.md && git stash -q && git stash pop",
        "git status --short && git diff && git log -1 --stat",
        "python3 -c 'import ssl, sqlite3, json; print(1)'",
        "echo x >/tmp/note && cat /tmp/note",
        "mkdir -p ~/.cache && touch ~/.cache/x",
        "cat <(echo process substitution)",
        "head -c 100 /dev/urandom >/dev/null && : >/dev/shm/x",
    ],
)
def test_ordinary_work_is_possible(shell, command):
    result = shell.run(command, timeout_seconds=20)
    assert result.exit_code == 0, result.output.decode()


@needs_bubblewrap
@pytest.mark.parametrize(
    "command",
    [
        "touch /usr/x",
        "touch /etc/x",
        "cat /etc/shadow",
        "ls /root/.ssh",
        "ls /var/lib",
        "rm .git",
        "echo 'gitdir: /tmp/evil' >.git",
        "git config core.fsmonitor 'touch /tmp/x'",
        'touch "$(git rev-parse --git-common-dir)/hooks/pre-commit"',
        'echo x >"$(git rev-parse --git-common-dir)/packed-refs"',
        'echo x >"$(git rev-parse --git-common-dir)/info/attributes"',
        'touch "$(git rev-parse --git-common-dir)/objects/x"',
        'echo "[core]" >"$(git rev-parse --git-dir)/config.worktree"',
        'rm "$(git rev-parse --git-dir)/config.worktree"',
        'echo /tmp >"$(git rev-parse --git-dir)/commondir"',
        'echo /tmp >"$(git rev-parse --git-dir)/gitdir"',
        "unshare -U true",
        "unshare -m true",
        "mount -t tmpfs none /mnt",
        "mount -o remount,rw /usr",
        "mknod /tmp/disk b 8 0",
        "cat /dev/sda /dev/vda /dev/mem",
        "echo b >/proc/sysrq-trigger",
        "cat /proc/sys/kernel/panic >/tmp/now; cat /tmp/now >/proc/sys/kernel/panic",
        "chroot / true",
        "cat /dev/tty",
    ],
)
def test_the_way_out_is_closed(shell, command):
    assert fails(shell, command)


@needs_bubblewrap
def test_the_agents_commits_stay_in_its_private_git_folders(shell, repository, tmp_path):
    before = git(repository / "clone.git", "for-each-ref")
    objects = {path for path in (repository / "clone.git/objects").rglob("*") if path.is_file()}
    commit = "echo more >>README.md && git commit -q -a -m Second && git rev-parse HEAD"
    sha = output(shell, commit).strip()
    assert len(sha) == 40
    assert git(repository / "clone.git", "for-each-ref") == before
    assert objects == {
        path for path in (repository / "clone.git/objects").rglob("*") if path.is_file()
    }
    assert (tmp_path / "private/objects" / sha[:2] / sha[2:]).exists()
    assert output(shell, "git log -1 --format=%s").strip() == "Second"


@needs_bubblewrap
def test_worktrees_of_other_cards_do_not_exist(shell, repository, tmp_path):
    other = tmp_path / "card-2"
    git(repository / "clone.git", "worktree", "add", "-q", "--detach", str(other))
    assert fails(shell, f"ls {other}")
    assert "card-2" not in output(shell, 'ls "$(git rev-parse --git-common-dir)/worktrees"')
    git(repository / "clone.git", "worktree", "remove", str(other))


@needs_bubblewrap
def test_processes_outside_are_invisible(shell):
    outside = processes.spawn(["sleep", "60"], cwd=Path("/"), env=processes.base_environment())
    try:
        assert "sleep" not in output(shell, "cat /proc/[0-9]*/comm")
        fails(shell, f"kill -9 {outside.pid}")
        assert outside.poll() is None
    finally:
        outside.kill()


@needs_bubblewrap
def test_no_address_outside_is_reachable_not_even_our_loopback(shell):
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    program = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2)"
    assert fails(shell, f'python3 -c "{program}" {port}')
    assert "Network is unreachable" in output(shell, "exec 3<>/dev/tcp/192.0.2.1/80")
    server.close()


@needs_bubblewrap
def test_a_server_in_the_same_command_is_reachable(shell):
    command = (
        "python3 -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 & "
        "for i in $(seq 100); do exec 3<>/dev/tcp/127.0.0.1/8765 && break; sleep 0.05; done; "
        "printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; head -1 <&3"
    )
    assert "200 OK" in output(shell, command)


@needs_bubblewrap
def test_a_link_does_not_lead_out(shell, tmp_path):
    (tmp_path / "secret").write_text("sk-very-secret")
    assert "sk-very-secret" not in output(shell, f"ln -s {tmp_path}/secret link; cat link")


@needs_bubblewrap
def test_hidden_folders_are_empty_even_below_a_visible_one(tmp_path):
    for part in ("w", "readable/data"):
        (tmp_path / part).mkdir(parents=True)
    (tmp_path / "readable/data/key").write_text("secret")
    shell = Sandbox(
        tmp_path / "w",
        scratch=tmp_path / "w",
        outputs=tmp_path,
        level=probe(),
        readable=[tmp_path / "readable"],
        hidden=[tmp_path / "readable/data"],
    )
    assert output(shell, f"ls -A {tmp_path}/readable/data") == ""


@needs_bubblewrap
def test_scratch_lasts_for_the_run_and_home_does_not(shell):
    output(shell, "echo kept >/tmp/file; echo lost >~/file")
    assert output(shell, "cat /tmp/file; test -e ~/file || echo gone") == "kept\ngone\n"


@needs_bubblewrap
def test_the_interpreter_that_runs_us_is_visible(shell):
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert output(shell, "python3 -V").startswith(f"Python {version}")


@needs_bubblewrap
def test_there_are_no_capabilities(shell):
    lines = output(shell, "grep Cap /proc/self/status").splitlines()
    assert {line.split()[1] for line in lines} == {"0000000000000000"}


@needs_bubblewrap
@pytest.mark.parametrize("way", ["sleep 97 &", "setsid sleep 97 &", "(setsid nohup sleep 97 &);"])
def test_nothing_outlives_a_command(shell, way):
    result = shell.run(f"{way} echo done", timeout_seconds=20)
    assert result.output.startswith(b"done")
    assert result.seconds < 5
    deadline = time.monotonic() + 5
    while "sleep 97" in commands_of_this_machine():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def commands_of_this_machine() -> str:
    lines = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            lines.append(line)
    return "\n".join(line for line in lines if line.startswith("sleep "))


@needs_bubblewrap
def test_a_command_can_be_cancelled_and_ends_within_seconds(shell):
    cancel = threading.Event()
    result = shell.run(
        "echo up; sleep 98", timeout_seconds=60, on_output=lambda _: cancel.set(), cancel=cancel
    )
    assert (result.ended_by, result.exit_code, result.output) == ("cancelled", None, b"up\n")
    assert result.seconds < 5


@needs_bubblewrap
def test_long_output_is_spooled_and_short_output_leaves_no_file(shell, tmp_path):
    shell.run("echo short", timeout_seconds=20)
    assert list((tmp_path / "outputs").glob("*.txt")) == []
    result = shell.run("seq 100000", timeout_seconds=20)
    assert result.spool is not None
    assert Path(result.spool).read_text().endswith("99999\n100000\n")


@needs_bubblewrap
def test_a_program_may_not_take_all_memory(shell):
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") - 1
    assert "MemoryError" in output(shell, f"python3 -c 'bytearray({size})'")


def test_the_copy_of_etc_is_made_once_and_anew_when_something_changes(tmp_path, monkeypatch):
    etc = tmp_path / "etc"
    (etc / "ssl" / "certs").mkdir(parents=True)
    (etc / "hosts").write_text("127.0.0.1 localhost\n")
    (etc / "ssl" / "certs" / "a.pem").write_text("a")
    (etc / "shadow").write_text("secret")
    monkeypatch.setattr(sandbox_mounts, "ETC", etc)
    shared = tmp_path / "shared"
    first = sandbox_mounts.copy_etc(shared)
    assert sandbox_mounts.copy_etc(shared) == first
    assert sorted(path.name for path in first.iterdir()) == ["hosts", "ssl"]
    (etc / "ssl" / "certs" / "b.pem").write_text("b")
    second = sandbox_mounts.copy_etc(shared)
    assert second != first
    assert (second / "ssl" / "certs" / "b.pem").read_text() == "b"
    assert first.exists()  # a run may be using it
    os.utime(first, (0, 0))
    (etc / "hosts").write_text("127.0.0.1 localhost other\n")
    third = sandbox_mounts.copy_etc(shared)
    assert sorted(shared.iterdir()) == sorted([second, third])
