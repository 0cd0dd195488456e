"""The installation's settings and the workers' page."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client

from board.actions.credentials import model_access
from board.models import Credential, Project, User, Worker

pytestmark = pytest.mark.django_db

KEY = "sk-ant-secret-0123456789"


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def test_only_an_owner_of_the_installation_sees_its_settings(client: Client, bob: User):
    client.force_login(bob)
    assert client.get("/settings/").status_code == 403
    assert client.get("/welcome/").status_code == 403
    assert client.post("/settings/credential/", {"api_key": KEY}).status_code == 403
    assert client.post("/settings/credential/remove/").status_code == 403
    assert b'href="/settings/"' not in client.get("/").content


def test_a_key_is_stored_encrypted_and_never_shown_again(as_alice: Client):
    values = {"api_key": KEY, "base_url": "https://api.example.org/", "header": "x-api-key"}
    assert as_alice.post("/settings/credential/", values)["Location"] == "/settings/"
    access = model_access()
    assert access is not None
    assert (access.api_key, access.base_url) == (KEY, "https://api.example.org")
    assert KEY.encode() not in bytes(Credential.objects.get().secret)
    page = as_alice.get("/settings/").content.decode()
    assert KEY not in page
    assert "Entered by Alice" in page
    as_alice.post("/settings/credential/remove/")
    assert model_access() is None


def test_a_refused_key_is_not_sent_back(as_alice: Client):
    values = {"api_key": f"{KEY} x", "base_url": "ftp://x", "header": "bearer"}
    answer = as_alice.post("/settings/credential/", values)
    assert answer.status_code == 422
    assert KEY not in answer.content.decode()
    assert model_access() is None


def test_a_key_of_the_environment_is_named_and_cannot_be_replaced_here(as_alice: Client, settings):
    settings.ANTHROPIC_API_KEY = KEY
    page = as_alice.get("/settings/").content.decode()
    assert "set by the environment" in page
    assert KEY not in page
    assert 'name="api_key"' not in page


def test_the_first_steps_store_a_key_and_go_on(as_alice: Client):
    values = {"api_key": KEY, "base_url": "", "header": "bearer", "next": "/welcome/"}
    assert as_alice.post("/settings/credential/", values)["Location"] == "/welcome/"
    assert b"The key is stored" in as_alice.get("/welcome/").content
    away = as_alice.post("/settings/credential/", {**values, "next": "//evil.example"})
    assert away["Location"] == "/"


def test_a_project_page_says_that_no_model_is_set_up(as_alice: Client, project: Project):
    assert b"No model is set up" in as_alice.get("/").content
    as_alice.post("/settings/credential/", {"api_key": KEY, "base_url": "", "header": "bearer"})
    assert b"No model is set up" not in as_alice.get("/").content


def test_workers_are_ready_slow_lost_or_stopped(as_alice: Client, worker: Worker):
    Worker.objects.filter(pk=worker.pk).update(busy=2, lag_ms=900, sandbox="none")
    lost = Worker.objects.create(
        host="gone", pid=2, version="0", slots=1, sandbox="landlock", heartbeat_at=Now()
    )
    Worker.objects.filter(pk=lost.pk).update(heartbeat_at=Now() - timedelta(minutes=9))
    page = as_alice.get("/workers/").content.decode()
    assert "Slow" in page
    assert "Lost" in page
    assert "2 of 4" in page
    assert "2 busy, 2 free" in page
    assert "apt install bubblewrap" in page
    Worker.objects.filter(pk=worker.pk).update(stopped_at=Now())
    page = as_alice.get("/workers/").content.decode()
    assert "Stopped" in page
    assert "No worker is alive" in page


def test_without_any_worker_the_page_says_how_to_start_one(as_alice: Client):
    assert b"No worker yet" in as_alice.get("/workers/").content
