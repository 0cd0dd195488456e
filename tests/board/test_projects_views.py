"""The list of projects, a new one, its settings, its team."""

import pytest
from django.test import Client

from board.actions import errands, projects
from board.errors import BoardError
from board.models import Column, Errand, Invitation, Membership, Project, User, Worker
from board.states import ErrandStatus, ProjectState, Role

pytestmark = pytest.mark.django_db

NEW = {"name": "Web", "key": "web", "repository": "/srv/git/web", "max_parallel": "2"}


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def as_bob(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


def test_the_list_shows_only_the_persons_projects_with_what_happens(
    as_alice: Client, project: Project, mallory: User, running
):
    projects.create_project(
        by=mallory, key="EVE", name="Evening", repository="https://example.org/eve.git"
    )
    page = as_alice.get("/").content.decode()
    assert "Billing" in page
    assert "Evening" not in page
    assert "1 running" in page


def test_the_list_takes_the_same_number_of_queries_for_many_projects(
    as_alice: Client, alice: User, project: Project, django_assert_max_num_queries
):
    for number in range(8):
        projects.create_project(by=alice, key=f"P{number}", name=f"P {number}", repository="/x")
    with django_assert_max_num_queries(16):
        as_alice.get("/")


def test_a_person_without_projects_sees_what_to_do(client: Client, mallory: User):
    client.force_login(mallory)
    page = client.get("/").content.decode()
    assert "No project yet" in page
    assert "Try the rehearsal" in page


def test_a_new_project_leads_to_its_board_and_asks_for_the_fetch(as_alice: Client):
    answer = as_alice.post("/projects/new/", {**NEW, "auto_merge": "on", "is_rehearsal": "on"})
    assert answer["Location"] == "/p/WEB/"
    project = Project.objects.get(key="WEB")
    assert (project.max_parallel, project.auto_merge, project.is_rehearsal) == (2, True, False)
    assert project.state == ProjectState.FETCHING
    assert Errand.objects.get(project=project).status == ErrandStatus.QUEUED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", "1"),
        ("key", "BIL"),
        ("repository", " "),
        ("max_parallel", "0"),
        ("max_parallel", "x"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    as_alice: Client, project: Project, field: str, value: str
):
    answer = as_alice.post("/projects/new/", {**NEW, field: value})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [field]
    assert f'aria-describedby="id_{field}' in answer.content.decode()
    assert f'id="id_{field}_error"' in answer.content.decode()
    assert not Project.objects.filter(name="Web").exists()


def test_a_maintainer_changes_the_settings_and_a_member_only_reads_them(
    as_alice: Client, as_bob: Client, project: Project
):
    values = {
        "name": "Bills",
        "target_branch": "main",
        "max_parallel": "7",
        "setup_command": "make",
    }
    assert as_alice.post("/p/BIL/settings/", values).status_code == 302
    project.refresh_from_db()
    assert (project.name, project.max_parallel, project.setup_command) == ("Bills", 7, "make")
    page = as_bob.get("/p/BIL/settings/").content.decode()
    assert "You are a member of this project, so you may look" in page
    assert "Save the settings" not in page
    assert as_bob.post("/p/BIL/settings/", {**values, "name": "Mine"}).status_code == 403
    project.refresh_from_db()
    assert project.name == "Bills"


def test_a_refused_setting_keeps_what_was_typed(as_alice: Client, project: Project):
    answer = as_alice.post("/p/BIL/settings/", {"name": "", "max_parallel": "3"})
    assert answer.status_code == 422
    assert "name" in answer.context["form"].errors


def test_columns_are_renamed_limited_and_added(as_alice: Client, project: Project):
    column = Column.objects.get(project=project, lane="running")
    prefix = f"c{column.pk}"
    url = f"/p/BIL/columns/{column.pk}/"
    as_alice.post(url, {f"{prefix}-name": "At work", f"{prefix}-limit": "2"})
    column.refresh_from_db()
    assert (column.name, column.limit) == ("At work", 2)
    as_alice.post(url, {f"{prefix}-name": "At work", f"{prefix}-limit": ""})
    column.refresh_from_db()
    assert column.limit is None
    wrong = as_alice.post(url, {f"{prefix}-name": "", f"{prefix}-limit": "0"})
    assert wrong.status_code == 422
    as_alice.post("/p/BIL/columns/", {"new-name": "Ideas", "new-lane": "backlog"})
    assert [each.name for each in project.columns.all()][:2] == ["Backlog", "Ideas"]
    assert (
        as_alice.post("/p/BIL/columns/", {"new-name": "X", "new-lane": "nope"}).status_code == 422
    )


def test_a_column_of_another_project_does_not_exist_here(
    as_alice: Client, alice: User, project: Project
):
    other = projects.create_project(by=alice, key="WEB", name="Web", repository="/x")
    column = other.columns.first()
    assert column is not None
    assert as_alice.post(f"/p/BIL/columns/{column.pk}/", {}).status_code == 404


def test_a_failed_fetch_is_tried_again_from_a_corrected_address(
    as_alice: Client, alice: User, worker: Worker
):
    project = projects.create_project(by=alice, key="NEW", name="New", repository="/wrong")
    errand = errands.claim_errand(worker.pk)
    assert errand is not None
    projects.fail_fetch(errand, fence=errand.fence, message="There is no folder /wrong.")
    page = as_alice.get("/p/NEW/settings/").content.decode()
    assert "There is no folder /wrong." in page
    assert "Create a first commit" not in page
    answer = as_alice.post("/p/NEW/fetch/", {"repository": "/right"})
    assert answer["Location"] == "/p/NEW/"
    project.refresh_from_db()
    assert (project.repository, project.state) == ("/right", ProjectState.FETCHING)


def test_a_token_in_an_address_is_never_shown_and_survives_a_new_fetch(
    as_alice: Client, alice: User
):
    secret = "https://ann:ghp_0123456789@git.example.org/x.git"
    project = projects.create_project(by=alice, key="NEW", name="New", repository=secret)
    Errand.objects.update(status=ErrandStatus.FAILED)
    Project.objects.update(state=ProjectState.ERROR)
    for path in ("/", "/p/NEW/settings/"):
        page = as_alice.get(path).content.decode()
        assert "https://…@git.example.org/x.git" in page
        assert "ghp_" not in page
    as_alice.post("/p/NEW/fetch/", {"repository": "https://…@git.example.org/x.git"})
    project.refresh_from_db()
    assert project.repository == secret


def test_an_empty_repository_is_offered_a_first_commit(
    as_alice: Client, alice: User, worker: Worker
):
    project = projects.create_project(by=alice, key="NEW", name="New", repository="/empty")
    errand = errands.claim_errand(worker.pk)
    assert errand is not None
    projects.fail_fetch(errand, fence=errand.fence, message="No commit.", code="no_commits")
    assert b"Create a first commit" in as_alice.get("/p/NEW/settings/").content
    as_alice.post("/p/NEW/fetch/", {"repository": "/empty", "create_first_commit": "on"})
    assert project.errands.order_by("-pk")[0].options == {"create_first_commit": True}


def test_asking_twice_for_a_fetch_says_so_on_the_page_before(as_alice: Client, project: Project):
    as_alice.post("/p/BIL/fetch/")
    again = as_alice.post("/p/BIL/fetch/", headers={"Referer": "http://testserver/p/BIL/settings/"})
    assert again["Location"] == "http://testserver/p/BIL/settings/"
    assert "being fetched already" in as_alice.get("/p/BIL/team/").content.decode()
    away = as_alice.post("/p/BIL/fetch/", headers={"Referer": "https://evil.example/"})
    assert away["Location"] == "/"


def test_only_an_owner_archives(as_alice: Client, as_bob: Client, project: Project):
    assert as_bob.post("/p/BIL/settings/archive/").status_code == 403
    assert as_alice.post("/p/BIL/settings/archive/")["Location"] == "/"
    assert as_alice.get("/p/BIL/settings/").status_code == 404


def test_an_invitation_link_is_shown_once_and_stored_as_a_hash(as_alice: Client, project: Project):
    answer = as_alice.post("/p/BIL/team/invite/", {"email": "new@example.org", "role": "viewer"})
    assert answer.status_code == 201
    link = answer.context["link"]
    assert link in answer.content.decode()
    assert link not in as_alice.get("/p/BIL/team/").content.decode()
    assert Invitation.objects.get().token_hash not in link
    assert Client().get(link).status_code == 200
    invitation = Invitation.objects.get()
    as_alice.post(f"/p/BIL/team/invitations/{invitation.pk}/withdraw/")
    assert Client().get(link).status_code == 404


def test_only_owners_invite_and_change_roles(
    as_bob: Client, project: Project, bob: User, vera: User
):
    mine = Membership.objects.get(user=bob)
    hers = Membership.objects.get(user=vera)
    for row in (mine, hers):
        url = f"/p/BIL/team/{row.pk}/role/"
        assert as_bob.post(url, {"role": "owner"}).status_code == 403
    assert as_bob.post(f"/p/BIL/team/{hers.pk}/remove/").status_code == 403
    assert (
        as_bob.post("/p/BIL/team/invite/", {"email": "x@y.z", "role": "viewer"}).status_code == 403
    )
    page = as_bob.get("/p/BIL/team/").content.decode()
    assert "Make a link" not in page


def test_a_member_may_leave(as_bob: Client, project: Project, bob: User):
    mine = Membership.objects.get(user=bob)
    assert as_bob.post(f"/p/BIL/team/{mine.pk}/remove/")["Location"] == "/"
    assert as_bob.get("/p/BIL/team/").status_code == 404


def test_an_owner_changes_roles_but_the_last_owner_stays(
    as_alice: Client, project: Project, alice: User, bob: User
):
    his = Membership.objects.get(user=bob)
    as_alice.post(f"/p/BIL/team/{his.pk}/role/", {"role": "maintainer"})
    his.refresh_from_db()
    assert his.role == Role.MAINTAINER
    mine = Membership.objects.get(user=alice, project=project)
    refused = as_alice.post(f"/p/BIL/team/{mine.pk}/remove/")
    assert refused.status_code == 403
    assert "needs an owner" in refused.content.decode()
    assert as_alice.post(f"/p/BIL/team/{his.pk}/role/", {"role": "emperor"}).status_code == 404


def test_the_rehearsal_begins_with_one_button(as_alice: Client):
    answer = as_alice.post("/rehearsal/")
    project = Project.objects.get(is_rehearsal=True)
    assert answer["Location"] == f"/p/{project.key}/"


def test_a_refusal_is_an_answer_for_whoever_asks(as_alice: Client, project: Project):
    as_alice.post("/p/BIL/fetch/")
    json = as_alice.post("/p/BIL/fetch/", headers={"Accept": "application/json"})
    assert json.status_code == 409
    assert json.json()["code"] == "conflict"
    toast = as_alice.post("/p/BIL/fetch/", headers={"HX-Request": "true"})
    assert toast.status_code == 409
    assert toast["HX-Retarget"] == "#toasts"
    assert "data-toast" in toast.content.decode()
    assert BoardError("x").status == 422
