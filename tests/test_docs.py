"""The documentation says what the code does: every name is on its page, every link and example works."""

import ast
import re
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path

import pytest
import yaml
from django.urls import URLPattern

from agents.harness.policy.examples import check as check_policy
from agents.harness.policy.load import parse as parse_policy
from board import __version__, consumers, events, states, urls
from board.fragments import logs
from tests.documents import (
    ROOT,
    SOURCES,
    anchors,
    arguments_of,
    blocks,
    constants_given_to,
    coverage_rows,
    defined_in,
    links,
    make_targets,
    names_in,
    parse,
    settings_that_are_read,
    shown,
    table_rows,
)

DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = sorted(
    [
        *DOCS.rglob("*.md"),
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
    ]
)
COVERAGE = (DOCS / "parity.md", DOCS / "situations.md")

NAMED_TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


# Reference pages.


def test_every_setting_is_on_its_page_with_its_default():
    rows = table_rows(REFERENCE / "settings.md")
    documented = {name for name in rows if re.fullmatch(r"[A-Z_]+", name)}
    calls = dict(settings_that_are_read())
    assert documented == set(calls)
    for name, default in calls.items():
        if default:
            assert default in rows[name][0], f"{name} defaults to {default}"


def test_every_variable_that_git_gets_is_on_the_settings_page():
    tree = parse(ROOT / "board/settings.py")
    (comprehension,) = [node for node in ast.walk(tree) if isinstance(node, ast.DictComp)]
    names = ast.literal_eval(comprehension.generators[0].iter)
    assert names_in(REFERENCE / "settings.md") >= set(names)


def test_every_check_of_the_start_is_on_the_settings_page():
    found = set(re.findall(r"pullcord\.[EW]\d+", (ROOT / "board/checks.py").read_text()))
    assert found
    assert found == {
        name for name in table_rows(REFERENCE / "settings.md") if name.startswith("pullcord.")
    }


@pytest.mark.parametrize("noun", ["card", "run", "approval", "step", "errand"])
def test_the_states_page_has_exactly_the_transitions_of_the_code(noun):
    documented = {
        row: set(re.findall(r"`(\w+)`", cells[0]))
        for row, cells in table_rows(
            REFERENCE / "states.md", section=noun.capitalize(), head="From"
        ).items()
    }
    transitions: Mapping[StrEnum, frozenset[StrEnum]] = getattr(
        states, f"{noun.upper()}_TRANSITIONS"
    )
    assert documented == {
        str(state): {str(to) for to in then} for state, then in transitions.items()
    }


def test_the_diagram_of_a_card_shows_only_what_may_happen():
    arrows = re.findall(r"^ +(\w+) --> (\w+)", (REFERENCE / "states.md").read_text(), re.MULTILINE)
    assert arrows
    for before, after in arrows:
        assert states.CardStatus(after) in states.CARD_TRANSITIONS[states.CardStatus(before)]


def test_every_state_of_every_kind_is_on_the_states_page():
    names = names_in(REFERENCE / "states.md")
    for enum in vars(states).values():
        if isinstance(enum, type) and issubclass(enum, StrEnum) and enum is not StrEnum:
            assert names >= {enum.__name__, *enum}, enum.__name__


def test_every_event_is_on_its_page_with_all_of_its_data():
    rows = table_rows(REFERENCE / "events.md", section="Events")
    classes = {kind.__name__: kind for kind in events.BoardEvent.__subclasses__()}
    assert set(rows) == set(classes)
    for name, kind in classes.items():
        own = {field.name for field in fields(kind)} - {"card_id", "run_id"}
        assert own == set(re.findall(r"`(\w+)`", rows[name][-1])) & own, name


def test_every_kind_of_log_item_is_on_the_events_page():
    kinds = {*logs.KINDS, *constants_given_to("emit")}
    assert set(table_rows(REFERENCE / "events.md", section="Log items")) == kinds


def test_every_address_is_on_the_pages_page_by_its_name():
    documented = {
        name: re.sub(r"\?.*", "", cells[0].strip("`"))
        for name, cells in table_rows(REFERENCE / "pages.md").items()
    }
    assert documented == {
        str(route.name): f"/{shown(str(route.pattern))}"
        for route in urls.urlpatterns
        if isinstance(route, URLPattern)
    }


def test_every_frame_command_and_close_code_is_on_the_live_page():
    page = REFERENCE / "live-frames.md"
    assert set(table_rows(page, head="Frame")) == set(constants_given_to("frame"))
    assert set(table_rows(page, head="Command")) == set(consumers.ProjectConsumer.COMMANDS)
    codes = {
        consumers.SIGNED_OUT,
        consumers.REVOKED,
        consumers.NOT_FOUND,
        consumers.TOO_MANY,
        consumers.TOO_LARGE,
    }
    assert set(re.findall(r"^\| (\d+) \|", page.read_text(), re.MULTILINE)) == {
        str(code) for code in codes
    }


def test_every_op_is_on_the_live_page():
    text = "".join((ROOT / f"board/{name}.py").read_text() for name in ("live", "feeds/boards"))
    ops = set(re.findall(r'"op": "(\w+)"', text))
    assert ops
    assert set(table_rows(REFERENCE / "live-frames.md", head="Op")) == ops


def test_every_command_and_option_is_on_the_commands_page():
    text = (REFERENCE / "commands.md").read_text()
    modules = [
        path
        for package in ("board", "agents")
        for path in (ROOT / package / "management/commands").glob("*.py")
        if path.stem != "__init__"
    ]
    assert modules
    for module in modules:
        assert f"\n### {module.stem}\n" in text
    for path in [
        *modules,
        ROOT / "agents/harness/__main__.py",
        ROOT / "agents/harness/policy/__main__.py",
    ]:
        for option in re.findall(r'"(--[a-z][\w-]*)"', re.sub(r"argv.*", "", arguments_of(path))):
            assert f"`{option}" in text or f"[{option}" in text or f"{option} " in text, (
                f"{option} of {path}"
            )
    assert set(re.findall(r"^\| `make (\w+)`", text, re.MULTILINE)) == make_targets()


def test_every_kind_of_audit_entry_is_on_the_audit_page():
    kinds = (REFERENCE / "audit.md").read_text().partition("## Kinds")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in kinds.splitlines() if line.startswith("| `")]
    documented = {kind for names in rows for kind in re.findall(r"`(\w+)`", names)}
    used = {
        argument.value
        for path in (ROOT / "board/actions").glob("*.py")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in {"Act", "_record", "_act", "_set"}
        for argument in node.args
        if isinstance(argument, ast.Constant)
    } | {"tool_called", "tool_refused"}  # one of the two, by what became of the call
    assert used
    assert documented == used


def test_every_role_is_on_the_roles_page():
    assert set(table_rows(REFERENCE / "roles.md")) == {str(role) for role in states.Role}


def test_every_rule_of_the_policy_is_on_its_page():
    used = {
        node.value
        for path in (ROOT / "agents/harness/policy").glob("*.py")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[ACDL]\d+", node.value)
    }
    assert used
    assert names_in(REFERENCE / "policy.md") >= used


def test_the_example_of_a_policy_is_valid():
    (example,) = [code for language, code in blocks(REFERENCE / "policy.md") if language == "yaml"]
    assert [str(rule) for rule in parse_policy(example, name="example")["deny"].writes] == [
        "LICENSE"
    ]
    assert check_policy(example) == []


# Links, examples, versions.


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


def test_every_page_can_be_reached_from_the_first():
    reached: set[Path] = set()
    edge = {DOCS / "index.md"}
    while edge:
        reached |= edge
        linked = {
            (page.parent / link.partition("#")[0]).resolve()
            for page in edge
            for link in links(page)
        }
        edge = {
            page for page in linked if page.suffix == ".md" and page.is_relative_to(DOCS)
        } - reached
    assert set(DOCS.rglob("*.md")) == reached


def test_every_page_that_the_code_names_exists():
    named = {
        match for path in SOURCES for match in re.findall(r"docs/[\w/-]+\.md", path.read_text())
    }
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_every_make_command_in_the_documentation_exists():
    for page in PAGES:
        for _, code in blocks(page):
            for target in re.findall(r"^make (\w+)", code, re.MULTILINE):
                assert target in make_targets(), f"make {target} in {page.name}"


def test_the_readme_begins_with_the_two_commands():
    (_, first), *_ = blocks(ROOT / "README.md")
    assert re.findall(r"^make \w+", first, re.MULTILINE) == ["make run", "make test"]


def test_every_example_in_python_compiles_and_every_one_in_yaml_parses():
    for page in PAGES:
        for language, code in blocks(page):
            if language == "python":
                compile(code, str(page), "exec")
            elif language == "yaml":
                yaml.safe_load(code)


def test_every_module_that_is_named_exists():
    for page in PAGES:
        for name in re.findall(
            r"`((?:board|agents|benchmarks|static|templates)/[\w/.-]*)`", page.read_text()
        ):
            assert (ROOT / name).exists(), f"{name} in {page.name}"


def test_the_changelog_has_this_version():
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()


# What is covered by which test.


@pytest.mark.parametrize(
    "page", [*COVERAGE, DOCS / "explanation/guarantees.md"], ids=lambda page: page.stem
)
def test_every_test_that_a_page_names_exists(page):
    named = set(NAMED_TEST.findall(page.read_text()))
    assert named
    missing = [f"{path}::{name}" for path, name in sorted(named) if name not in defined_in(path)]
    assert missing == []


@pytest.mark.parametrize("page", COVERAGE, ids=lambda page: page.stem)
def test_what_counts_as_done_names_a_test_and_what_is_partly_done_says_what_is_missing(page):
    rows = list(coverage_rows(page))
    assert rows
    assert len({identity for identity, *_ in rows}) == len(rows)
    for identity, state, tests, note in rows:
        assert state in {"done", "partly", "later"}, identity
        assert bool(NAMED_TEST.search(tests)) == (state != "later"), identity
        assert state != "partly" or note, identity
