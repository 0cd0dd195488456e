"""The shell tool."""

import pytest

from agents.harness.errors import ToolError
from agents.harness.tools.files import read_file
from agents.harness.tools.registry import OUTPUT_CHARACTERS
from agents.harness.tools.shell import bash


def test_the_end_of_a_command_is_told(context):
    output = bash(context, {"command": "echo hello"})
    assert output.text.startswith("hello\n[exit code 0, ")
    assert not output.is_error
    output = bash(context, {"command": "printf no-newline; exit 3"})
    assert output.text.startswith("no-newline\n[exit code 3, ")
    assert output.is_error
    assert output.details["exit_code"] == 3


def test_output_is_heard_as_text_even_if_a_character_is_cut_in_two(context):
    heard: list[str] = []
    context.on_output = heard.append
    bash(context, {"command": r"printf 'caf\xc3'; sleep 0.2; printf '\xa9\n'"})
    assert "".join(heard) == "café\n"


def test_a_command_that_takes_too_long_is_killed_and_the_model_is_told(context):
    output = bash(context, {"command": "echo begun; sleep 60", "timeout": 0.2})
    assert "begun\n[killed after " in output.text
    assert output.is_error
    assert output.details == {"exit_code": None, "ended_by": "timeout"}


def test_a_cancelled_command_says_so(context):
    context.cancel.set()
    assert "[cancelled after" in bash(context, {"command": "sleep 60"}).text


def test_long_output_is_cut_and_can_be_read_as_a_whole(context):
    text = bash(context, {"command": "seq 20000"}).text
    assert len(text) < OUTPUT_CHARACTERS + 300
    assert text.startswith("1\n2\n")
    assert "19999\n20000\n[exit code 0" in text
    name = text.partition("output://")[2].partition(" ")[0]
    page = read_file(context, {"path": f"output://{name}", "offset": 10_000, "limit": 1})
    assert page.text.startswith("10000\t10000\n")


def test_output_that_is_no_text_does_no_harm(context):
    text = bash(context, {"command": r"printf '\x00\xff\x1b[0m'"}).text
    text.encode()
    assert "\0" not in text


def test_an_impossible_command_is_refused(context):
    for command in ("", "  \n", "echo \0", "x" * 200_000):
        with pytest.raises(ToolError):
            bash(context, {"command": command})
