"""A repository that cannot be used: the project says why, and what to do."""

from pathlib import Path
from typing import Any

import pytest

from tests.messages_api import MessagesApi
from tests.messages_script import report
from tests.product import OWNER, Product, git, make_repository

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

Parts = tuple[Product, MessagesApi]


def refusal(product: Product, key: str, repository: Path, **values: Any) -> str:
    """Make a project that cannot be fetched and return what it says."""
    project = product.project(key, repository, **values)
    assert project["state"] == "error", project
    return str(project["message"])


def test_a_path_that_does_not_exist_is_named(shared: Parts, tmp_path: Path) -> None:
    product, _ = shared
    assert str(tmp_path / "nowhere") in refusal(product, "NOWHERE", tmp_path / "nowhere")


def test_a_folder_that_is_no_repository_is_refused(shared: Parts, tmp_path: Path) -> None:
    product, _ = shared
    (tmp_path / "plain").mkdir()
    assert "repository" in refusal(product, "PLAIN", tmp_path / "plain")


def test_a_missing_target_branch_is_named(shared: Parts, tmp_path: Path) -> None:
    product, _ = shared
    origin = make_repository(tmp_path / "origin.git")
    assert "develop" in refusal(product, "NOBRANCH", origin, target_branch="develop")


def test_an_empty_repository_gets_its_first_commit_when_a_person_asks(
    shared: Parts, tmp_path: Path
) -> None:
    product, _ = shared
    git("init", "-q", "--bare", "-b", "main", "empty.git", folder=tmp_path)
    assert "commit" in refusal(product, "EMPTY", tmp_path / "empty.git")
    ask = (
        "from board.models import Project, User; from board.actions.projects import fetch_again; "
        f"fetch_again(Project.objects.get(key='EMPTY'), by=User.objects.get(email='{OWNER}'), "
        "create_first_commit=True)"
    )
    product.manage("shell", "-v", "0", "-c", ask)
    product.until(lambda: product.get("/projects/EMPTY")["state"] == "ready")
    assert git("rev-list", "--count", "main", folder=tmp_path / "empty.git") == "1"


def test_cards_of_a_project_in_error_do_not_start(shared: Parts, tmp_path: Path) -> None:
    product, api = shared
    refusal(product, "STUCK", tmp_path / "nowhere")
    ref = product.card("STUCK", "Cannot begin")["ref"]
    product.queue(ref)
    # A card of another project, queued later, goes ahead.
    product.project("AHEAD", make_repository(tmp_path / "origin.git"))
    api.script("Can begin", [report("done", "x")])
    other = product.card("AHEAD", "Can begin")["ref"]
    product.queue(other)
    product.wait_for_card(other, "review")
    assert product.status(ref) == "queued"
