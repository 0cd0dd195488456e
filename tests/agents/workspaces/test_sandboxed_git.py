"""An agent's own git in the sandbox: it works, it is private, and it is not lost."""

from pathlib import Path

import pytest

from agents.sandbox import Sandbox
from agents.sandbox_mounts import PrivateGit as Mounts
from agents.sandbox_probe import probe
from agents.workspaces import Worktree, commit_all, diff, private_git, remove_worktree
from tests.agents.workspaces.conftest import Place
from tests.agents.workspaces.repos import run_git

pytestmark = pytest.mark.skipif(probe().name == "none", reason=probe().message)


def open_shell(worktree: Worktree, tmp_path: Path) -> Sandbox:
    git = private_git(worktree)
    for name in ("scratch", "outputs"):
        (tmp_path / name).mkdir(exist_ok=True)
    return Sandbox(
        worktree.path,
        scratch=tmp_path / "scratch",
        outputs=tmp_path / "outputs",
        level=probe(),
        git=Mounts(git.common, git.entry, git.refs, git.logs, git.objects, git.entry_copy),
    )


def run(shell: Sandbox, command: str) -> str:
    result = shell.run(f"set -e; {command}", timeout_seconds=20)
    assert result.exit_code == 0, result.output.decode()
    return result.output.decode().strip()


def test_the_agents_commits_are_private_and_kept_at_the_end(place: Place, tmp_path: Path) -> None:
    worktree = place.start(target_branch="main")
    shell = open_shell(worktree, tmp_path)
    refs = run_git(place.clone, "for-each-ref")

    assert run(shell, "git status --porcelain; git branch --show-current") == "cards/KEY-1-1"
    assert run(shell, "git branch --format='%(refname:short)'") == "cards/KEY-1-1\nmain"
    run(shell, "echo mine > mine.txt; git add .; git commit -qm Mine; git stash list")
    saved = commit_all(worktree, "Turn")
    run(shell, "echo more > more.txt; git status --porcelain")

    assert run_git(place.clone, "for-each-ref", "refs/heads") in refs
    changed = diff(place.clone, worktree.base_sha, saved.sha)
    assert [file.path for file in changed.files] == ["mine.txt"]
    assert run(shell, "git log --format=%s main..; git diff --stat main -- mine.txt").startswith(
        "Mine\n mine.txt"
    )
    remove_worktree(worktree, place.hub)
    kept = run_git(place.hub, "for-each-ref", "--format=%(subject)", "refs/kept").splitlines()
    assert sorted(kept) == ["Keep what was not committed", "Mine"]


def test_nothing_in_the_clone_can_be_written_by_the_agent(place: Place, tmp_path: Path) -> None:
    worktree = place.start()
    other = place.start("KEY-2-1")
    shell = open_shell(worktree, tmp_path)
    clone = place.clone
    names = {path.name for path in clone.iterdir()}
    for command in (
        "git config core.fsmonitor /bin/true",
        f"echo x > {clone}/hooks",
        f"echo '* filter=x' > {clone}/info/attributes",
        f"echo x > {clone}/objects/x",
        f"echo x > {place.hub}/objects/x",
        f"echo / > {worktree.entry}/commondir",
        "echo gitdir: /tmp > .git",
        f"ls {other.path}",
        f"ls {worktree.private}/index",
    ):
        assert shell.run(command, timeout_seconds=20).exit_code != 0, command

    assert {path.name for path in clone.iterdir()} == names
    # What it may write there is a copy, which git outside does not read.
    run(shell, f"rm {worktree.entry}/HEAD; mkfifo {worktree.entry}/HEAD")
    run(shell, f"rm -f {worktree.entry}/index; ln -s /dev/zero {worktree.entry}/index")
    assert (worktree.entry / "HEAD").is_file()
    place.start("KEY-3-1")
    assert not commit_all(worktree, "Nothing").has_changed


@pytest.mark.skipif(probe().name != "bubblewrap", reason=probe().message)
def test_a_stash_and_a_branch_can_be_let_go(place: Place, tmp_path: Path) -> None:
    worktree = place.start(target_branch="main")
    shell = open_shell(worktree, tmp_path)
    (name,) = run(shell, "git ls-files | head -1").splitlines()
    run(shell, f"echo mine >>{name}; git stash push -q; git stash pop -q; grep mine {name}")
    assert run(shell, "git stash list") == ""
    run(shell, "git branch other; git branch -d other")
    assert "other" not in run(shell, "git branch")
    assert not (place.clone / "packed-refs.lock").exists()
