"""Projects by the API."""

from typing import Any

import pytest

from board.actions import errands, projects
from board.models import Errand, Event, Project

pytestmark = pytest.mark.django_db


def test_a_project_is_added_and_fetched(api, worker):
    made = api.post(
        "/projects",
        {
            "key": "bil", "name": "Billing", "repository": "/srv/billing", "setup_command": "make",
            "max_parallel": 2, "auto_merge": True, "target_branch": "main",
        },
    )  # fmt: skip
    assert api.response.status_code == 201
    assert (made["key"], made["state"], made["role"]) == ("BIL", "fetching", "owner")
    assert (made["max_parallel"], made["auto_merge"], made["setup_command"]) == (2, True, "make")
    assert [column["lane"] for column in made["columns"]] == [
        "backlog", "queued", "running", "review", "merging", "done",
    ]  # fmt: skip
    errand: Any = errands.claim_errand(worker.pk)
    projects.finish_fetch(errand, fence=errand.fence, target_branch="main")
    assert api.get("/projects/bil")["state"] == "ready"


def test_a_project_that_cannot_be_fetched_says_why(api, worker):
    api.post("/projects", {"key": "BIL", "repository": "/nowhere"})
    errand: Any = errands.claim_errand(worker.pk)
    projects.fail_fetch(errand, fence=errand.fence, message="There is no folder /nowhere.")
    shown = api.get("/projects/BIL")
    assert (shown["name"], shown["state"]) == ("BIL", "error")
    assert shown["message"] == "There is no folder /nowhere."


@pytest.mark.parametrize(
    "repository",
    ["/srv/a b", "https://example.org/a.git", "ssh://git@example.org/a", "git@example.org:a/b.git",
     "file:///srv/a"],
)  # fmt: skip
def test_a_whole_path_or_a_url_is_taken(api, repository):
    made = api.post("/projects", {"key": "BIL", "repository": repository})
    assert made["repository"] == repository


def test_the_password_in_an_address_is_not_shown(api):
    made = api.post(
        "/projects", {"key": "BIL", "repository": "https://me:secret@example.org/a.git"}
    )
    assert made["repository"] == "https://…@example.org/a.git"
    assert "secret" not in str(api.get("/projects"))
    assert "secret" in Project.objects.get().repository
    assert Errand.objects.count() == 1


def test_projects_are_listed_by_name(api, alice, project, django_assert_num_queries):
    for key, name in (("AA", "Zebra"), ("ZZ", "Ant")):
        projects.create_project(by=alice, key=key, name=name, repository="/nowhere")
    api.get("/projects")
    with django_assert_num_queries(3):
        assert [row["key"] for row in api.get("/projects")] == ["ZZ", "BIL", "AA"]


def test_what_was_done_by_the_api_is_an_event_of_its_person(api):
    api.post("/projects", {"key": "BIL", "repository": "/nowhere"})
    assert Event.objects.get().actor == "Alice"
