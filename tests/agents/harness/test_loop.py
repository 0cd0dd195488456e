"""A run ends with a report, a clear failure or a wait, and goes on from its journal."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.harness import prompts
from agents.harness.errors import FailureKind, FatalError, TransientError, Waiting
from agents.harness.journals import MemoryJournal
from agents.harness.limits import STOP_AT
from agents.harness.ports import EntryKind, EntryStatus, Json, ModelRequest, Outcome, Reply, Usage
from agents.harness.reminders import MOST_CUT_OFF, MOST_PAUSES
from agents.harness.retries import RetryPolicy
from agents.harness.testing import ListSink, all_texts, calls, reply, text
from tests.agents.harness.conftest import Rig
from tests.messages_rules import check_body

DONE = calls(("report_result", {"status": "done", "summary": "Fixed."}), start=99)


def many(tool: str, count: int) -> list[Reply]:
    """Replies that call `tool` with another input each."""
    return [calls((tool, {"x": str(number)}), start=number) for number in range(count)]


async def test_a_run_ends_with_the_report_of_the_agent(rig: Rig) -> None:
    failed = {"status": "failed", "summary": "No access.", "remaining": "All of it."}
    outcome = await rig.run(calls(("look", {"x": "a"})), calls(("report_result", failed)))
    assert outcome == Outcome("failed", "No access.", "All of it.")
    assert rig.calls.of("look") == [{"x": "a"}]
    assert len(rig.turns) == 2


async def test_a_run_that_has_commands_has_the_next_one_prepared(rig: Rig) -> None:
    await rig.run(calls(("act", {"x": "a"})), DONE)
    assert rig.shell.times_ready == 0
    await rig.journal.add(EntryKind.NOTE, {"source": "review", "text": "Run it."})
    again = calls(("report_result", {"status": "done", "summary": "Ran."}), start=200)
    await rig.run(calls(("bash", {"x": "b"}), start=100), again)
    rig.threads.shutdown()
    assert rig.shell.times_ready == 1  # while the model thought about what the command had shown


async def test_a_run_that_is_taken_up_amid_commands_has_the_next_one_prepared(rig: Rig) -> None:
    await rig.run(calls(("bash", {"x": "a"})), DONE)
    before = rig.shell.times_ready
    assert await rig.run() == Outcome("done", "Fixed.")
    rig.threads.shutdown()
    assert rig.shell.times_ready == before + 1


async def test_taking_up_a_run_that_has_ended_gives_its_report_again(rig: Rig) -> None:
    await rig.run(DONE)
    assert await rig.run() == Outcome("done", "Fixed.")
    assert rig.model.requests == []


@pytest.mark.parametrize("source", ["verification", "review"])
async def test_what_is_said_after_the_report_makes_the_run_go_on(rig: Rig, source: str) -> None:
    await rig.run(DONE)
    await rig.journal.add(EntryKind.NOTE, {"source": source, "text": "The check failed."})
    again = calls(("report_result", {"status": "done", "summary": "Now."}), start=100)
    assert await rig.run(again) == Outcome("done", "Now.")
    assert all_texts(rig.model.requests[0].messages)[-1] == "The check failed."


async def test_silence_gets_one_reminder_and_then_ends_the_run(rig: Rig) -> None:
    outcome = await rig.run(text("I think."), text("That is all."))
    assert outcome == Outcome("silent", "That is all.")
    assert rig.notes() == [("reminder", prompts.REPORT_REMINDER)]
    assert await rig.run() == outcome


async def test_an_agent_that_works_after_its_reminder_may_be_reminded_again(rig: Rig) -> None:
    script = [text("Hm."), calls(("look", {})), text("Well."), DONE]
    assert (await rig.run(*script)).status == "done"
    assert len(list(rig.notes())) == 2


async def test_an_empty_reply_counts_as_silence(rig: Rig) -> None:
    outcome = await rig.run(reply([], stop_reason="end_turn"), text(" "))
    assert outcome.status == "silent"


async def test_the_system_prompt_the_tools_and_the_task_are_frozen(rig: Rig) -> None:
    with pytest.raises(Waiting):
        await rig.run(*[TransientError("x")] * 3)
    first = rig.model.requests[0]
    rig.tools.pop("put")
    await rig.run(DONE, prompt="Another task", system=prompts.system_blocks("Another"))
    assert (first.system, first.tools, first.messages) == (
        rig.model.requests[0].system,
        rig.model.requests[0].tools,
        rig.model.requests[0].messages,
    )


async def test_what_a_person_says_reaches_the_model_with_the_next_request(rig: Rig) -> None:
    rig.steering.messages = ["Use tabs."]
    await rig.run(calls(("look", {})), DONE)
    assert "Use tabs." in all_texts(rig.model.requests[0].messages)[-1]
    assert len(all_texts(rig.model.requests[1].messages)) == 3


class TestStopReasons:
    async def test_a_cut_off_call_is_asked_for_again_with_a_larger_limit(self, rig: Rig) -> None:
        cut = calls(("act", {"x": "half"}), stop_reason="max_tokens")
        await rig.run(cut, cut, DONE, max_tokens=1000)
        requests = rig.model.requests
        assert [request.max_tokens for request in requests] == [1000, 2000, 4000]
        assert requests[0].messages == requests[2].messages
        assert rig.calls.of("act") == []

    async def test_after_two_larger_tries_the_model_is_told_to_write_less(self, rig: Rig) -> None:
        cut = calls(("act", {"x": "half"}), stop_reason="max_tokens")
        await rig.run(cut, cut, cut, DONE, max_tokens=1000)
        assert rig.model.requests[3].max_tokens == 1000
        assert rig.notes() == [("reminder", prompts.SMALLER_PIECES)]
        assert rig.calls.of("act") == []

    async def test_thinking_up_to_the_limit_is_given_more_room(self, rig: Rig) -> None:
        thought = {"type": "thinking", "thinking": "Hm...", "signature": "s"}
        await rig.run(reply([thought], stop_reason="max_tokens"), DONE, max_tokens=1000)
        assert [request.max_tokens for request in rig.model.requests] == [1000, 2000]

    async def test_the_limit_never_exceeds_what_the_model_can_write(self, rig: Rig) -> None:
        cut = calls(("act", {"x": "half"}), stop_reason="max_tokens")
        await rig.run(cut, cut, DONE, max_tokens=1000, most_tokens=1500)
        assert [request.max_tokens for request in rig.model.requests] == [1000, 1500, 1000]

    async def test_a_cut_off_text_is_continued(self, rig: Rig) -> None:
        await rig.run(text("I was", stop_reason="max_tokens"), DONE)
        assert all_texts(rig.model.requests[1].messages)[1:] == ["I was", prompts.CONTINUE]

    async def test_texts_that_are_always_cut_off_end_the_run(self, rig: Rig) -> None:
        cut = text("words", stop_reason="max_tokens")
        with pytest.raises(FatalError) as error:
            await rig.run(*[cut] * (MOST_CUT_OFF + 1))
        assert error.value.kind is FailureKind.LOOP

    async def test_a_paused_turn_is_sent_back_as_it_is(self, rig: Rig) -> None:
        await rig.run(text("Wait.", stop_reason="pause_turn"), DONE)
        assert rig.model.requests[1].messages[-1]["role"] == "assistant"
        assert rig.notes() == []

    async def test_a_model_that_pauses_for_ever_ends_the_run(self, rig: Rig) -> None:
        with pytest.raises(FatalError):
            await rig.run(*[text("Wait.", stop_reason="pause_turn")] * (MOST_PAUSES + 1))

    @pytest.mark.parametrize(
        ("reason", "kind"),
        [
            ("refusal", FailureKind.POLICY),
            ("model_context_window_exceeded", FailureKind.CONTEXT_OVERFLOW),
            ("something_new", FailureKind.INTERNAL),
        ],
    )
    async def test_some_stop_reasons_fail_the_run(
        self, rig: Rig, reason: str, kind: FailureKind
    ) -> None:
        with pytest.raises(FatalError) as error:
            await rig.run(calls(("act", {}), stop_reason=reason))
        assert error.value.kind is kind
        assert rig.calls.of("act") == []
        assert list(rig.journal.usages.values()) == [Usage(10, 5)]  # it was paid for

    async def test_no_stop_reason_is_a_cut_stream_and_tried_again(self, rig: Rig) -> None:
        await rig.run(reply(calls(("act", {})).content, stop_reason=None), DONE)  # F-05
        assert rig.model.requests[0] == rig.model.requests[1]
        assert rig.calls.of("act") == []

    async def test_calls_of_a_turn_that_did_not_stop_for_them_are_not_run(self, rig: Rig) -> None:
        await rig.run(calls(("act", {}), stop_reason="end_turn"), DONE)
        assert rig.calls.of("act") == []
        assert rig.results()[0] == ("Not run: the turn ended with end_turn.", True)


class TestRepetition:
    async def test_three_identical_calls_with_one_result_get_a_nudge(self, rig: Rig) -> None:
        again = [calls(("look", {"x": "a"}), start=number) for number in range(3)]
        await rig.run(*again, DONE)
        assert rig.notes() == [("loop", prompts.repeated("look", 3))]

    async def test_the_tenth_ends_the_run(self, rig: Rig) -> None:  # F-14
        again = [calls(("look", {"x": "a"}), start=number) for number in range(STOP_AT)]
        with pytest.raises(FatalError) as error:
            await rig.run(*again)
        assert error.value.kind is FailureKind.LOOP
        assert len(rig.calls.of("look")) == STOP_AT

    async def test_two_calls_that_take_turns_are_a_loop_too(self, rig: Rig) -> None:
        again = [calls(("look", {"x": str(n % 2)}), start=n) for n in range(2 * STOP_AT)]
        with pytest.raises(FatalError):
            await rig.run(*again)

    async def test_twelve_different_reads_are_work(self, rig: Rig) -> None:
        await rig.run(*many("look", 12), DONE)
        assert rig.notes() == []

    async def test_the_same_command_with_a_new_result_is_progress(self, rig: Rig) -> None:
        results = iter(range(100))
        rig.tools["tick"] = rig.calls.tool("tick", lambda _, __: f"{next(results)} tests failed")
        await rig.run(*[calls(("tick", {}), start=number) for number in range(12)], DONE)
        assert rig.notes() == []

    async def test_a_result_that_differs_only_in_its_time_is_the_same(self, rig: Rig) -> None:
        results = iter(range(100))
        rig.tools["tick"] = rig.calls.tool("tick", lambda _, __: f"failed in 0.{next(results)}s")
        await rig.run(*[calls(("tick", {}), start=number) for number in range(3)], DONE)
        assert [source for source, _ in rig.notes()] == ["loop"]

    async def test_news_from_outside_starts_the_count_anew(self, rig: Rig) -> None:
        def steered(_request: ModelRequest) -> Reply:
            rig.steering.messages = ["Try once more."]
            return calls(("look", {"x": "a"}), start=2)

        script = [calls(("look", {"x": "a"}), start=n) for n in (1, 3, 4)]
        await rig.run(script[0], steered, *script[1:], DONE)
        assert [source for source, _ in rig.notes()] == ["steering"]

    async def test_the_turns_of_a_run_are_limited(self, rig: Rig) -> None:
        with pytest.raises(FatalError) as error:
            await rig.run(*many("look", 4), max_turns=3)
        assert (error.value.kind, len(rig.model.requests)) == (FailureKind.BUDGET, 3)


class TestModelErrors:
    async def test_a_passing_fault_is_tried_again_at_once_and_counted(self, rig: Rig) -> None:
        await rig.run(TransientError("cut"), TransientError("cut"), DONE)
        kinds = [entry.status for entry in rig.journal.entries if entry.kind == "model"]
        assert kinds == [EntryStatus.UNKNOWN, EntryStatus.UNKNOWN, EntryStatus.DONE]

    async def test_more_of_them_put_the_run_aside_for_longer_and_longer(self, rig: Rig) -> None:
        waits = []
        for _ in range(3):
            with pytest.raises(Waiting) as waiting:
                await rig.run(*[TransientError("cut")] * 3)
            assert waiting.value.reason == "retry"
            waits.append(waiting.value.seconds)
        assert 4 <= waits[0] < waits[1] < waits[2] <= 400

    async def test_too_many_in_a_row_fail_the_run(self, rig: Rig) -> None:
        policy = RetryPolicy(short_waits=(), most_failures=2)
        with pytest.raises(Waiting):
            await rig.run(TransientError("cut"), retry=policy)
        with pytest.raises(FatalError) as error:
            await rig.run(TransientError("cut"), retry=policy)
        assert error.value.kind is FailureKind.INFRASTRUCTURE

    async def test_rate_limits_wait_as_asked_and_never_fail_the_run(self, rig: Rig) -> None:
        policy = RetryPolicy(most_failures=2)
        limited = TransientError("429", retry_after_seconds=30, rate_limited=True)
        for _ in range(5):
            with pytest.raises(Waiting) as waiting:
                await rig.run(limited, retry=policy)
            assert 30 <= waiting.value.seconds < 40
            assert waiting.value.rate_limited
        assert (await rig.run(DONE, retry=policy)).status == "done"

    async def test_an_absurd_retry_after_is_capped(self, rig: Rig) -> None:
        with pytest.raises(Waiting) as waiting:
            await rig.run(TransientError("429", retry_after_seconds=4e9, rate_limited=True))
        assert waiting.value.seconds < 5000

    async def test_a_fatal_error_fails_the_run_and_closes_its_step(self, rig: Rig) -> None:
        with pytest.raises(FatalError):
            await rig.run(FatalError("no", kind=FailureKind.AUTH))
        assert rig.journal.entries[-1].status is EntryStatus.UNKNOWN

    async def test_a_model_call_that_was_lost_with_its_worker_is_made_again(self, rig: Rig) -> None:
        await rig.journal.add(EntryKind.START, {"system": [], "tools": [], "prompt": "x"})
        await rig.journal.begin(EntryKind.MODEL, {"messages": 1})
        await rig.run(DONE)
        assert rig.journal.entries[1].status is EntryStatus.UNKNOWN
        assert len(rig.model.requests) == 1


class TestTodo:
    ITEMS = [{"text": "Look", "status": "done"}, {"text": "Fix", "status": "pending"}]

    async def test_a_changed_list_is_shown_once_and_then_every_fifth_turn(self, rig: Rig) -> None:
        await rig.run(calls(("todo_write", {"items": self.ITEMS})), *many("look", 11), DONE)
        shown = [
            len(request.messages)
            for request in rig.model.requests
            if all_texts(request.messages)[-1].startswith("Your to-do list:\n[x] Look\n[ ] Fix")
        ]
        assert shown == [3, 13, 23]
        assert rig.sink.of("todo") == [{"items": self.ITEMS}]

    async def test_the_list_is_there_again_when_the_run_is_taken_up(self, rig: Rig) -> None:
        with pytest.raises(Waiting):
            await rig.run(calls(("todo_write", {"items": self.ITEMS})), *[TransientError("x")] * 3)
        await rig.run(DONE)
        assert rig.context.todo == self.ITEMS


class Crash(BaseException):
    """The worker dies here."""


class DyingJournal(MemoryJournal):
    """Dies before or after a write, as often as it is told; what was written stays."""

    def __init__(self, dies: Callable[[], bool]) -> None:
        super().__init__()
        self._dies = dies

    async def begin(self, kind: EntryKind, request: Json) -> int:
        return int(await self._dying(super().begin(kind, request)))

    async def add(self, kind: EntryKind, request: Json, *, response: Json | None = None) -> int:
        return int(await self._dying(super().add(kind, request, response=response)))

    async def finish(self, *args: Any, **options: Any) -> None:
        await self._dying(super().finish(*args, **options))

    async def _dying(self, write: Any) -> Any:
        if self._dies():
            write.close()
            raise Crash
        result = await write
        if self._dies():
            raise Crash
        return result


class ForgetfulModel:
    """Plays whole tasks: what it says depends on the request alone, so a lost reply comes again."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.requests: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, *, on_text: Callable[[str, str], None]) -> Reply:
        self.requests.append(request)
        if random.Random(f"{self.seed} {len(self.requests)}").random() < 0.1:  # noqa: S311
            raise TransientError("cut")
        dice = random.Random(f"{self.seed} {request.messages}")  # noqa: S311  a test's own dice
        turn = len(request.messages)
        if turn > 12:
            return calls(("report_result", {"status": "done", "summary": "x"}), start=turn * 10)
        tools = dice.choices(["look", "act", "put", "fail", "nonsense"], k=dice.randint(1, 4))
        uses = [(tool, {"x": f"{turn} {place}"}) for place, tool in enumerate(tools)]
        content = list(calls(*uses, start=turn * 10).content)
        if dice.random() < 0.5:
            content.insert(0, {"type": "text", "text": dice.choice(["", " ", "Hm."])})
        if dice.random() < 0.1:
            return text(dice.choice(["", "Well."]), stop_reason="end_turn")
        reason = "max_tokens" if dice.random() < 0.1 else "tool_use"
        return reply(content, stop_reason=reason)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10**9))
def test_a_run_that_dies_anywhere_goes_on_without_repeating_or_rewriting(
    rig: Rig, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311  a test's own dice
    rig.journal = DyingJournal(lambda: dice.random() < 0.06)
    rig.calls.started.clear()
    rig.sink = ListSink()
    rig.__post_init__()
    model = ForgetfulModel(seed)
    asyncio.run(_run_to_the_end(rig, model))
    before: list[tuple[str, Any]] = []
    for request in model.requests:
        check_body(
            {"model": "claude-x", "max_tokens": 1, "messages": request.messages},
            is_new_version=True,
        )
        blocks = [(m["role"], block) for m in request.messages for block in m["content"]]
        assert blocks[: len(before)] == before
        before = blocks
    acted = [arguments["x"] for arguments in rig.calls.of("act")]
    assert len(acted) == len(set(acted))


async def _run_to_the_end(rig: Rig, model: ForgetfulModel) -> None:
    for _ in range(500):
        try:
            outcome = await rig.run(model=model)
        except (Crash, Waiting):
            continue
        assert outcome.status in {"done", "silent"}
        return
    raise AssertionError("the run never ended")
