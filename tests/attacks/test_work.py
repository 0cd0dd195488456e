"""What must work in a sandbox: one that stops the work would be switched off."""

from collections.abc import Iterator

import pytest

from agents.sandbox_levels import SandboxLevel
from tests.attacks.scene import BUBBLEWRAP, LANDLOCK, Scene, scene_in


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One for all: what works does no harm to the next."""
    with scene_in(tmp_path_factory.mktemp("scene")) as built:
        yield built


WORK = {
    "editing": "echo more >>README.md && mkdir -p a/b && cp README.md a/b && rm -r a",
    "reading the history": "git status --short && git diff && git log -1 --stat && git show HEAD",
    "python": "python3 -c 'import ssl, ctypes, subprocess; subprocess.run([\"true\"], check=True)'",
    "threads and event loops": "python3 -c 'import asyncio; asyncio.run(asyncio.to_thread(print))'",
    "sqlite in a file": "python3 -c 'import sqlite3; sqlite3.connect(\"x.db\").execute(\"vacuum\")'",
    "scratch": 'echo x >"$TMPDIR/note" && test "$(cat "$TMPDIR/note")" = x && rm "$TMPDIR/note"',
    "home": "mkdir -p ~/.cache && touch ~/.cache/x",
    "mktemp": 'mktemp -d && python3 -c "import tempfile; tempfile.NamedTemporaryFile()"',
    "process substitution and pipes": "cat <(echo x) | tee /dev/null | wc -l && echo x >/dev/null",
    "a here document": "cat <<X\nhello\nX",
    "background jobs": "sleep 0.1 & wait $!",
    "a time limit": "! timeout 0.2 sleep 10",
    "devices": "head -c 100 /dev/urandom >/dev/null && dd if=/dev/zero of=z count=1 2>/dev/null",
    "links": "ln -s README.md l && cat l && ln README.md h && chmod +x h && rm l h",
    "scripts": "printf '#!/bin/sh\\necho hi\\n' >s && chmod +x s && ./s",
    "a session of its own": "setsid -w true",
    "search": "grep -r hello . ; find . -name '*.md' | sort",
}  # fmt: skip
NEEDS_NAMESPACES = {
    "commit": "echo more >>README.md && git add -A && git commit -q -m Second && git log --oneline",
    "branch": "git switch -q -c other && git switch -q -",
    "stash": "echo x >>README.md && git stash -q && git stash pop",
    "a server": "python3 -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 & "
    "for i in $(seq 100); do exec 3<>/dev/tcp/127.0.0.1/8765 && break; sleep 0.05; done; "
    "printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; head -1 <&3 | grep -q '200 OK'",
    "locks between processes": "python3 -c 'import multiprocessing as m; m.Pool(2).map(str, [1])'",
    "its own addresses": "python3 -c 'import socket; socket.getaddrinfo(\"localhost\", 80); socket.if_nameindex()'",
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_ordinary_work_is_possible(name: str, level: SandboxLevel, scene: Scene) -> None:
    result = scene.run(level, f"set -e\n{WORK[name]}")
    assert result.exit_code == 0, result.output.decode()


@pytest.mark.skipif(BUBBLEWRAP.name != "bubblewrap", reason=BUBBLEWRAP.message)
@pytest.mark.parametrize("name", NEEDS_NAMESPACES)
def test_more_is_possible_in_namespaces(name: str, scene: Scene) -> None:
    result = scene.run(BUBBLEWRAP, f"set -e\n{NEEDS_NAMESPACES[name]}")
    assert result.exit_code == 0, result.output.decode()


@pytest.mark.skipif(LANDLOCK.name != "landlock", reason=LANDLOCK.message)
@pytest.mark.parametrize("name", NEEDS_NAMESPACES)
def test_what_the_second_level_lacks_is_known(name: str, scene: Scene) -> None:
    """If one of these begins to work, docs/reference/sandbox.md is out of date."""
    assert scene.run(LANDLOCK, f"set -e\n{NEEDS_NAMESPACES[name]}", seconds=15).exit_code != 0


def test_exit_codes_and_signals_are_reported(level: SandboxLevel, scene: Scene) -> None:
    assert scene.run(level, "exit 7").exit_code == 7
    assert scene.run(level, "kill -9 $$").exit_code in (137, -9)
