"""Worktrees that nobody needs go, those that somebody needs stay, and no work is lost."""

import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from agents import janitor
from agents.desk import places
from agents.workspaces import Worktree, add_worktree, fetch_hub
from agents.workspaces.locks import holding
from agents.workspaces.records import mark_for_removal
from agents.workspaces.worktrees import check_out
from board.models import Card, Project, Run
from tests.agents.workspaces.repos import make_repository, run_git

pytestmark = pytest.mark.django_db


@pytest.fixture
def make(tmp_path: Path, settings: Any, project: Project) -> Callable[[str], Worktree]:
    """Make a worktree on this machine: `make("BIL-1-1")`."""
    settings.HUBS, settings.WORKSPACES = tmp_path / "hubs", tmp_path / "workspaces"
    where = places(settings.HUBS, settings.WORKSPACES, project.key)
    source = make_repository(tmp_path / "source")
    base = fetch_hub(where.hub, str(source), "main").target_sha

    def made(name: str) -> Worktree:
        branch = f"cards/{name}"
        worktree = add_worktree(
            where.clone, where.hub, where.root / name, branch=branch, base_sha=base
        )
        (worktree.path / "work.txt").write_text("Never committed\n")
        return worktree

    return made


def ended(run: Run, *, days_ago: float, branch: str, status: str = "failed") -> None:
    Run.objects.filter(pk=run.pk).update(
        status=status, ended_at=Now() - timedelta(days=days_ago), branch=branch, worker=None
    )
    Card.objects.filter(pk=run.card_id).update(status="failed")


def test_a_failed_run_keeps_its_folder_for_a_week(running: Run, make) -> None:
    worktree = make("BIL-1-1")
    ended(running, days_ago=6.9, branch=worktree.branch)
    assert janitor.tidy("BIL") == []
    assert (worktree.path / "work.txt").exists()
    ended(running, days_ago=7.1, branch=worktree.branch)
    assert janitor.tidy("BIL") == [worktree.path]
    assert not worktree.path.exists()


def test_what_was_never_committed_is_in_the_hub_afterwards(
    running: Run, make, settings: Any
) -> None:
    worktree = make("BIL-1-1")
    ended(running, days_ago=8, branch=worktree.branch)
    janitor.tidy("BIL")
    hub = settings.HUBS / "BIL.git"
    (ref,) = run_git(hub, "for-each-ref", "--format=%(refname)", "refs/kept").splitlines()
    assert run_git(hub, "show", f"{ref}:work.txt") == "Never committed"


@pytest.mark.parametrize("status", ["starting", "running", "waiting", "ready"])
def test_a_run_that_is_not_over_keeps_its_folder_however_old(
    running: Run, make, status: str
) -> None:
    worktree = make("BIL-1-1")
    Run.objects.filter(pk=running.pk).update(status=status, branch=worktree.branch)
    (found,) = janitor.survey("BIL")
    assert found.kept_because == "its run is not over"
    assert janitor.tidy("BIL") == []


def test_work_in_review_stays_and_goes_when_it_is_done_or_archived(running: Run, make) -> None:
    worktree = make("BIL-1-1")
    ended(running, days_ago=30, branch=worktree.branch, status="succeeded")
    card = Card.objects.filter(pk=running.card_id)
    card.update(status="review")
    assert janitor.tidy("BIL") == []
    card.update(status="done")
    assert janitor.tidy("BIL") == [worktree.path]


def test_an_archived_card_needs_no_folder(running: Run, make) -> None:
    worktree = make("BIL-1-1")
    ended(running, days_ago=0, branch=worktree.branch)
    Card.objects.filter(pk=running.card_id).update(archived_at=Now())
    assert janitor.tidy("BIL") == [worktree.path]


def test_a_folder_of_which_no_run_is_known_is_left_to_people(make) -> None:
    worktree = make("BIL-7-1")
    old = time.time() - 90 * 24 * 3600
    os.utime(worktree.path, (old, old))
    os.utime(worktree.private, (old, old))
    (found,) = janitor.survey("BIL")
    assert found.kept_because == "no run of it is known"
    assert janitor.tidy("BIL") == []


def test_what_an_interruption_and_a_merge_left_goes_after_a_day(make, settings: Any) -> None:
    half, checks = make("BIL-1-1"), places(settings.HUBS, settings.WORKSPACES, "BIL")
    mark_for_removal(half)
    merge = check_out(checks.clone, checks.hub, checks.root / "merge-BIL-2", half.base_sha)
    assert janitor.tidy("BIL") == []  # somebody may be at it
    old = time.time() - 25 * 3600
    for worktree in (half, merge):
        os.utime(worktree.path, (old, old))
        os.utime(worktree.private, (old, old))
    assert sorted(janitor.tidy("BIL")) == [half.path, merge.path]
    assert janitor.survey("BIL") == []


def test_a_folder_of_somebody_else_is_never_touched(make, settings: Any) -> None:
    make("BIL-1-1")
    mine = settings.WORKSPACES / "BIL" / "mine"
    mine.mkdir()
    os.utime(mine, (0, 0))
    found = {each.leftover.path: each.kept_because for each in janitor.survey("BIL")}
    assert found[mine] == "not made by Pullcord"
    assert mine not in janitor.tidy("BIL")


def test_a_card_that_is_taken_up_again_meanwhile_keeps_its_folder(running: Run, make) -> None:
    worktree = make("BIL-1-1")
    ended(running, days_ago=8, branch=worktree.branch)
    answers = iter([{worktree.branch: ""}, {worktree.branch: "its run is not over"}])
    assert janitor.tidy("BIL", lambda _key, _branches: next(answers)) == []
    assert worktree.path.exists()


def test_the_command_reports_and_removes_only_when_told(running: Run, make, capsys) -> None:
    worktree = make("BIL-1-1")
    ended(running, days_ago=8, branch=worktree.branch)
    call_command("worktrees")
    printed = capsys.readouterr().out
    assert f"{worktree.path}  (goes)" in printed
    assert worktree.path.exists()
    call_command("worktrees", "BIL", "--remove")
    assert f"removed  {worktree.path}" in capsys.readouterr().out
    assert not worktree.path.exists()
    with pytest.raises(CommandError, match="NONE has no worktrees"):
        call_command("worktrees", "NONE")


def test_one_process_of_a_machine_tidies_at_once(make, settings: Any) -> None:
    make("BIL-1-1")
    with (
        holding(settings.WORKSPACES / "BIL" / ".janitor.lock"),
        pytest.raises(CommandError, match="Try again in a minute"),
    ):
        call_command("worktrees", "--remove")
