"""A style or script is asked for once, and never an old one for a new one."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as ours
from django.http import HttpResponse
from django.templatetags.static import static
from django.test import Client, RequestFactory

from board.static_files import FOR_GOOD, StaticFilesMiddleware, version

pytestmark = pytest.mark.django_db


def control(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    assert b"@layer" in response.getvalue()
    response.close()
    return str(response["Cache-Control"])


def test_a_page_names_the_version_and_it_may_be_kept_for_good(client: Client) -> None:
    address = static("css/base.css")
    assert address == f"/static/{version(ours.STATIC_ROOT)}/css/base.css"
    assert control(client, address) == FOR_GOOD


def test_what_is_asked_for_by_another_version_is_served_and_not_kept(client: Client) -> None:
    assert control(client, "/static/0123456789ab/css/base.css") == "no-store"
    assert control(client, "/static/css/base.css") == "max-age=0, public"


def test_what_was_written_after_the_start_is_not_kept(settings: Any, tmp_path: Path) -> None:
    sheet = tmp_path / "a.css"
    sheet.write_text("@layer a;")
    settings.STATIC_ROOT = tmp_path
    serve = StaticFilesMiddleware(lambda _request: HttpResponse(status=404))
    request = RequestFactory().get(static("a.css"))
    for content, expected in (("@layer a;", FOR_GOOD), ("@layer another;", "no-store")):
        if sheet.read_text() != content:
            sheet.write_text(content)
        request.path_info = request.path
        response = serve(request)
        assert response.status_code == 200
        assert response["Cache-Control"] == expected
        response.close()


@pytest.mark.parametrize("name", ["css/none.css", "", "../settings.py", "/etc/passwd", "css/"])
def test_there_is_nothing_else(client: Client, name: str) -> None:
    answer = client.get(f"/static/{version(ours.STATIC_ROOT)}/{name}")
    assert answer.status_code == 404
    assert "immutable" not in answer.get("Cache-Control", "")


def test_every_change_makes_another_version(tmp_path: Path) -> None:
    seen = set()
    for number, (name, content) in enumerate(
        [("a.js", "1"), ("a.js", "2"), ("b.js", "2"), ("c/b.js", "2"), ("b.js", "")]
    ):
        folder = tmp_path / str(number)
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(content)
        seen.add(version(folder))
    assert len(seen) == 5
    assert version(tmp_path / "not there") == version(tmp_path / "nor there")
