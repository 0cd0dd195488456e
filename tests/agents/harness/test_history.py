"""The conversation made from a journal is one that the API takes, and it only ever grows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.harness import history
from agents.harness.history import NO_OUTPUT, NO_RESULT, HistoryError, validate
from agents.harness.ports import Entry, EntryKind, EntryStatus
from tests.messages_rules import check_body

DONE, STARTED, UNKNOWN = EntryStatus.DONE, EntryStatus.STARTED, EntryStatus.UNKNOWN
USE = {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


class Diary:
    """A journal under construction."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._add(EntryKind.START, {"system": [], "tools": [], "prompt": "The task"})

    def model(self, *content: Any, stop_reason: str = "tool_use", **more: Any) -> "Diary":
        response = {"content": list(content), "stop_reason": stop_reason, **more}
        return self._add(EntryKind.MODEL, {"messages": 1}, response)

    def failed(self) -> "Diary":
        response = {"error": "overloaded", "kind": "transient"}
        return self._add(EntryKind.MODEL, {"messages": 1}, response, status=UNKNOWN)

    def tool(self, call_id: str, words: str | None, *, is_error: bool = False) -> "Diary":
        """`words` None: it was started and has no result yet."""
        response = None if words is None else {"text": words, "is_error": is_error, "details": {}}
        status = STARTED if words is None else DONE
        request = {"id": call_id, "tool": "ls", "input": {}}
        return self._add(EntryKind.TOOL, request, response, status=status)

    def note(self, words: str, source: str = "reminder") -> "Diary":
        return self._add(EntryKind.NOTE, {"source": source, "text": words})

    def steered(self) -> "Diary":
        return self.note("Hurry up.", "steering")

    def messages(self) -> list[dict[str, Any]]:
        return history.read(self.entries).messages

    def _add(
        self, kind: EntryKind, request: Any, response: Any = None, *, status: EntryStatus = DONE
    ) -> "Diary":
        self.entries.append(Entry(len(self.entries) + 1, kind, status, request, response))
        return self


def test_a_new_run_begins_with_its_prompt() -> None:
    assert Diary().messages() == [{"role": "user", "content": [text("The task")]}]


def test_results_come_first_and_in_the_order_of_the_calls_then_the_notes() -> None:
    diary = Diary().model(USE, {**USE, "id": "t2"})
    diary.note("Hurry up.").tool("t2", "second").tool("t1", "first", is_error=True)
    assert diary.messages()[-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "t1", "content": "first", "is_error": True},
        {"type": "tool_result", "tool_use_id": "t2", "content": "second"},
        text("Hurry up."),
    ]


def test_a_call_without_a_result_is_answered_as_interrupted() -> None:  # F-01
    diary = Diary().model(USE, {**USE, "id": "t2"}).tool("t1", None)
    results = diary.messages()[-1]["content"]
    assert [result["content"] for result in results] == [NO_RESULT, NO_RESULT]


def test_a_result_without_a_call_is_left_out() -> None:  # F-01
    diary = Diary().model(USE).tool("t1", "x").tool("t9", "stray")
    assert len(diary.messages()[-1]["content"]) == 1


def test_the_same_id_in_two_turns_does_not_mix_their_results() -> None:
    diary = Diary().model(USE).tool("t1", "one").model({**USE, "id": "t2"}).tool("t2", "two")
    assert [message["content"][0].get("content") for message in diary.messages()[2::2]] == [
        "one",
        "two",
    ]


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_blank_texts_are_left_out(blank: str) -> None:  # F-02
    diary = Diary().model(text(blank), USE).tool("t1", blank).note(blank)
    assert diary.messages()[1:] == [
        {"role": "assistant", "content": [USE]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": NO_OUTPUT}],
        },
    ]


def test_a_turn_without_anything_in_it_is_left_out_and_the_user_goes_on() -> None:  # F-02
    diary = Diary().model(text(" "), stop_reason="end_turn").note("Go on.")
    assert diary.messages() == [{"role": "user", "content": [text("The task"), text("Go on.")]}]


def test_thinking_is_sent_back_as_it_came() -> None:  # F-03
    diary = Diary().model(THOUGHT, USE).tool("t1", "x")
    assert diary.messages()[1]["content"] == [THOUGHT, USE]


def test_a_call_that_was_cut_off_is_left_out() -> None:  # F-04
    diary = Diary().model(text("I write."), USE, stop_reason="max_tokens").note("Smaller.")
    conversation = history.read(diary.entries)
    assert conversation.messages[1]["content"] == [text("I write.")]
    assert conversation.turns[0].lost_calls


def test_thinking_before_a_cut_off_call_is_left_out_with_it() -> None:
    diary = Diary().model(THOUGHT, USE, stop_reason="max_tokens").note("Smaller.")
    assert [message["role"] for message in diary.messages()] == ["user"]


def test_failed_and_dropped_replies_are_no_part_of_the_conversation() -> None:
    diary = Diary().failed().model(USE, stop_reason="max_tokens", dropped=True)
    assert diary.messages() == Diary().messages()


def test_a_paused_turn_is_sent_back_alone_and_then_continued() -> None:
    diary = Diary().model(text("One"), stop_reason="pause_turn")
    assert diary.messages()[-1]["role"] == "assistant"
    diary.model(text("Two"), stop_reason="end_turn").note("Go on.")
    assert diary.messages()[1]["content"] == [text("One"), text("Two")]


def test_ids_that_the_api_refuses_are_replaced() -> None:
    blocks = [{**USE, "id": name} for name in ("t1", "t1", "", "a b")]
    ids = [block["id"] for block in history.normalize(blocks, used_ids=frozenset({"call"}))]
    assert ids == ["t1", "t1_2", "call_2", "call_3"]


RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
BAD: dict[str, list[tuple[str, list[Any]]]] = {
    "nothing": [],
    "the assistant first": [("assistant", [text("x")])],
    "two users": [("user", [text("x")]), ("user", [text("x")])],
    "an empty message": [("user", [])],
    "an empty text": [("user", [text(" ")])],
    "no result": [("user", [text("x")]), ("assistant", [USE]), ("user", [text("x")])],
    "a stray result": [("user", [RESULT])],
    "a late result": [("user", [text("x")]), ("assistant", [USE]), ("user", [text("x"), RESULT])],
    "an assistant's result": [("user", [text("x")]), ("assistant", [RESULT]), ("user", [RESULT])],
    "an id twice": [("user", [text("x")]), ("assistant", [USE, USE]), ("user", [RESULT, RESULT])],
    "thinking at the end": [("user", [text("x")]), ("assistant", [THOUGHT]), ("user", [text("x")])],
    "the assistant last": [("user", [text("x")]), ("assistant", [text("x")])],
    "an open call last": [("user", [text("x")]), ("assistant", [USE])],
}


@pytest.mark.parametrize("name", BAD)
def test_a_message_list_that_the_api_would_refuse_is_a_bug(name: str) -> None:
    with pytest.raises(HistoryError):
        validate([{"role": role, "content": content} for role, content in BAD[name]])


words = st.sampled_from(["", " ", "Hello", "Grüße"])
plain_blocks = st.one_of(words.map(text), st.just(THOUGHT))


@st.composite
def journals(draw: st.DrawFn) -> tuple[list[Entry], list[int]]:
    """A journal as runs with crashes leave it, and the lengths at which it made a request."""
    diary, requests, number = Diary(), [1], 0
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            diary = draw(st.sampled_from([diary.failed, diary.steered]))()
            requests.append(len(diary.entries))
        content = draw(st.lists(plain_blocks, max_size=3))
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            content.append({**USE, "id": f"t{number}"})
        reason = draw(st.sampled_from(["tool_use", "end_turn", "max_tokens"]))
        dropped = {"dropped": True} if draw(st.integers(0, 5)) == 0 else {}
        diary.model(*content, stop_reason=reason, **dropped)
        turn = history.read(diary.entries).last
        if not dropped and turn is not None:
            for call in draw(st.permutations(turn.calls)):
                diary.tool(call.id, draw(words), is_error=draw(st.booleans()))
            if not turn.calls or draw(st.booleans()):
                diary.note("Go on.")
        requests.append(len(diary.entries))
    return diary.entries, requests


@given(journals())
def test_each_request_repeats_the_one_before_it_and_the_api_takes_it(
    journal: tuple[list[Entry], list[int]],
) -> None:
    entries, requests = journal
    before: list[tuple[str, Any]] = []
    for length in requests:
        messages = history.read(entries[:length]).messages
        body = {"model": "claude-x", "max_tokens": 1, "messages": messages}
        check_body(body, is_new_version=True)
        blocks = [(message["role"], block) for message in messages for block in message["content"]]
        assert blocks[: len(before)] == before
        before = blocks
