"""Projects: made, fetched, changed, shared, put away."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from board.actions import projects
from board.actions.errands import claim_errand
from board.errors import LeaseLostError, NotAllowedError, TransitionError, ValidationError
from board.models import Column, Errand, Event, Invitation, Membership, Project
from board.states import Lane, Role
from tests.races import at_once

pytestmark = pytest.mark.django_db


def create(by, key="NEW", **values):
    values.setdefault("repository", "https://example.org/new.git")
    return projects.create_project(by=by, key=key, name="New", **values)


def claim(worker) -> Any:
    return claim_errand(worker.pk)


def last_event(project):
    return Event.objects.filter(project=project).latest("seq")


def test_a_project_has_its_columns_its_owner_and_a_fetch(alice):
    project = create(alice, key=" new ", create_first_commit=True)
    assert (project.key, project.state) == ("NEW", "fetching")
    assert [column.lane for column in project.columns.all()] == list(Lane)
    assert Membership.objects.get().role == Role.OWNER
    errand = Errand.objects.get()
    assert (errand.kind, errand.options) == ("fetch", {"create_first_commit": True})
    assert last_event(project).payload == {"what": "created"}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"key": "1A"}, "key"),
        ({"key": "A"}, "key"),
        ({"key": "ABCDEFGHIJK"}, "key"),
        ({"repository": "here"}, "repository"),
        ({"repository": "C:"}, "repository"),
        ({"max_parallel": 51}, "max_parallel"),
        ({"model": "x" * 81}, "model"),
        ({"target_branch": "x" * 201}, "target_branch"),
        ({"setup_command": "x" * 10_001}, "setup_command"),
    ],
)
def test_a_project_is_refused_and_nothing_is_left_of_it_for(alice, values, field):
    with pytest.raises(ValidationError) as caught:
        create(alice, **values)
    assert set(caught.value.fields) == {field}
    assert not Project.objects.exists()


def test_a_key_is_given_once(alice, bob):
    create(alice)
    with pytest.raises(ValidationError) as caught:
        create(bob)
    assert set(caught.value.fields) == {"key"}
    assert Project.objects.count() == Errand.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_people_who_take_a_key_one_gets_it(alice, bob):
    answers = at_once(lambda: create(alice), lambda: create(bob))
    assert sorted(type(answer).__name__ for answer in answers) == ["Project", "ValidationError"]


def test_a_fetch_shows_its_progress_and_is_done(alice, worker):
    project = create(alice)
    errand = claim(worker)
    projects.note_fetch_progress(project.pk, percent=40, message="Receiving objects")
    project.refresh_from_db()
    assert (project.progress, project.message) == (40, "Receiving objects")
    projects.finish_fetch(errand, fence=errand.fence, target_branch="trunk")
    project.refresh_from_db()
    assert (project.state, project.target_branch, project.message) == ("ready", "trunk", "")
    assert last_event(project).payload == {"what": "ready"}
    projects.note_fetch_progress(project.pk, percent=1, message="late")
    project.refresh_from_db()
    assert project.progress == 100


def test_a_fetch_that_fails_says_why_and_is_tried_again_elsewhere(alice, worker):
    project = create(alice)
    with pytest.raises(TransitionError, match="already"):
        projects.fetch_again(project, by=alice)
    errand = claim(worker)
    with pytest.raises(LeaseLostError):
        projects.fail_fetch(errand, fence=errand.fence + 1, message="x")
    projects.fail_fetch(errand, fence=errand.fence, message="No such folder.", code="missing")
    project.refresh_from_db()
    errand.refresh_from_db()
    assert (project.state, project.message) == ("error", "No such folder.")
    assert (errand.options["field"], errand.options["code"]) == ("repository", "missing")
    projects.fetch_again(project, by=alice, repository="/elsewhere")
    assert (project.state, project.repository) == ("fetching", "/elsewhere")
    assert last_event(project).payload == {"what": "fetch"}


def test_settings_change_and_another_branch_is_fetched(project, alice):
    before = Errand.objects.count()
    projects.update_project(project, by=alice, name="Bills", max_parallel=5, key="HACK")
    assert (project.name, project.max_parallel, project.key) == ("Bills", 5, "BIL")
    assert (Errand.objects.count(), project.state) == (before, "ready")
    projects.update_project(project, by=alice, target_branch="next")
    assert (Errand.objects.count(), project.state) == (before + 1, "fetching")
    seq = project.seq
    projects.update_project(project, by=alice, name="Bills")
    project.refresh_from_db()
    assert project.seq == seq + 0 == last_event(project).seq


def test_a_column_is_added_behind_its_lane_and_changed(project, alice):
    column = projects.add_column(project, by=alice, name="  On  hold ", lane=Lane.BACKLOG)
    names = [column.name for column in project.columns.all()]
    assert names == ["Backlog", "On hold", "Queued", "Running", "Review", "Merging", "Done"]
    projects.set_column(column, by=alice, name="Later", limit=3)
    column.refresh_from_db()
    assert (column.name, column.limit) == ("Later", 3)
    for name, limit in (("", None), ("x" * 61, None), ("x", 0), ("x", 1000)):
        with pytest.raises(ValidationError):
            projects.set_column(column, by=alice, name=name, limit=limit)


@pytest.mark.django_db(transaction=True)
def test_columns_added_while_cards_move_lock_nobody_out(project, new_card, alice):
    from board.actions.lanes import move_card
    from board.actions.placement import Place
    from board.models import Card

    new_card("a")

    def move():
        for lane in (Lane.QUEUED, Lane.BACKLOG) * 3:
            card = Card.objects.select_related("project", "column", "run").get()
            move_card(card, by=alice, place=Place(Column.objects.filter(lane=lane)[0]))

    def add():
        for number in range(4):
            projects.add_column(project, by=alice, name=f"Later {number}", lane=Lane.BACKLOG)

    assert at_once(move, add) == [None, None]
    assert Column.objects.count() == 10
    assert sorted(Column.objects.values_list("position", flat=True)) == list(range(10))


def test_an_invitation_is_used_once_and_in_time(project, alice, mallory):
    token = projects.invite(project, by=alice, email="M@x.org ", role=Role.VIEWER)
    invitation = Invitation.objects.get()
    assert (invitation.email, token in invitation.token_hash) == ("m@x.org", False)
    projects.accept_invitation(invitation, user=mallory)
    assert Membership.objects.get(user=mallory).role == Role.VIEWER
    assert last_event(project).payload == {"what": "members"}
    with pytest.raises(TransitionError, match="used or has expired"):
        projects.accept_invitation(invitation, user=mallory)
    projects.invite(project, by=alice, email="n@x.org", role=Role.OWNER)
    late = Invitation.objects.get(email="n@x.org")
    Invitation.objects.update(expires_at=Now() - timedelta(seconds=1))
    with pytest.raises(TransitionError):
        projects.accept_invitation(late, user=mallory)


def test_an_invitation_never_lowers_a_members_role(project, alice):
    projects.invite(project, by=alice, email="x@x.org", role=Role.VIEWER)
    projects.accept_invitation(Invitation.objects.get(), user=alice)
    assert Membership.objects.get(user=alice, project=project).role == Role.OWNER


@pytest.mark.parametrize("email", ["", "nobody", "bob@example.org", "x@" + "y" * 260])
def test_who_cannot_be_invited(project, alice, email):
    with pytest.raises(ValidationError) as caught:
        projects.invite(project, by=alice, email=email, role=Role.MEMBER)
    assert set(caught.value.fields) == {"email"}


def test_a_project_keeps_an_owner(project, alice, bob):
    mine = project.memberships.get(user=alice)
    with pytest.raises(NotAllowedError, match="needs an owner"):
        projects.set_role(mine, by=alice, role=Role.MEMBER)
    with pytest.raises(NotAllowedError):
        projects.remove_member(mine, by=alice)
    projects.set_role(project.memberships.get(user=bob), by=alice, role=Role.OWNER)
    projects.remove_member(mine, by=alice)
    assert set(project.memberships.values_list("user__name", flat=True)) == {"Bob", "Vera"}


@pytest.mark.django_db(transaction=True)
def test_of_two_owners_who_leave_at_the_same_moment_one_stays(project, alice, bob):
    projects.set_role(project.memberships.get(user=bob), by=alice, role=Role.OWNER)
    pair = [project.memberships.get(user=user) for user in (alice, bob)]
    answers = at_once(*[lambda row=row: projects.remove_member(row, by=alice) for row in pair])
    assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", "NotAllowedError"]


def test_an_archived_project_says_so(project, alice):
    projects.archive_project(project, by=alice)
    assert last_event(project).payload == {"what": "archived"}


FOLDERS = [
    "/srv/git/other.git",
    "file:///srv/git/other.git",
    "FILE:///srv/git/other.git",
    " File://localhost/srv/git/other.git",
    "\x00/srv/git/other.git",
    "\x00 file:///srv/git/other.git",
]
OWN_HOSTS = [
    "http://localhost:8400/x.git",
    "https://LOCALHOST./x.git",
    "https://a.localhost/x.git",
    "http://127.0.0.1/x.git",
    "git://127.1/x.git",
    "https://2130706433/x.git",
    "https://0x7f.0.0.1/x.git",
    "https://0.0.0.0/x.git",
    "https://[::1]/x.git",
    "https://[::ffff:127.0.0.1]/x.git",
    "https://[64:ff9b::7f00:1]/x.git",
    "https://169.254.169.254/latest",
    "https://[fe80::1]/x.git",
    "ssh://git@127.0.0.1/x.git",
    "git@localhost:x.git",
    "127.0.0.1:x.git",
]


@pytest.mark.parametrize("repository", FOLDERS)
def test_only_an_owner_of_the_installation_points_a_project_at_a_folder(bob, repository):
    with pytest.raises(NotAllowedError, match="URL"):
        create(bob, repository=repository)
    assert not Project.objects.exists()
    assert create(bob, repository="https://example.org/other.git").created_by == bob


@pytest.mark.parametrize("repository", OWN_HOSTS)
def test_only_an_owner_of_the_installation_points_a_project_at_the_server_itself(
    alice, bob, repository
):
    with pytest.raises(NotAllowedError, match="server itself"):
        create(bob, repository=repository)
    assert create(alice, repository=repository).repository == repository


@pytest.mark.parametrize(
    "repository",
    ["https://10.0.0.7/x.git", "git@git.example.org:x.git", "https://localhost.example.org/x.git"],
)
def test_a_server_in_the_same_house_may_be_anybodys(bob, repository):
    assert create(bob, repository=repository).created_by == bob


@pytest.mark.parametrize("repository", [*FOLDERS, "https://127.0.0.1/x.git"])
def test_a_members_fetch_again_cannot_turn_to_a_folder(alice, bob, repository):
    project = create(alice, repository="https://example.org/x.git")
    Project.objects.filter(pk=project.pk).update(state="error")
    Errand.objects.all().delete()
    project.refresh_from_db()
    with pytest.raises(NotAllowedError):
        projects.fetch_again(project, by=bob, repository=repository)
    project.refresh_from_db()
    assert project.repository == "https://example.org/x.git"
