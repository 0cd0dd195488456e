"""Only an owner of the installation, who is in the project, sets its local files."""

import pytest
from django.test import Client

from board.models import Project, User

pytestmark = pytest.mark.django_db
PAGE, SAVE = "/p/BIL/settings/", "/p/BIL/local-files/"


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_an_owner_sets_the_local_files(project: Project, alice: User):
    client = client_of(alice)
    answer = client.post(SAVE, {"names": ".env\r\n conf/.env\r\n"}, follow=True)
    assert "The local files are saved" in answer.content.decode()
    project.refresh_from_db()
    assert project.secret_files == [".env", "conf/.env"]
    assert ".env\nconf/.env</textarea>" in client.get(PAGE).content.decode()


def test_a_bad_name_is_refused_with_the_reason(project: Project, alice: User):
    answer = client_of(alice).post(SAVE, {"names": "conf/.env\n../.env"})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert "../.env is not the name of a file" in html
    assert "conf/.env\n../.env</textarea>" in html  # what was typed is still there
    project.refresh_from_db()
    assert project.secret_files == []


def test_a_maintainer_who_owns_nothing_neither_sees_nor_sets_them(project: Project, bob: User):
    membership = project.memberships.get(user=bob)
    membership.role = "maintainer"
    membership.save()
    client = client_of(bob)
    assert "Local files" not in client.get(PAGE).content.decode()
    answer = client.post(SAVE, {"names": ".env"})
    assert answer.status_code == 403
    assert "Only an owner" in answer.content.decode()
    project.refresh_from_db()
    assert project.secret_files == []


def test_a_project_with_an_address_has_no_local_files(project: Project, alice: User):
    Project.objects.filter(pk=project.pk).update(repository="https://example.org/x.git")
    assert "Local files" not in client_of(alice).get(PAGE).content.decode()


def test_a_stranger_gets_404(project: Project, mallory: User):
    assert client_of(mallory).post(SAVE, {"names": ".env"}).status_code == 404
