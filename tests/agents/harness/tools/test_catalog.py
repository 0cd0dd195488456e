"""The tools as the model gets them."""

from jsonschema import Draft202012Validator

from agents.harness.tools.catalog import default_tools
from agents.harness.tools.registry import definitions
from agents.harness.tools.report import report_result
from agents.harness.tools.todo import todo_write

FIELDS = {
    "bash": {"command", "timeout"},
    "edit_file": {"path", "old", "new", "replace_all"},
    "glob": {"pattern"},
    "grep": {"pattern", "path", "glob"},
    "list_files": {"path"},
    "read_file": {"path", "offset", "limit"},
    "report_result": {"status", "summary", "remaining"},
    "todo_write": {"items"},
    "write_file": {"path", "content"},
}


def test_names_and_fields_are_the_published_ones():
    tools = default_tools()
    assert {name: set(tool.schema["properties"]) for name, tool in tools.items()} == FIELDS
    assert list(tools) == sorted(tools)


def test_each_schema_is_valid_and_closed():
    for tool in default_tools().values():
        Draft202012Validator.check_schema(tool.schema)
        assert tool.schema["additionalProperties"] is False
        assert set(tool.schema["required"]) <= set(tool.schema["properties"])


def test_each_description_says_when_to_use_it_and_when_not():
    for tool in default_tools().values():
        text = tool.description
        assert "use" in text.casefold() or "call it" in text.casefold()
        assert any(word in text for word in ("not", "Files that git", "To find", "do not"))


def test_definitions_are_what_the_api_takes():
    for definition in definitions(default_tools()):
        assert set(definition) == {"name", "description", "input_schema"}


def test_tools_that_only_read_can_be_repeated():
    for tool in default_tools().values():
        assert tool.repeatable or not tool.read_only
    assert not default_tools()["bash"].repeatable


def test_the_list_and_the_report_are_kept(context):
    items = [{"text": "one", "status": "done"}, {"text": "two", "status": "pending"}]
    assert todo_write(context, {"items": items}).text == "The list has 2 items, 1 of them open."
    assert context.todo == items
    report_result(context, {"status": "done", "summary": "ok"})
    assert context.report == {"status": "done", "summary": "ok"}
