"""The page on which a maintainer reads and trusts what the repository tells agents."""

import pytest
from django.test import Client

from board.actions.instructions import note_instructions
from board.models import Instruction, Project, User

pytestmark = pytest.mark.django_db

PAGE = "/p/BIL/settings/instructions/"


@pytest.fixture
def row(project: Project) -> Instruction:
    return note_instructions(project.pk, "AGENTS.md", "Use <make>.\u202e Always.")


def trusted() -> bool:
    return Instruction.objects.filter(trusted_by__isnull=False).exists()


def test_the_content_is_shown_whole_with_what_hides_named(
    client: Client, vera: User, row: Instruction
) -> None:
    client.force_login(vera)
    page = client.get(PAGE).content.decode()
    assert "Use &lt;make&gt;." in page
    assert "U+202E" in page
    assert "\u202e" not in page
    assert "Not trusted." in page
    assert "/trust/" not in page  # a viewer looks
    assert "is not trusted, so no agent reads it" in client.get("/p/BIL/settings/").content.decode()


def test_a_maintainer_trusts_it_and_takes_it_back(
    client: Client, alice: User, row: Instruction
) -> None:
    client.force_login(alice)
    assert client.post(f"{PAGE}{row.pk}/trust/")["Location"] == PAGE
    assert trusted()
    assert "<strong>Trusted</strong> by Alice" in client.get(PAGE).content.decode()
    client.post(f"{PAGE}{row.pk}/withdraw/")
    assert not trusted()


def test_another_content_asks_again(
    client: Client, alice: User, project: Project, row: Instruction
) -> None:
    client.force_login(alice)
    client.post(f"{PAGE}{row.pk}/trust/")
    note_instructions(project.pk, "AGENTS.md", "Something else.")
    page = client.get(PAGE).content.decode()
    assert "It has changed since it was trusted" in page
    said = client.post(f"{PAGE}{row.pk}/trust/", follow=True).content.decode()
    assert "has changed since this page was shown" in said


@pytest.mark.parametrize("act", ["trust", "withdraw"])
def test_members_and_strangers_do_not_decide(
    client: Client, bob: User, mallory: User, row: Instruction, act: str
) -> None:
    client.force_login(bob)
    assert client.post(f"{PAGE}{row.pk}/{act}/").status_code == 403
    client.force_login(mallory)
    assert client.post(f"{PAGE}{row.pk}/{act}/").status_code == 404
    assert client.get(PAGE).status_code == 404
    assert not trusted()


def test_a_row_of_another_project_is_not_found(
    client: Client, alice: User, row: Instruction
) -> None:
    client.force_login(alice)
    client.post(
        "/projects/new/", {"key": "OTH", "name": "Other", "repository": "https://example.org/x.git"}
    )
    assert client.post(f"/p/OTH/settings/instructions/{row.pk}/trust/").status_code == 404
    assert not trusted()


def test_without_a_file_the_page_says_so(client: Client, alice: User, project: Project) -> None:
    client.force_login(alice)
    assert "has neither file" in client.get(PAGE).content.decode()
