"""Policy files: read, joined, and refused with a clear reason."""

import pytest

from agents.harness.policy.load import DEFAULT_POLICY, PolicyError, load_policy, parse


def test_the_default_policy_is_valid_and_adds_nothing():
    policy = load_policy()
    assert policy.rules.allow.commands == ()
    assert policy.rules.deny.writes == ()
    assert len(policy.version) == 16
    assert DEFAULT_POLICY.name == "policy.yaml"


def test_the_version_changes_with_the_text(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\n")
    before = load_policy(path).version
    path.write_text("version: 1\nask: {commands: [ls]}\n")
    assert load_policy(path).version != before


def test_later_files_add_to_earlier_ones(tmp_path):
    (tmp_path / "a.yaml").write_text('version: 1\ndeny: {commands: ["git push *"]}\n')
    (tmp_path / "b.yaml").write_text('version: 1\nallow: {commands: ["git push origin"]}\n')
    rules = load_policy(tmp_path / "a.yaml", tmp_path / "b.yaml").rules
    assert [str(pattern) for pattern in rules.deny.commands] == ["git push *"]
    assert [str(pattern) for pattern in rules.allow.commands] == ["git push origin"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a mapping"),
        ("- a", "must be a mapping"),
        ("version: 2", "version must be 1"),
        ("version: 1\nalow: {}", "'alow' is not known; known are version, allow, ask, deny"),
        ("version: 1\nallow: []\nask: x", "line 3: ask: must be a mapping"),
        ("version: 1\nallow: {writes: [x]}", "allow: 'writes' is not known"),
        ("version: 1\nask: {commands: ls}", "commands must be a list of texts"),
        ("version: 1\nask: {commands: [1]}", "commands must be a list of texts"),
        ("version: 1\nask: {commands: ['']}", "has an empty text"),
        ("version: 1\ndeny: {commands: ['*']}", "would match every command"),
        ("version: 1\nallow: {commands: ['a * b']}", "has a \\* that is not its last word"),
        ("version: 1\ndeny: {commands: ['a \"b']}", "has a quote that is not closed"),
        ("version: 1\nask: {commands: [", "is not valid YAML"),
        ("version: 1\nx: !!python/object:os.system {}", "is not valid YAML"),
    ],
)
def test_a_policy_that_is_not_valid_is_refused_with_its_place(text, message):
    with pytest.raises(PolicyError, match=f"policy.yaml.*{message}"):
        parse(text, name="policy.yaml")


def test_a_missing_policy_is_never_ignored(tmp_path):
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(tmp_path / "none.yaml")
