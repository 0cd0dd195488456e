"""Where the prompt cache may end: at most four `cache_control` marks on a request.

The marks are put on copies when a request is sent; the history itself never carries them, because
they move and it must not change.
"""

from collections.abc import Sequence

from agents.harness.ports import Json, ModelRequest

MARK = {"type": "ephemeral"}
# The API looks back 20 blocks from a mark for an earlier entry; two are kept in reserve.
LOOK_BACK = 18


def body(request: ModelRequest, *, is_cached: bool) -> Json:
    """The request as JSON; marks on the last tool, the system, the last block, a long turn."""
    if not is_cached:
        parts = (request.system, request.tools, request.messages)
    else:
        parts = (
            _marked(request.system),
            _marked(request.tools),
            _marked_messages(request.messages),
        )
    system, tools, messages = (list(part) for part in parts)
    fields: Json = {"max_tokens": request.max_tokens, "messages": messages}
    if system:
        fields["system"] = system
    if tools:
        fields["tools"] = tools
    return fields


def _marked(blocks: Sequence[Json]) -> list[Json]:
    """A copy with a mark on the last block."""
    return [*blocks[:-1], {**blocks[-1], "cache_control": MARK}] if blocks else []


def _marked_messages(messages: Sequence[Json]) -> list[Json]:
    marked = list(messages)
    marked[-1] = _marked_message(messages[-1])
    added = sum(len(message["content"]) for message in messages[-2:])
    if len(messages) > 2 and added > LOOK_BACK:  # noqa: PLR2004  prompt, reply, results
        # The last block of the request before this one had the mark, so this finds its entry.
        marked[-3] = _marked_message(messages[-3])
    return marked


def _marked_message(message: Json) -> Json:
    if message["role"] != "user":  # after pause_turn; its last block may be one that takes no mark
        return message
    return {**message, "content": _marked(message["content"])}
