"""Policies by the API."""

import pytest

from board.models import PolicyVersion

pytestmark = pytest.mark.django_db
TEXT = "version: 1\ndeny:\n  commands:\n  - {rule: git push *, because: Only people push}\n"


def test_a_policy_is_saved_and_shown_with_the_rules_in_force(api, project):
    empty = api.get("/projects/BIL/policy")
    assert (empty["version"], empty["text"], empty["rules"]) == (0, "version: 1\n", [])
    status, saved = api("PUT", "/projects/BIL/policy", {"text": TEXT, "base": 0, "comment": "x"})
    assert (status, saved["version"], saved["author"], saved["comment"]) == (200, 1, "Alice", "x")
    assert api.get("/projects/BIL/policy") == saved
    (rule,) = saved["rules"]
    assert rule == {
        "tier": "deny", "kind": "commands", "text": "git push *", "origin": "project BIL",
        "line": 4, "because": "Only people push",
    }  # fmt: skip


def test_what_is_refused_says_why(api, project):
    status, answer = api("PUT", "/projects/BIL/policy", {"text": "deny: x", "base": 0})
    assert (status, answer["code"]) == (422, "policy_refused")
    assert "Line 1" in answer["fields"]["text"]
    api("PUT", "/projects/BIL/policy", {"text": TEXT, "base": 0})
    status, answer = api("PUT", "/projects/BIL/policy", {"text": "version: 1", "base": 0})
    assert (status, answer["code"]) == (409, "conflict")
    assert PolicyVersion.objects.count() == 1


def test_a_call_is_tried_under_the_policy_in_force_or_another(api, project):
    api("PUT", "/projects/BIL/policy", {"text": TEXT, "base": 0})
    call = {"input": {"command": "ls; git push"}}
    denied = api.post("/projects/BIL/policy/test", call)
    assert (denied["verdict"], denied["rule"]) == ("deny", "policy")
    assert denied["reasons"][0]["origin"] == "project BIL"
    assert denied["reasons"][0]["line"] == 4
    assert [effect["argv"] for effect in denied["effects"]] == [["ls"], ["git", "push"]]
    asked = api.post("/projects/BIL/policy/test", {**call, "text": "version: 1"})
    assert (asked["verdict"], asked["rule"]) == ("ask", "A1")
    status, answer = api("POST", "/projects/BIL/policy/test", {**call, "text": "x"})
    assert (status, answer["code"]) == (422, "policy_refused")
