"""Maintainers choose where commands run, a worker tries it, and everyone sees which it is."""

import json
import uuid

import pytest
from django.test import Client

from board.actions.containers import finish_try, set_container
from board.actions.errands import claim_errand
from board.errors import TransitionError
from board.models import AuditEntry, Errand, Project, User
from board.states import ErrandKind

pytestmark = pytest.mark.django_db
PAGE, SAVE, TRY = "/p/BIL/settings/", "/p/BIL/container/", "/p/BIL/container/try/"
CHOICE = {"engine": "podman", "image": "localhost/agents:3"}


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def claimed() -> Errand:
    errand = claim_errand(uuid.uuid4())
    assert errand is not None
    return errand


def tries() -> int:
    return Errand.objects.filter(kind=ErrandKind.TRY).count()


def test_a_container_is_chosen_recorded_and_tried(project: Project, bob: User):
    Errand.objects.all().delete()
    project.memberships.filter(user=bob).update(role="maintainer")
    client = client_of(bob)
    answer = client.post(SAVE, CHOICE, follow=True)
    page = answer.content.decode()
    assert "The sandbox is saved" in page
    assert "A worker tries it" in page
    entry = AuditEntry.objects.get(kind="container_set")
    assert json.loads(entry.data) == {"before": {"engine": "", "image": ""}, "after": CHOICE}
    client.post(SAVE, CHOICE)  # nothing has changed
    client.post(TRY)  # and one try is waiting already
    assert (AuditEntry.objects.filter(kind="container_set").count(), tries()) == (1, 1)
    errand = claimed()
    assert errand.options == CHOICE
    finish_try(errand, fence=errand.fence, works=True, message="Commands run in it.", host="box")
    page = client.get(PAGE).content.decode()
    assert "It works" in page
    assert "Commands run in it. Tried on box." in page
    board = client.get("/p/BIL/").content.decode()
    assert "Commands run in a container (podman)" in board
    client.post(TRY)
    assert tries() == 2
    client.post(SAVE, {"engine": "", "image": "left/over:1"})
    project.refresh_from_db()
    assert (project.container_engine, project.container_image) == ("", "")
    assert project.container_tried == {}


def test_what_does_not_work_stands_on_the_board(project: Project, alice: User):
    Errand.objects.all().delete()
    set_container(project, by=alice, **CHOICE)
    errand = claimed()
    finish_try(errand, fence=errand.fence, works=False, message="It has no bash.", host="box")
    board = client_of(alice).get("/p/BIL/").content.decode()
    assert "It does not work: It has no bash." in board
    with pytest.raises(TransitionError):
        finish_try(errand, fence=errand.fence, works=True, message="", host="")


def test_a_late_answer_about_another_image_is_not_shown(project: Project, alice: User):
    Errand.objects.all().delete()
    set_container(project, by=alice, **CHOICE)
    errand = claimed()
    set_container(project, by=alice, engine="docker", image="other:1")
    finish_try(errand, fence=errand.fence, works=True, message="Fine.", host="box")
    project.refresh_from_db()
    assert project.container_tried == {}


@pytest.mark.parametrize(
    "image", ["", "--privileged", "-v", "a b", "Agents:3", "x;rm", "$(id)", "a" * 300, "a\nb"]
)
def test_a_name_that_is_none_is_refused_and_kept_in_the_form(
    project: Project, alice: User, image: str
):
    answer = client_of(alice).post(SAVE, {"engine": "podman", "image": image})
    assert answer.status_code == 422
    project.refresh_from_db()
    assert project.container_engine == ""


@pytest.mark.parametrize(
    "image", ["agents", "localhost/agents:3", "host.example:5000/a/b:1.2-x", f"a@sha256:{'0' * 64}"]
)
def test_names_as_engines_write_them_are_taken(project: Project, alice: User, image: str):
    assert client_of(alice).post(SAVE, {"engine": "docker", "image": image}).status_code == 302
    project.refresh_from_db()
    assert project.container_image == image


def test_a_member_sees_it_and_cannot_set_it(project: Project, alice: User, bob: User):
    set_container(project, by=alice, **CHOICE)
    project.memberships.filter(user=bob).update(role="member")
    client = client_of(bob)
    page = client.get(PAGE).content.decode()
    assert "container (podman): localhost/agents:3" in page
    assert TRY not in page
    assert client.post(SAVE, {"engine": "", "image": ""}).status_code == 403
    assert client.post(TRY).status_code == 403


def test_nothing_is_tried_where_nothing_is_chosen(project: Project, alice: User):
    Errand.objects.all().delete()
    page = client_of(alice).post(TRY, follow=True).content.decode()
    assert "No container is chosen" in page
    assert tries() == 0
