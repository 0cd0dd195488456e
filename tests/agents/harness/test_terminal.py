"""One task in a terminal: the real tools, policy, sandbox and SDK, and a person at the keyboard."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.harness.__main__ import main
from agents.harness.errors import Waiting
from agents.harness.journals import FileJournal, MemoryJournal
from agents.harness.ports import EntryKind, EntryStatus, Tier, ToolCall
from agents.harness.terminal import TerminalGate
from agents.harness.testing import calls, verdict
from tests.agents.harness.conftest import Rig
from tests.messages_api import MessagesApi
from tests.messages_script import call, failing, report

Program = Callable[..., int]


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi(key="right") as api:
        yield api


@pytest.fixture
def program(api: MessagesApi, tmp_path: Path) -> Program:
    """Run the program on a task in an empty folder."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    environment = {"ANTHROPIC_API_KEY": "right", "ANTHROPIC_BASE_URL": api.base_url}

    def run(*arguments: str) -> int:
        return main(["greet", "--workspace", str(workspace), *arguments], environment)

    return run


def test_a_task_is_done_and_checked(
    api: MessagesApi, program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write = call("write_file", path="a.txt", content="hello\n")
    api.script("greet", [failing(), write.call("list_files", path="."), report("done", "Greeted.")])
    assert program("--check", "grep -q hello a.txt", "--yes") == 0
    assert (tmp_path / "workspace" / "a.txt").read_text() == "hello\n"
    printed = capsys.readouterr().out
    assert "> write_file a.txt" in printed
    assert "Done: Greeted." in printed
    assert " USD)" in printed


def test_a_failed_check_goes_back_to_the_agent_twice(api: MessagesApi, program: Program) -> None:
    api.script("greet", [], then=report("done", "I am sure."))
    assert program("--check", "test -f missing") == 1
    assert len(api.requests) == 3
    assert "`test -f missing` failed (exit code 1)" in api.requests[-1].last_text


def test_without_a_keyboard_a_question_is_answered_as_expired(
    api: MessagesApi, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    api.script("greet", [call("bash", command="curl http://example.org"), report("failed", "No.")])
    assert program() == 1
    assert "nobody answered before it expired" in api.requests[-1].last_text


def test_a_run_goes_on_from_its_file(api: MessagesApi, program: Program, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    api.script("greet", [call("list_files", path="."), report("done", "Greeted.")])
    assert program("--journal", str(file)) == 0
    whole = file.read_bytes()
    file.write_bytes(whole[: whole.index(b'"list_files"')])  # a crash in the middle of a line
    assert program("--journal", str(file)) == 0
    assert len(api.requests) == 4


def test_what_is_missing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["x", "--workspace", str(tmp_path)], {}) == 2
    assert main(["x", "--workspace", str(tmp_path / "no")], {"ANTHROPIC_API_KEY": "x"}) == 2
    assert "ANTHROPIC_API_KEY" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "ran", "told"),
    [
        (["y"], [{"x": "a"}], "did a"),
        (["what?", "n", "Too risky."], [], "denied this, it was not run: Too risky."),
        (["e", '{"x": "b"}'], [{"x": "b"}], "did b"),
        (["e", "nonsense", "y"], [{"x": "a"}], "did a"),
    ],
)
async def test_the_person_at_the_keyboard_decides(
    rig: Rig, typed: list[str], ran: list[object], told: str
) -> None:
    answers = iter(typed)
    rules = {"act": Tier.ASK}
    facts = {"cwd": "/w", "sandbox": "none", "policy": "1"}
    gate = TerminalGate(
        rig.journal,
        lambda call: verdict(rules.get(call.tool, Tier.ALLOW), call, **facts),
        ask=lambda _question: next(answers),
    )
    with pytest.raises(Waiting):
        await rig.run(calls(("act", {"x": "a"})), gate=gate)
    done = calls(("report_result", {"status": "done", "summary": "Fixed."}), start=99)
    await rig.run(done, gate=gate)
    assert rig.calls.of("act") == ran
    assert told in rig.results()[0][0]
    assert next(answers, None) is None


async def test_a_question_that_the_program_was_killed_over_is_asked_again() -> None:
    journal = MemoryJournal()
    journal.ask({"id": "1", "tool": "act", "input": {}})
    gate = TerminalGate(journal, lambda call: verdict(Tier.ASK, call), ask=lambda _question: "y")
    await gate.answer_waiting()
    answer = journal.entries[0].answer
    assert answer is not None
    assert answer.digest == verdict(Tier.ASK, ToolCall("1", "act", {})).digest


async def test_a_file_journal_gives_back_what_was_written(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "run.jsonl")
    await journal.add(EntryKind.START, {"prompt": "x"})
    seq = await journal.begin(EntryKind.TOOL, {"id": "1"})
    await journal.finish(seq, {"text": "y"}, status=EntryStatus.UNKNOWN)
    gate = TerminalGate(journal, lambda call: verdict(Tier.ASK, call), ask=None)
    journal.ask({"id": "2", "tool": "act", "input": {}})
    await gate.answer_waiting()
    journal.close()
    again = FileJournal(tmp_path / "run.jsonl")
    again.close()
    assert again.entries == journal.entries
