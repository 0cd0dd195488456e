"""The one gate for reading: who sees what, and in which words it is refused."""

import pytest
from django.db import connection
from django.http import Http404
from django.test.utils import CaptureQueriesContext

from board import access
from board.actions.approvals import Question, request_approval
from board.actions.projects import archive_project
from board.errors import NotAllowedError
from board.models import Membership, User
from board.states import ROLE_ORDER, Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def things(running):
    """How each thing of the project is fetched."""
    question = Question("c", "bash", {"command": "ls"}, "D1", [], "0" * 64, {}, [], "none")
    approval = request_approval(running.pk, running.fence, question, seq=None, active_seconds=0)
    return {
        "project": lambda user, **role: access.get_project(user, "bil", **role),
        "card": lambda user, **role: access.get_card(user, "bil-1", **role),
        "run": lambda user, **role: access.get_run(user, running.pk, **role),
        "approval": lambda user, **role: access.get_approval(user, approval.pk, **role),
    }


KINDS = ("project", "card", "run", "approval")


@pytest.mark.parametrize("kind", KINDS)
def test_a_stranger_finds_nothing(things, mallory, kind):
    for role in Role:
        with pytest.raises(Http404):
            things[kind](mallory, role=role)


@pytest.mark.parametrize("kind", KINDS)
def test_an_owner_of_the_installation_is_a_stranger_to_the_projects_of_others(things, kind):
    owner = User.objects.create_user(email="root@example.org", name="Root", is_owner=True)
    with pytest.raises(Http404):
        things[kind](owner)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("have", list(Role))
def test_a_role_includes_the_smaller_ones_and_no_larger_one(
    things, mallory, running, kind, *, have
):
    Membership.objects.create(project=running.project, user=mallory, role=have)
    for need in Role:
        if ROLE_ORDER[have] >= ROLE_ORDER[need]:
            assert things[kind](mallory, role=need) is not None
        else:
            with pytest.raises(NotAllowedError, match=f"you are a {have}"):
                things[kind](mallory, role=need)


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_who_is_no_longer_active_finds_nothing(things, bob, kind):
    User.objects.filter(pk=bob.pk).update(is_active=False)
    bob.refresh_from_db()
    with pytest.raises(Http404):
        things[kind](bob)


@pytest.mark.parametrize("kind", ["project", "card"])
def test_an_archived_project_is_not_found(things, alice, running, kind):
    archive_project(running.project, by=alice)
    with pytest.raises(Http404):
        things[kind](alice)
    assert not access.list_projects(alice).exists()
    assert not access.list_approvals(alice).exists()


@pytest.mark.parametrize(
    "ref",
    ["", "-", "BIL", "BIL-", "-1", "BIL-0", "BIL-x", "BIL-1.0", "BIL--1", "BIL-²", "BIL-1\x00", "\x00-1",
     "BIL-99999999999999999999", "B IL-1", "NONE-1"],
)  # fmt: skip
def test_what_no_card_is_called_is_not_found(things, alice, ref):
    with pytest.raises(Http404):
        access.get_card(alice, ref)


@pytest.mark.parametrize("key", ["", "\x00", "B\x00IL", "NONE", "BI L", "%"])
def test_what_no_project_is_called_is_not_found(things, alice, key):
    with pytest.raises(Http404):
        access.get_project(alice, key)


@pytest.mark.parametrize("pk", [0, -1, 10**30])
def test_what_has_no_such_number_is_not_found(things, alice, pk):
    for get in (access.get_run, access.get_approval):
        with pytest.raises(Http404):
            get(alice, pk)


@pytest.mark.parametrize("person", ["alice", "bob", "vera", "mallory"])
def test_lists_hold_what_one_is_a_member_of(request, things, person):
    user = request.getfixturevalue(person)
    expected = 0 if person == "mallory" else 1
    assert access.list_projects(user).count() == expected
    assert access.list_approvals(user).count() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_fetching_brings_what_is_shown_with_it(things, alice, kind):
    with CaptureQueriesContext(
        connection,
    ) as first:
        found = things[kind](alice)
    assert len(first) == 2  # the thing, and the role
    with CaptureQueriesContext(connection) as more:
        match kind:
            case "card":
                assert (found.ref, found.column.name, found.run.pk) == (
                    "BIL-1",
                    "Running",
                    found.run_id,
                )
            case "run":
                assert found.card.ref == "BIL-1"
            case "approval":
                assert (found.run.card.ref, found.step.status) == ("BIL-1", "pending")
            case _:
                assert found.key == "BIL"
    assert len(more) == 0
