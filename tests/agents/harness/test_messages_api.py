"""The stand-in refuses what the real API refuses, and plays its scripts to whoever asks."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

from tests.messages_api import MessagesApi, is_extension
from tests.messages_rules import signature
from tests.messages_script import call, from_file, nothing, rate_limited, report, say, think

NEW = {"authorization": "Bearer k", "anthropic-version": "2026-10-21"}
OLD = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
USE = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as api:
        api.script("", [], then=say("Yes."))
        yield api


def post(api: MessagesApi, headers: dict[str, str] = NEW, **fields: Any) -> tuple[int, Any]:
    body = {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": [user("Hi")], **fields}
    request = HttpRequest(  # noqa: S310  our own loopback address
        f"{api.base_url}/v1/messages",
        json.dumps({name: value for name, value in body.items() if value is not None}).encode(),
        {"content-type": "application/json", **headers},
    )
    try:
        with urlopen(request) as response:  # noqa: S310  our own loopback address
            return response.status, json.loads(response.read())
    except HTTPError as error:
        with error:
            return error.code, json.loads(error.read())["error"]["message"]


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if content[0].__class__ is str else [*content]}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [*content]}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


@pytest.mark.parametrize("headers", [NEW, OLD], ids=["bearer", "x-api-key"])
def test_either_credential_is_taken_with_its_version(
    api: MessagesApi, headers: dict[str, str]
) -> None:
    assert post(api, headers)[0] == 200


MARK = {"cache_control": {"type": "ephemeral"}}
TOOL = {"name": "ls", "description": "List.", "input_schema": {"type": "object"}}
REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "no credential": (401, {"headers": {"anthropic-version": "2026-10-21"}}),
    "both credentials": (401, {"headers": {**NEW, **OLD}}),
    "no version": (400, {"headers": {"authorization": "Bearer k"}}),
    "a version of the other kind": (400, {"headers": {**NEW, "anthropic-version": "2023-06-01"}}),
    "temperature in the new version": (400, {"temperature": 0.5}),
    "no max_tokens": (400, {"max_tokens": None}),
    "an unknown field": (400, {"nonsense": 1}),
    "an unknown model": (404, {"model": "gpt-9"}),
    "no messages": (400, {"messages": []}),
    "the assistant first": (400, {"messages": [assistant(text("Hi")), user("Hi")]}),
    "two users in a row": (400, {"messages": [user("Hi"), user("Hi")]}),
    "a prefill": (400, {"messages": [user("Hi"), assistant(text("I"))]}),
    "an empty message": (400, {"messages": [user("Hi"), assistant(), user("Hi")]}),
    "an empty text": (400, {"messages": [user(text(""))]}),
    "a blank text": (400, {"messages": [user("Hi"), assistant(text(" \n")), user("Hi")]}),
    "a tool_use without a result": (400, {"messages": [user("Hi"), assistant(USE), user("Hi")]}),
    "a result without a tool_use": (
        400,
        {"messages": [user("Hi"), assistant(text("x")), user(RESULT)]},
    ),
    "a result behind a text": (
        400,
        {"messages": [user("Hi"), assistant(USE), user(text("x"), RESULT)]},
    ),
    "two results": (400, {"messages": [user("Hi"), assistant(USE), user(RESULT, RESULT)]}),
    "an open tool_use at the end": (400, {"messages": [user("Hi"), assistant(USE)]}),
    "an id twice": (
        400,
        {"messages": [user("Hi"), assistant(USE), user(RESULT), assistant(USE), user(RESULT)]},
    ),
    "a tool without a schema": (400, {"tools": [{"name": "ls"}]}),
    "a bad schema": (400, {"tools": [{**TOOL, "input_schema": {"type": "object", "required": 1}}]}),
    "a tool twice": (400, {"tools": [TOOL, TOOL]}),
    "five cache marks": (400, {"messages": [user(*[text("x", **MARK)] * 5)]}),
    "citations of the user": (400, {"messages": [user(text("x", citations=[{}]))]}),
    "thinking at the end": (
        400,
        {
            "messages": [
                user("Hi"),
                assistant({"type": "thinking", "thinking": "", "signature": "x"}),
                user("Hi"),
            ]
        },
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_api_refuses_is_refused(api: MessagesApi, name: str) -> None:
    status, fields = REFUSED[name]
    answer = post(api, **fields)
    assert answer[0] == status, answer
    assert len(api.refusals) == 1


def test_a_body_over_32_mb_is_refused(api: MessagesApi) -> None:
    assert post(api, messages=[user("x" * 33 * 1024 * 1024)])[0] == 413


def test_thinking_is_bound_to_what_came_before_it(api: MessagesApi) -> None:
    api.script("Hm", [think("I wonder").say("Fine.")], then=say("Yes."))
    _, message = post(api, messages=[user("Hm")])
    later = [assistant(*message["content"]), user("And?")]
    assert post(api, messages=[user("Hm"), *later])[0] == 200
    status, why = post(api, messages=[user("Hm!"), *later])
    assert (status, "different conversation" in why) == (400, True)
    assert post(api, messages=[user("Hm"), *later], system="New.")[0] == 400
    assert signature("a", "b") != signature("a", "c")


def test_two_conversations_play_the_same_script_each_for_itself(api: MessagesApi) -> None:
    api.script("task", [call("ls", path="."), say("Seen."), report()])
    seen = []
    for name in ("task A", "task B", "task A"):  # the third is a new attempt of the first
        messages = [user(name)]
        for _ in range(3):
            _, message = post(api, messages=messages)
            seen.append(message["stop_reason"])
            uses = [block for block in message["content"] if block["type"] == "tool_use"]
            results = [{**RESULT, "tool_use_id": use["id"], "content": name} for use in uses]
            messages += [assistant(*message["content"]), user(*results or [text("Go on.")])]
    assert seen == ["tool_use", "end_turn", "tool_use"] * 3


def test_a_request_that_is_sent_again_gets_the_same_answer_again(api: MessagesApi) -> None:
    api.script("task", [say("One."), say("Two.")])
    answers = [post(api, messages=[user("task")])[1]["content"] for _ in range(2)]
    assert answers[0] == answers[1] == [text("One.")]


def test_a_fault_is_answered_once_and_then_the_script_goes_on(api: MessagesApi) -> None:
    api.script("task", [rate_limited(7), nothing(), say("One.")])
    assert post(api, messages=[user("task")])[0] == 429
    assert post(api, messages=[user("task")])[1]["content"] == []
    assert post(api, messages=[user(text("task"), text("Go on."))])[1]["content"] == [text("One.")]


def test_a_disturbance_hits_whoever_asks_next(api: MessagesApi) -> None:
    api.disturb(rate_limited())
    assert [post(api)[0], post(api)[0]] == [429, 200]


def test_a_turn_may_answer_what_it_was_told(api: MessagesApi) -> None:
    api.script("task", [lambda request: say(request.last_text.upper())])
    assert post(api, messages=[user("task")])[1]["content"] == [text("TASK")]


def test_a_conversation_without_a_script_is_refused_and_remembered(api: MessagesApi) -> None:
    api.script("task", [say("One.")])
    post(api, messages=[user("task")])
    status, why = post(api, messages=[user("task"), assistant(text("One.")), user("More")])
    assert (status, "no script" in why, len(api.unscripted)) == (400, True, 1)


def test_the_cache_reads_what_an_earlier_request_has_marked(api: MessagesApi) -> None:
    first = [user(text("x" * 8000, **MARK))]
    _, wrote = post(api, messages=first)
    more = [user(text("x" * 8000)), assistant(text("Yes.")), user(text("y", **MARK))]
    _, read = post(api, messages=more)
    assert wrote["usage"]["cache_creation_input_tokens"] > 2000
    assert read["usage"]["cache_read_input_tokens"] == wrote["usage"]["cache_creation_input_tokens"]
    assert read["usage"]["cache_creation_input_tokens"] < 50
    assert is_extension(api.requests[0], api.requests[1])
    assert not is_extension(api.requests[1], api.requests[0])


def test_a_script_can_be_written_in_a_file() -> None:
    scripts = from_file(
        [
            {
                "match": "bug",
                "turns": [
                    {"fault": {"status": 429, "type": "rate_limit_error", "retry_after": "2"}},
                    {"say": "I look", "calls": [{"read_file": {"path": "a.py"}}]},
                    {"report": {"status": "done", "summary": "Fixed"}},
                ],
                "then": {"say": "Bye."},
            }
        ]
    )
    with MessagesApi(scripts=scripts, key="right") as api:
        assert post(api, messages=[user("the bug")])[0] == 401
        right = {**NEW, "authorization": "Bearer right"}
        assert post(api, right, messages=[user("the bug")])[0] == 429
        _, message = post(api, right, messages=[user("the bug")])
        assert [block["type"] for block in message["content"]] == ["text", "tool_use"]
