"""Attacks on files: what the product reads, what other cards own, what is secret."""

from pathlib import Path

import pytest

from agents.sandbox_levels import SandboxLevel
from tests.attacks.scene import NONE, SECRET, Scene, refs_of

_OPEN = "python3 -c 'import os, sys; {0}'"

# Changes to what is shared: after each of them every shared file must be as before.
CHANGES = {
    "configuration": 'git config -f "$COMMON/config" core.fsmonitor "touch /tmp/x"',
    "a hook": 'mkdir -p "$COMMON/hooks" && echo "#!/bin/sh" >"$COMMON/hooks/post-checkout"',
    "a whole folder of hooks": 'mv "$COMMON/hooks" "$COMMON/h" || mkdir "$COMMON/hooks"',
    "commondir": 'echo /tmp/evil >"$ENTRY/commondir"',
    "commondir by rename": 'echo /x >"$ENTRY/c" && mv "$ENTRY/c" "$ENTRY/commondir"',
    "gitdir": 'echo /tmp/evil/.git >"$ENTRY/gitdir"',
    "config.worktree, which is absent": 'echo "[core]" >"$ENTRY/config.worktree"',
    "attributes, which are absent": 'mkdir -p "$COMMON/info" && echo "* filter=x" >"$COMMON/info/attributes"',
    "exclude": 'mkdir -p "$COMMON/info" && echo "*" >"$COMMON/info/exclude"',
    "grafts, which are absent": 'mkdir -p "$COMMON/info" && echo x >"$COMMON/info/grafts"',
    "shallow, which is absent": 'echo 0000 >"$COMMON/shallow"',
    "packed refs": 'echo x >"$COMMON/packed-refs"',
    "an object": 'mkdir -p "$COMMON/objects/zz" && echo x >"$COMMON/objects/zz/y"',
    "the list of other object stores": 'echo /tmp >>"$COMMON/objects/info/alternates"',
    "a shared branch": 'echo 1 >"$COMMON/refs/heads/evil"',
    "all shared branches": 'rm -r "$COMMON/refs/heads"',
    "HEAD of the clone": 'echo "ref: refs/heads/x" >"$COMMON/HEAD"',
    "the entry of another card": 'echo x >"$COMMON/worktrees/"KEY-2*/HEAD',
    "the other card's file": 'echo x >"$OTHER/notes.txt"',
    "a new file of the other card": 'echo x >"$OTHER/new"',
    "the other card's link": 'rm "$OTHER/.git"',
    "a file of the product": 'echo x >"$DATA/db.sqlite3"',
    "a new file of the product": 'echo x >"$DATA/policy.yaml"',
    "a file of the product, deleted": 'rm "$DATA/db.sqlite3"',
    "a file of the product, emptied by name": _OPEN.format(
        'os.truncate(os.environ["DATA"] + "/db.sqlite3", 0)'
    ),
    "a file of the product, emptied by reading": _OPEN.format(
        'os.open(os.environ["DATA"] + "/db.sqlite3", os.O_RDONLY | os.O_TRUNC)'
    ),
    "through a link": 'ln -s "$DATA" here && echo x >here/db.sqlite3',
    "through a dangling link": 'ln -s "$DATA/new" here && echo x >here',
    "a file moved in from the other card": 'mv "$OTHER/notes.txt" .',
}  # fmt: skip

# Looks at what is secret.
READS = {
    "the product's key": 'cat "$SECRET"',
    "the key through a link": 'ln -s "$SECRET" link && cat link',
    "the key through two links and ..": 'ln -s "$DATA/.." a && ln -s a/product/secret.key b && cat b',
    "the key through a hard link": 'ln "$SECRET" hard && cat hard',
    "the key by a copy": 'cp "$SECRET" mine && cat mine',
    "the other card's file": 'cat "$OTHER/notes.txt"',
    "the home": 'cat "$MARKER"',
    "the environment of a process": 'tr "\\0" "\\n" <"/proc/$VICTIM/environ"',
    "a file through another process's root": 'cat "/proc/$VICTIM/root$SECRET"',
    "a file through our parent's root": 'cat "/proc/$PPID/root$SECRET"',
    "the list of the product's files": f'ls "$DATA" | grep -q secret.key && echo {SECRET}',
}


@pytest.mark.parametrize("name", CHANGES)
def test_nothing_that_is_shared_changes(
    name: str, level: SandboxLevel, scene: Scene, open_scene: Scene
) -> None:
    untouched = open_scene.shared_files()
    open_scene.run(NONE, CHANGES[name])
    assert open_scene.shared_files() != untouched, (
        "the control does not work, so this proves nothing"
    )

    before, refs = scene.shared_files(), refs_of(scene)
    scene.run(level, CHANGES[name])
    assert scene.shared_files() == before
    assert refs_of(scene) == refs


@pytest.mark.parametrize("name", READS)
def test_nothing_secret_is_read(
    name: str, level: SandboxLevel, scene: Scene, open_scene: Scene
) -> None:
    assert SECRET in open_scene.run(NONE, READS[name]).output.decode()
    assert SECRET not in scene.run(level, READS[name]).output.decode()


def test_the_link_to_the_repository_is_as_before(level: SandboxLevel, scene: Scene) -> None:
    link = scene.worktree.path / ".git"
    before = link.read_bytes()
    for attack in (
        "rm .git; git init -q . && git config core.fsmonitor 'touch /tmp/x'",
        "echo 'gitdir: /tmp/evil' >.git",
        "rm .git; ln -s /tmp/evil .git",
        "mv .git other",
    ):
        scene.run(level, attack)
        assert not link.is_symlink()
        assert link.read_bytes() == before, attack


def test_the_root_and_the_system_are_not_written(level: SandboxLevel, scene: Scene) -> None:
    """The root of the first level is one to throw away: writing there may work and reaches nobody."""
    name = f"pullcord-attack-{scene.victim.pid}"
    folders = ("", "/usr", "/etc", "/var", "/run", "/dev/shm")  # noqa: S108  the real ones
    places = [f"{folder}/{name}" for folder in folders]
    scene.run(level, "".join(f"echo x >{place}; mkdir {place}.d; " for place in places))
    left = [place for place in places if Path(place).exists() or Path(f"{place}.d").exists()]
    assert left == []
