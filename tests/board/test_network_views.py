"""Maintainers set the hosts that agents may reach; everyone in the project sees them."""

import json

import pytest
from django.test import Client

from board.models import AuditEntry, Project, User

pytestmark = pytest.mark.django_db
PAGE, SAVE = "/p/BIL/settings/", "/p/BIL/network/"


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_maintainer_sets_the_hosts_and_it_is_recorded(project: Project, bob: User):
    project.memberships.filter(user=bob).update(role="maintainer")
    client = client_of(bob)
    answer = client.post(SAVE, {"hosts": "Docs.Example.org.\r\n\r\nb.example\r\n"}, follow=True)
    assert "The hosts are saved" in answer.content.decode()
    project.refresh_from_db()
    assert project.network_hosts == ["docs.example.org", "b.example"]
    entry = AuditEntry.objects.get(kind="network_hosts_set")
    assert json.loads(entry.data) == {"before": [], "after": ["docs.example.org", "b.example"]}
    assert "docs.example.org\nb.example</textarea>" in client.get(PAGE).content.decode()
    client.post(SAVE, {"hosts": "docs.example.org\nb.example"})
    assert AuditEntry.objects.filter(kind="network_hosts_set").count() == 1  # nothing has changed
    client.post(SAVE, {"hosts": ""})
    project.refresh_from_db()
    assert project.network_hosts == []


def test_each_bad_line_is_said_and_what_was_typed_is_kept(project: Project, alice: User):
    answer = client_of(alice).post(SAVE, {"hosts": "good.example\r\n10.0.0.1\r\n*.org"})
    text = answer.content.decode()
    assert answer.status_code == 422
    assert "10.0.0.1 is an address" in text
    assert "*.org is not the name of a host" in text
    assert "good.example\n10.0.0.1\n*.org</textarea>" in text.replace("\r", "")
    project.refresh_from_db()
    assert project.network_hosts == []


def test_a_member_sees_them_and_cannot_set_them(project: Project, bob: User):
    Project.objects.filter(pk=project.pk).update(network_hosts=["a.example", "b.example"])
    project.memberships.filter(user=bob).update(role="member")
    client = client_of(bob)
    assert "a.example, b.example" in client.get(PAGE).content.decode()
    assert client.post(SAVE, {"hosts": "c.example"}).status_code == 403
    project.refresh_from_db()
    assert project.network_hosts == ["a.example", "b.example"]


def test_a_stranger_gets_404(project: Project, mallory: User):
    assert client_of(mallory).post(SAVE, {"hosts": "a.example"}).status_code == 404
