"""No password and no token of a repository's address is shown, in whatever place of it."""

import pytest
from django.test import Client

from board.actions import accounts, projects
from board.addresses import without_sign_in
from board.models import AuditEntry, Membership, User
from board.states import Role

TOKEN = "ghp_abcd1234efgh5678ijkl9012mnop3456qrst"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://user:pw@host/x.git", "https://…@host/x.git"),
        (f"https://{TOKEN}@host/x.git", "https://…@host/x.git"),
        ("https://user:p@ss@host/x.git", "https://…@host/x.git"),
        ("HTTP://user:pw@host/x.git", "HTTP://…@host/x.git"),
        ("ssh://git@host/x.git", "ssh://git@host/x.git"),
        ("ssh://git:pw@host/x.git", "ssh://git:…@host/x.git"),
        ("git@host:x.git", "git@host:x.git"),
        ("https://host/a@b.git", "https://host/a@b.git"),
        ("/srv/a@b", "/srv/a@b"),
    ],
)
def test_an_address_is_shown_without_its_sign_in(address: str, shown: str) -> None:
    assert without_sign_in(address) == shown


@pytest.mark.django_db
@pytest.mark.parametrize("sign_in", [TOKEN, "user:hunter2hunter", "x:qzqz-one@zqzq-two"])
def test_a_viewer_sees_no_sign_in_anywhere(
    client: Client, alice: User, vera: User, sign_in: str
) -> None:
    project = projects.create_project(
        by=alice, key="TOK", name="Token", repository=f"https://{sign_in}@host.example/x.git"
    )
    Membership.objects.create(project=project, user=vera, role=Role.VIEWER)
    token = accounts.create_token(vera, name="script")
    found = client.get("/api/v1/projects/TOK", headers={"Authorization": f"Bearer {token}"})
    assert found.json()["repository"] == "https://…@host.example/x.git"
    client.force_login(vera)
    pages = [client.get(f"/p/TOK/{page}").content.decode() for page in ("", "settings/")]
    audited = "".join(entry.data for entry in AuditEntry.objects.all())
    for secret in sign_in.rpartition(":")[2].split("@"):
        assert secret not in "".join([*pages, audited]), secret
