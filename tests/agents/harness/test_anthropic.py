"""The real SDK against the strict stand-in: whole replies, every fault, and the cache."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.harness.errors import FailureKind, FatalError, TransientError, Waiting
from agents.harness.journals import MemoryJournal
from agents.harness.models.anthropic import AnthropicModel
from agents.harness.ports import Entry, ModelRequest, Outcome, Reply, Usage
from tests.agents.harness.conftest import Rig
from tests.messages_api import MessagesApi, assert_append_only
from tests.messages_script import (
    Turn,
    broken,
    broken_call,
    call,
    cut,
    cut_off_call,
    error_event,
    failing,
    nothing,
    overloaded,
    rate_limited,
    refused,
    report,
    say,
    silent,
    think,
    unfinished,
)

KEY = "sk-ant-secret"
MODEL = "claude-sonnet-5-5"
MakeModel = Callable[..., AnthropicModel]


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi(key=KEY) as api:
        yield api


@pytest.fixture
async def connect(api: MessagesApi) -> AsyncIterator[MakeModel]:
    models: list[AnthropicModel] = []

    def make(model: str = MODEL, **options: Any) -> AnthropicModel:
        options = {"api_key": KEY, "base_url": api.base_url, **options}
        models.append(AnthropicModel(model, **options))
        return models[-1]

    yield make
    for model in models:
        await model.close()


def request(prompt: str = "task", **more: Any) -> ModelRequest:
    messages = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    fields = {"system": [], "tools": [], "messages": messages, "max_tokens": 100, **more}
    return ModelRequest(**fields)


async def ask(model: AnthropicModel) -> tuple[Reply, list[tuple[str, str]]]:
    heard: list[tuple[str, str]] = []
    reply = await model.reply(request(), on_text=lambda kind, text: heard.append((kind, text)))
    return reply, heard


@pytest.mark.parametrize("headers", ["bearer", "x-api-key"])
async def test_a_reply_comes_whole_whichever_credential_is_sent(
    api: MessagesApi, connect: MakeModel, headers: str
) -> None:
    turn = think("I wonder.").say("Grüße").call("bash", command="ls", deep={"a": [1, None]})
    api.script("task", [turn.slowly(0.0001, characters=3)])
    reply, heard = await ask(connect(headers=headers))
    thought, text, use = reply.content
    assert (thought["thinking"], bool(thought["signature"])) == ("I wonder.", True)
    assert text == {"type": "text", "text": "Grüße"}
    assert use["input"] == {"command": "ls", "deep": {"a": [1, None]}}
    assert (reply.stop_reason, reply.model) == ("tool_use", MODEL)
    assert "".join(part for kind, part in heard if kind == "text") == "Grüße"
    assert "".join(part for kind, part in heard if kind == "thinking") == "I wonder."


async def test_usage_is_counted_and_priced(api: MessagesApi, connect: MakeModel) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 100, "cache_read_input_tokens": 10_000}
    api.script("task", [say("x").costs(**usage, cache_creation_input_tokens=2000)])
    reply, _ = await ask(connect())
    # 1000 x 2 + 100 x 10 + 10000 x 0.1 + 2000 x 2.5 micro-dollars
    assert reply.usage == Usage(1000, 100, 10_000, 2000, cost_microusd=9000)


FAULTS: dict[str, tuple[Turn, type[Exception], Any]] = {
    "rate limit": (rate_limited(7), TransientError, 7.0),
    "rate limit without a time": (rate_limited(None), TransientError, None),
    "overloaded": (overloaded(), TransientError, None),
    "server error": (failing(500), TransientError, None),
    "gateway time-out": (failing(504), TransientError, None),
    "conflict": (refused(409, "conflict_error", "x"), TransientError, None),
    "cut": (cut(say("x" * 50)), TransientError, None),
    "no message_stop": (unfinished(say("x")), TransientError, None),
    "no message_stop in a call": (unfinished(call("bash", command="ls")), TransientError, None),
    "silence from the start": (silent(), TransientError, None),
    "silence in the middle": (silent(say("x")), TransientError, None),
    "broken event": (broken(say("x")), TransientError, None),
    "overloaded in the stream": (error_event("overloaded_error"), TransientError, None),
    "api error in the stream": (error_event("api_error"), TransientError, None),
    "broken JSON in a call": (broken_call("bash", '{"command": "l'), TransientError, None),
    "no object in a call": (broken_call("bash", '["ls"]'), TransientError, None),
    "bad request": (refused(400, "invalid_request_error", "x"), FatalError, FailureKind.INTERNAL),
    "bad key": (refused(401, "authentication_error", "x"), FatalError, FailureKind.AUTH),
    "not allowed": (refused(403, "permission_error", "x"), FatalError, FailureKind.AUTH),
    "no money": (refused(402, "billing_error", "x"), FatalError, FailureKind.QUOTA),
    "no credit": (
        refused(400, "invalid_request_error", "Your credit balance is too low."),
        FatalError,
        FailureKind.QUOTA,
    ),
    "own spend limit": (
        refused(429, "rate_limit_error", "x", code="enforced_spend_limit_reached"),
        FatalError,
        FailureKind.QUOTA,
    ),
    "unknown model": (
        refused(404, "not_found_error", "model: x"),
        FatalError,
        FailureKind.INFRASTRUCTURE,
    ),
    "too long": (
        refused(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
        FatalError,
        FailureKind.CONTEXT_OVERFLOW,
    ),
    "too large": (refused(413, "request_too_large", "x"), FatalError, FailureKind.CONTEXT_OVERFLOW),
    "bad request in the stream": (
        error_event("invalid_request_error"),
        FatalError,
        FailureKind.INTERNAL,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_every_fault_says_what_to_do(api: MessagesApi, connect: MakeModel, name: str) -> None:
    turn, kind, detail = FAULTS[name]
    api.script("task", [turn])
    patience = {"first_event_seconds": 0.3, "idle_seconds": 0.3} if "silence" in name else {}
    with pytest.raises(kind) as error:
        await ask(connect(**patience))
    if isinstance(error.value, TransientError):
        assert error.value.retry_after_seconds == detail
        assert error.value.rate_limited == ("rate" in name or "overloaded" in name)
    elif isinstance(error.value, FatalError):
        assert error.value.kind is detail
    assert len(api.requests) == 1


async def test_a_call_cut_off_at_the_limit_is_marked_by_its_stop_reason(
    api: MessagesApi, connect: MakeModel
) -> None:
    api.script("task", [cut_off_call("bash", '{"command": "rm -rf /tmp/x", "timeo')])
    reply, _ = await ask(connect())
    assert (reply.stop_reason, reply.content[0]["input"]) == ("max_tokens", {})


async def test_a_wrong_key_fails_and_is_shown_nowhere(
    api: MessagesApi, connect: MakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = refused(401, "authentication_error", "no such key: sk-ant-wrong")
    api.disturb(echo)
    with pytest.raises(FatalError) as error:
        await ask(connect(api_key="sk-ant-wrong"))
    assert "sk-ant-wrong" not in f"{error.value}{caplog.text}"


@pytest.mark.parametrize(
    ("url", "kind"),
    [("http://127.0.0.1:9", TransientError), ("localhost:9", FatalError), ("//", FatalError)],
)
async def test_a_server_that_is_not_there_is_not_a_bug(
    connect: MakeModel, url: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        await ask(connect(base_url=url))


async def test_text_that_utf_8_does_not_take_is_cleaned(
    api: MessagesApi, connect: MakeModel
) -> None:
    api.script("task", [say("a\0b\ud800c")])
    reply, _ = await ask(connect())
    assert reply.content[0]["text"] == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
    api.script("Grüße \N{REPLACEMENT CHARACTER}", [say("Yes.")])
    sent = request("Grüße \ud800")
    assert (await connect().reply(sent, on_text=lambda *_: None)).content[0]["text"] == "Yes."


async def test_a_cancelled_reply_lets_go_of_the_connection(
    api: MessagesApi, connect: MakeModel
) -> None:
    api.script("task", [silent(say("x"))])
    heard = asyncio.Event()
    model = connect()
    task = asyncio.create_task(model.reply(request(), on_text=lambda *_: heard.set()))
    async with asyncio.timeout(50):  # the first one imports the SDK
        await heard.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


RunIt = Callable[..., Awaitable[Outcome]]


@pytest.fixture
def run(rig: Rig, connect: MakeModel) -> RunIt:
    """Run the rig's task with the real model."""

    async def run(**options: Any) -> Outcome:
        return await rig.run(model=connect(**options))

    return run


async def test_a_whole_run_breaks_no_rule_and_only_ever_grows(
    api: MessagesApi, rig: Rig, run: RunIt
) -> None:
    turns: list[Turn] = [
        cut(say("I begin")),
        think("First").say(" ").call("look", x="1").call("look", x="2"),
        cut_off_call("act", '{"x": "hal'),
        think("Again").call("act", x="half").call("fail").call("nonsense"),
        overloaded(),
        nothing(),
        error_event("overloaded_error"),
        call("todo_write", items=[{"text": "End", "status": "pending"}]),
        say("I think that is all."),
        call("look", x="3").stops("end_turn"),
        report(),
    ]
    api.script("The task", turns)
    rig.steering.messages = ["Be quick."]
    for _ in range(2):
        with pytest.raises(Waiting):  # the two overloads
            await run()
    assert await run() == Outcome("done", "Done.")
    assert api.refusals == []
    assert_append_only(api.requests)


async def test_thirty_turns_read_nearly_everything_from_the_cache(
    api: MessagesApi, rig: Rig, run: RunIt
) -> None:
    long = "x" * 1000
    many = call("look", x="0")
    for number in range(30):
        many = many.call("look", x=f"{number}")
    api.script(
        "The task",
        [*[call("look", x=f"{number}{long}") for number in range(14)], many]
        + [call("look", x=f"{number}{long}") for number in range(15, 29)]
        + [report()],
    )
    await run()
    read = sum(usage.cache_read_tokens for usage in rig.journal.usages.values())
    fresh = sum(usage.input_tokens for usage in list(rig.journal.usages.values())[3:])
    written = sum(usage.cache_write_tokens for usage in rig.journal.usages.values())
    last = list(rig.journal.usages.values())[-1]
    # Each token is written once, also in the turn with more blocks than the cache looks back.
    assert written <= last.cache_read_tokens + last.cache_write_tokens
    assert fresh == 0
    assert read / (read + written) > 0.9
    assert api.refusals == []


class UnorderedJournal(MemoryJournal):
    """Gives back its JSON with the keys in another order, as jsonb does."""

    async def load(self) -> list[Entry]:
        return [
            replace(entry, request=_unordered(entry.request), response=_unordered(entry.response))
            for entry in self.entries
        ]


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unordered(value[key]) for key in sorted(value, key=lambda key: key[::-1])}
    return [_unordered(item) for item in value] if isinstance(value, list) else value


async def test_a_run_continued_from_a_database_repeats_its_requests_byte_for_byte(
    api: MessagesApi, rig: Rig, run: RunIt
) -> None:
    use = think("Hm.").call("nonsense", zeta=1, alpha={"b": 1, "a": 2})
    api.script("The task", [use, overloaded(), think("Ah.").call("look", x="1"), report()])
    rig.journal = UnorderedJournal()
    with pytest.raises(Waiting):
        await run()
    await run()
    assert api.refusals == []
    assert_append_only([*api.requests])


async def test_a_server_that_caches_nothing_is_sent_no_marks(api: MessagesApi, run: RunIt) -> None:
    api.script("The task", [report()])
    await run(is_cached=False)
    assert b"cache_control" not in api.requests[0].raw


async def test_what_the_profile_adds_is_in_each_request(api: MessagesApi, run: RunIt) -> None:
    api.script("The task", [report()])
    await run(extra={"thinking": {"type": "adaptive"}})
    assert api.requests[0].body["thinking"] == {"type": "adaptive"}


def test_the_sdk_is_imported_only_when_it_is_used() -> None:
    source = Path(__file__).parents[3] / "agents" / "harness"
    eager = [
        path.name
        for path in source.rglob("*.py")
        for line in path.read_text().splitlines()
        if line.startswith(("import anthropic", "from anthropic", "import httpx2"))
    ]
    assert eager == []
