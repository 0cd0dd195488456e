"""Real repositories for tests, made with git as a person would use it."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from agents.workspaces import Author

ALICE = Author("Alice", "alice@example.org")

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Alice",
    "GIT_AUTHOR_EMAIL": "alice@example.org",
    "GIT_COMMITTER_NAME": "Alice",
    "GIT_COMMITTER_EMAIL": "alice@example.org",
}


def run_git(
    folder: Path,
    *arguments: str,
    ok: bool = True,
    stdin: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Run git in `folder` as Alice does, and return what it printed."""
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        env={**_ENVIRONMENT, **(variables or {})},
        input=stdin,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    assert not ok or done.returncode == 0, f"git {arguments}: {done.stderr}"
    return done.stdout.rstrip("\n")


def make_repository(path: Path, files: Mapping[str, str] | None = None) -> Path:
    """A checkout with one commit on main."""
    path.mkdir(parents=True)
    run_git(path, "init", "--quiet", "--initial-branch=main")
    commit_files(path, {"README.md": "hello\n", "src/app.py": "print(1)\n", **(files or {})})
    return path


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write `files` (path -> text) below `folder`."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def commit_files(path: Path, files: Mapping[str, str], message: str = "Change") -> str:
    """Write and commit `files` in the checkout `path`; return the sha."""
    write_files(path, files)
    run_git(path, "add", "--all")
    run_git(path, "commit", "--quiet", "--allow-empty", "--message", message)
    return run_git(path, "rev-parse", "HEAD")


def fingerprint(folder: Path) -> dict[str, tuple[int, float, bytes]]:
    """Mode, time and content of everything below `folder`, also of `.git`."""
    found = {}
    for file in sorted(folder.rglob("*")):
        status = file.lstat()
        content = b""
        if file.is_symlink():
            content = os.fsencode(file.readlink())
        elif file.is_file():
            content = file.read_bytes()
        changed = 0.0 if file.is_dir() else status.st_mtime
        found[str(file.relative_to(folder))] = (status.st_mode, changed, content)
    return found


def set_traps(git_dir: Path, marker: Path) -> None:
    """Make everything in a repository's configuration that can run a program write `marker`."""
    trap = git_dir / "trap.sh"
    trap.write_text(f'#!/bin/sh\necho "$0 $*" >> {marker}\ncat\n')
    trap.chmod(0o755)
    hooks = git_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in (
        "pre-commit", "commit-msg", "post-commit", "post-checkout", "post-merge", "pre-receive",
        "update", "post-receive", "post-update", "reference-transaction", "pre-push", "push-to-checkout",
        "pre-auto-gc", "fsmonitor-watchman", "post-index-change", "proc-receive", "post-rewrite",
    ):  # fmt: skip
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\necho hook {name} >> {marker}\n")
        hook.chmod(0o755)
    settings = {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": str(trap),
        "core.pager": str(trap),
        "core.editor": str(trap),
        "core.sshCommand": str(trap),
        "core.alternateRefsCommand": str(trap),
        "credential.helper": f"!{trap}",
        "diff.external": str(trap),
        "diff.trap.textconv": str(trap),
        "filter.trap.clean": str(trap),
        "filter.trap.smudge": str(trap),
        "filter.trap.process": str(trap),
        "filter.trap.required": "true",
        "merge.trap.driver": str(trap),
        "uploadpack.packObjectsHook": str(trap),
        "gpg.program": str(trap),
        "commit.gpgSign": "true",
        "gc.auto": "1",
        "submodule.recurse": "true",
        "fetch.prune": "true",
    }
    for key, value in settings.items():
        run_git(git_dir, "--git-dir", str(git_dir), "config", key, value)
