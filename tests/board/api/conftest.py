"""A caller of the API for each person."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from board.actions.accounts import create_token
from board.models import User


class Caller:
    """Calls the API with a person's token and reads the JSON of the answer."""

    def __init__(self, user: User | None) -> None:
        # A request that fails inside is answered, as in production, instead of raised.
        self.client = Client(raise_request_exception=False)
        self.headers = {}
        if user is not None:
            self.headers["authorization"] = f"Bearer {create_token(user, name='test')}"

    def __call__(self, method: str, path: str, body: Any = None, *, raw: str | None = None) -> Any:
        """Return (status, JSON) of the answer; it must be JSON, whatever happened."""
        content = raw if raw is not None else "" if body is None else json.dumps(body)
        response = self.client.generic(
            method, f"/api/v1{path}", content, "application/json", headers=self.headers
        )
        assert response["Content-Type"].split(";")[0] == "application/json", response.content
        self.response = response
        return response.status_code, response.json()

    def get(self, path: str) -> Any:
        """Return the JSON of a request that must succeed."""
        status, answer = self("GET", path)
        assert status == 200, answer
        return answer

    def post(self, path: str, body: Any = None) -> Any:
        """Return the JSON of a request that must succeed."""
        status, answer = self("POST", path, body)
        assert status in {200, 201}, answer
        return answer


@pytest.fixture
def caller() -> Callable[[User | None], Caller]:
    return Caller


@pytest.fixture
def api(alice: User) -> Caller:
    """Alice's programs."""
    return Caller(alice)
