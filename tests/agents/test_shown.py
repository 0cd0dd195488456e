"""What a person sees of a call besides its input: the content of its scripts, and what would change in a file."""

from pathlib import Path
from typing import Any

import pytest

from agents import shown as module
from agents.harness.policy.context import Context
from agents.harness.policy.decide import decide
from agents.harness.policy.load import load_policy
from agents.harness.ports import ToolCall
from agents.shown import shown


@pytest.fixture
def context(tmp_path: Path) -> Context:
    policy = load_policy()
    (tmp_path / "work").mkdir()
    return Context(
        workspace=tmp_path / "work",
        sandbox="bubblewrap",
        rules=policy.rules,
        policy_version=policy.version,
    )


def show(context: Context, tool: str, **fields: Any) -> dict[str, Any]:
    call = ToolCall("call", tool, fields)
    return shown(call, decide(call, context), context.files)


def lines(diff: dict[str, Any]) -> list[tuple[str, str]]:
    return [(line[0], line[3]) for hunk in diff["hunks"] for line in hunk["lines"]]


def test_a_script_is_shown_with_its_content(context: Context) -> None:
    (context.workspace / "a.sh").write_text("#!/bin/sh\nrm -rf \u202e/srv\n")
    found = show(context, "bash", command="sh a.sh")
    (script,) = found["scripts"]
    assert script["path"] == str(context.workspace / "a.sh")
    assert (script["text"], script["lines"], script["cut"]) == (
        "#!/bin/sh\nrm -rf \u202e/srv\n",
        2,
        0,
    )


def test_the_script_behind_a_link_is_the_one_that_is_shown(
    context: Context, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere.sh").write_text("echo elsewhere\n")
    (context.workspace / "a.sh").symlink_to(tmp_path / "elsewhere.sh")
    (script,) = show(context, "bash", command="sh a.sh")["scripts"]
    assert script["path"] == str(tmp_path / "elsewhere.sh")
    assert script["text"] == "echo elsewhere\n"


def test_long_and_binary_scripts_say_so(context: Context) -> None:
    (context.workspace / "long.sh").write_text("echo x\n" * 10_000)
    (context.workspace / "binary.sh").write_bytes(b"\x7fELF\0\0")
    found = show(context, "bash", command="sh long.sh; sh binary.sh")["scripts"]
    assert [len(found[0]["text"]), found[0]["lines"], found[0]["cut"]] == [20_000, 10_000, 50_000]
    assert "binary" in found[1]["problem"].lower()


def test_many_scripts_stay_within_bounds(context: Context) -> None:
    names = [f"s{number}.sh" for number in range(12)]
    for name in names:
        (context.workspace / name).write_text("echo x\n" * 2_000)
    found = show(context, "bash", command="; ".join(f"sh {name}" for name in names))["scripts"]
    assert sum(len(script.get("text", "")) for script in found) <= module.ALL_CHARACTERS
    assert found[-1]["problem"] == "4 more are not shown."


def test_the_files_that_a_call_names_are_shown_but_for_secrets(context: Context) -> None:
    (context.workspace / "req.txt").write_text("evil==1\n")
    (context.workspace / ".env").write_text("KEY=verysecret\n")
    found = show(context, "bash", command="pip install -r req.txt -c .env")
    parts = {Path(part["path"]).name: part for part in found["files"]}
    assert parts["req.txt"]["text"] == "evil==1\n"
    assert "secrets" in parts[".env"]["problem"]
    assert "verysecret" not in str(found)


def test_a_script_that_is_longer_than_what_is_read_says_so(context: Context) -> None:
    (context.workspace / "big.sh").write_text("#" * 1_100_000 + "\necho end\n")
    (script,) = show(context, "bash", command="nohup sh big.sh")["scripts"]
    assert script["is_longer"]
    assert len(script["text"]) == module.SCRIPT_CHARACTERS


def test_a_script_that_changes_in_this_moment_is_not_shown_as_what_was_judged(
    context: Context,
) -> None:
    (context.workspace / "a.sh").write_text("echo one\n")
    call = ToolCall("call", "bash", {"command": "sh a.sh"})
    verdict = decide(call, context)
    (context.workspace / "a.sh").write_text("echo two\n")
    (script,) = shown(call, verdict, context.files)["scripts"]
    assert "text" not in script
    assert "asked again" in script["problem"]


def test_a_write_is_shown_against_the_file_as_it_is_now(context: Context) -> None:
    (context.workspace / ".npmrc").write_text("one\ntwo\nthree\n")
    diff = show(context, "write_file", path=".npmrc", content="one\n2\nthree\nfour\n")["diff"]
    assert (diff["additions"], diff["deletions"], diff["is_new"]) == (2, 1, False)
    changed = [line for line in lines(diff) if line[0] != " "]
    assert changed == [("-", "two"), ("+", "2"), ("+", "four")]


def test_a_new_file_is_shown_as_new(context: Context) -> None:
    diff = show(context, "write_file", path=".npmrc", content="one\n")["diff"]
    assert (diff["is_new"], diff["additions"]) == (True, 1)


def test_an_edit_is_shown_with_the_lines_around_it(context: Context) -> None:
    (context.workspace / ".npmrc").write_text("".join(f"line {n}\r\n" for n in range(20)))
    diff = show(context, "edit_file", path=".npmrc", old="line 9\nline 10", new="ten")["diff"]
    assert (diff["additions"], diff["deletions"]) == (1, 2)
    assert diff["hunks"][0]["old_start"] == 7


def test_an_edit_that_finds_nothing_says_so(context: Context) -> None:
    (context.workspace / ".npmrc").write_text("one\n")
    diff = show(context, "edit_file", path=".npmrc", old="two", new="three")["diff"]
    assert "not in the file now" in diff["problem"]


def test_what_is_in_a_secret_file_is_not_shown(context: Context) -> None:
    (context.workspace / ".env").write_text("KEY=verysecret\n")
    found = show(context, "write_file", path=".env", content="KEY=other\n")
    assert "verysecret" not in str(found)
    assert "secrets" in found["diff"]["problem"]


def test_a_file_that_is_too_long_to_be_compared_says_so(context: Context) -> None:
    text = "".join(f"{number}\n" for number in range(7_000))
    diff = show(context, "write_file", path=".npmrc", content=text)["diff"]
    assert diff["problem"].startswith("Too long to be compared")


def test_a_character_that_looks_like_a_line_end_stays_in_its_line(context: Context) -> None:
    diff = show(context, "write_file", path=".npmrc", content="a\u2028b\x0cc\n")["diff"]
    assert ("+", "a\u2028b\x0cc") in lines(diff)
