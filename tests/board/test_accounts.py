"""Signing in and out, the first owner, invitations."""

import pytest
from django.test import Client

from board.models import User
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db


def sign_in(client: Client, email: str, password: str = PASSWORD, **more: str):
    return client.post("/signin/", {"email": email, "password": password, **more})


def test_a_person_signs_in_with_any_letter_case_and_sees_the_projects(client: Client, alice: User):
    answer = sign_in(client, "ALICE@example.org ")
    assert answer.status_code == 302
    assert answer["Location"] == "/"
    page = client.get("/")
    assert page.status_code == 200
    assert "data-me=" in page.content.decode()
