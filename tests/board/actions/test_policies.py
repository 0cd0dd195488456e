"""Policies of the organisation, of projects and of cards: versions, who was first, and what binds a run."""

import json

import pytest
from django.utils import timezone

from agents.harness.errors import FatalError
from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide
from agents.harness.policy.profiles import Profile
from agents.harness.ports import Tier, ToolCall
from agents.policies import renewed
from board.actions import cards, policies
from board.actions.policies import Scope, save_policy, set_profile, withdraw_grant
from board.errors import PolicyRefusedError, TransitionError, ValidationError
from board.gate import Binding, TriedCall, gate
from board.models import AuditEntry, Event, Grant, PolicyVersion
from board.states import ToolProfile
from tests.races import at_once

pytestmark = pytest.mark.django_db
DENY = "version: 1\ndeny:\n  commands: [git push *]\n"
ASK = "version: 1\nask:\n  commands: [ls *]\n"


def save(scope, text, by, *, base=0, **more):
    return save_policy(scope, text, by=by, base=base, **more)


def test_a_version_says_who_when_why_and_what_was_before(project, alice, bob):
    first = save(Scope(project), DENY, alice, comment=" Only people push ")
    second = save(Scope(project), ASK, bob, base=1)
    assert (first.number, first.author, first.comment, first.before) == (
        1,
        alice,
        "Only people push",
        None,
    )
    assert (second.number, second.before) == (2, first)
    event = Event.objects.filter(kind="PolicyChanged").earliest("seq")
    assert (event.actor, event.payload["what"], event.payload["comment"]) == (
        "Alice",
        "version 1",
        "Only people push",
    )
    entry = AuditEntry.objects.filter(kind="policy_saved").earliest("number")
    assert (entry.actor, json.loads(entry.data)["number"]) == ("Alice", 1)
    assert json.loads(entry.data)["text"] == DENY


def test_each_scope_counts_for_itself(project, alice, new_card):
    card = new_card()
    for scope in (Scope(), Scope(project), Scope(project, card)):
        assert save(scope, DENY, alice).number == 1
        assert save(scope, ASK, alice, base=1).number == 2
        assert [version.text for version in scope.versions()] == [DENY, ASK]
    assert Scope(project, card).origin == f"card {card.ref}"
    assert PolicyVersion.objects.count() == 6


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("version: 1\ndeny:\n  command: [x]\n", 3),
        ("version: 1\nask:\n  commands:\n  - {rule: ls *, match: [cat x]}\n", 4),
        ("version: 1\nallow: {commands: ['*']}\n", 2),
        ("x" * 100_001, 0),
    ],
)
def test_what_is_not_valid_is_refused_with_the_line_and_nothing_is_stored(
    project, alice, text, line
):
    with pytest.raises(PolicyRefusedError, match="not saved") as refused:
        save(Scope(project), text, alice)
    assert [problem.line for problem in refused.value.problems] == [line]
    assert not PolicyVersion.objects.exists()


def test_who_edited_an_old_version_is_told_whose_is_newer(project, alice, bob):
    save(Scope(project), DENY, alice)
    with pytest.raises(TransitionError, match="Alice saved version 1 while you were writing"):
        save(Scope(project), ASK, bob)
    with pytest.raises(TransitionError, match="in force already"):
        save(Scope(project), DENY, bob, base=1)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_save_at_once_one_is_first_and_the_other_is_told(project, alice, bob):
    outcomes = at_once(
        lambda: save(Scope(project), DENY, alice), lambda: save(Scope(project), ASK, bob)
    )
    refused = [one for one in outcomes if isinstance(one, TransitionError)]
    assert len(refused) == 1, outcomes
    assert PolicyVersion.objects.count() == 1


def test_a_running_run_is_bound_by_a_new_version_at_its_next_call(running, alice, tmp_path):
    context = Context(workspace=tmp_path, sandbox="bubblewrap")
    call = ToolCall("x", "bash", {"command": "ls src"})

    def verdict():
        return decide(call, renewed(context, running.pk))

    before = verdict()
    assert before.tier is Tier.ALLOW
    project, card = running.project, running.card
    save(Scope(project, card), "version: 1\ndeny: {commands: [ls *]}\n", alice)
    denied = verdict()
    assert denied.tier is Tier.DENY
    assert denied.reasons[0] == f"The policy of card {card.ref} denies `ls *`"
    save(Scope(project, card), "version: 1\n", alice, base=1)
    again = verdict()
    assert (again.tier, again.facts["policy"]) == (Tier.ALLOW, before.facts["policy"])
    save(Scope(), ASK, alice)
    save(Scope(project), "version: 1\nallow: {commands: [ls *]}\n", alice)
    asked = verdict()
    assert (asked.tier, asked.rule) == (Tier.ASK, "policy")
    assert "the organisation asks about" in asked.reasons[0]
    assert asked.facts["policy"] != before.facts["policy"]


def test_a_file_that_is_not_valid_ends_the_run_and_is_said_to_people(
    running, project, alice, tmp_path, settings
):
    settings.DATA = tmp_path
    (tmp_path / "policy.yaml").write_text("version: 1\nalow: {}\n")
    with pytest.raises(FatalError, match=r"policy\.yaml: line 2: 'alow' is not known") as failed:
        renewed(Context(workspace=tmp_path), running.pk)
    assert failed.value.kind == "policy"
    with pytest.raises(ValidationError, match="line 2"):
        gate().explain(TriedCall("bash", {"command": "ls"}), Binding())


def test_rules_of_another_project_or_card_bind_nobody_else(running, alice, new_card):
    other = new_card("Another")
    save(Scope(running.project, other), DENY, alice)
    assert policies.binding_of(running.pk).scopes == ()


def test_the_narrower_profile_counts(running, alice):
    project, card = running.project, running.card
    assert policies.binding_of(running.pk).profile == "full"
    cards.edit_card(card, by=alice, tool_profile="edit-test")
    assert policies.binding_of(running.pk).profile == "edit-test"
    set_profile(project, ToolProfile.READ_ONLY, by=alice)
    assert policies.binding_of(running.pk).profile == "read-only"
    assert (
        Event.objects.filter(kind="PolicyChanged").latest("seq").payload["what"]
        == "tools: read-only"
    )
    with pytest.raises(ValidationError, match="One of read-only"):
        cards.edit_card(card, by=alice, tool_profile="more")


def test_the_profiles_are_called_the_same_on_both_sides():
    assert [*ToolProfile] == [*Profile]


def test_a_withdrawn_answer_counts_no_more_and_is_withdrawn_once(project, alice, bob):
    def grant():
        row = Grant(
            project=project,
            tool="bash",
            input={"command": "x"},
            granted_by=alice,
            granted_at=timezone.now(),
        )
        policies.add_grant(row)

    grant()
    grant()
    (row,) = Grant.objects.all()
    assert [one.input for one in policies.project_grants(project.pk)] == [{"command": "x"}]
    withdraw_grant(row, by=bob)
    assert policies.project_grants(project.pk) == []
    with pytest.raises(TransitionError, match="withdrawn before"):
        withdraw_grant(row, by=alice)
    assert AuditEntry.objects.filter(kind="grant_withdrawn").count() == 1
    grant()
    assert len(policies.project_grants(project.pk)) == 1
