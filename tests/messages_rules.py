"""What the Messages API refuses, by its documentation and by what it was seen to answer.

Written without a look at the product's own validator: two readings of the rules check each other.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

Json = dict[str, Any]

MOST_BYTES = 32 * 1024 * 1024
MOST_BREAKPOINTS = 4
MOST_OUTPUT = 128_000
# The credential and the version go together: the 2.x SDKs, and everything before them.
NEW_VERSION, OLD_VERSION = "2026-10-21", "2023-06-01"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
FIELDS = frozenset(
    {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "metadata"}
    | {"stop_sequences", "thinking", "output_config", "service_tier", "context_management"}
    | {"container", "mcp_servers"}
)
SAMPLING = frozenset({"temperature", "top_p", "top_k"})
USER_BLOCKS = frozenset({"text", "image", "document", "tool_result", "search_result"})
THINKING = frozenset({"thinking", "redacted_thinking"})
ASSISTANT_BLOCKS = frozenset({"text", "tool_use"}) | THINKING


class Refused(Exception):  # noqa: N818  it is an answer of the server
    """The request is answered with an error."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


def check_headers(headers: Mapping[str, str], *, key: str | None) -> None:
    """Refuse a request without a credential, or with a version that does not go with it."""
    bearer = headers.get("authorization", "")
    api_key = headers.get("x-api-key", "")
    if bool(bearer) == bool(api_key):
        raise Refused(401, "authentication_error", "exactly one credential is needed")
    given, version = (bearer, NEW_VERSION) if bearer else (api_key, OLD_VERSION)
    if bearer and not bearer.startswith("Bearer "):
        raise Refused(401, "authentication_error", "invalid authorization header")
    if key is not None and given.removeprefix("Bearer ") != key:
        raise Refused(401, "authentication_error", "invalid x-api-key")
    if headers.get("anthropic-version") != version:
        raise invalid(f"anthropic-version: {version} is needed with this credential")
    if not headers.get("content-type", "").startswith("application/json"):
        raise invalid("content-type: must be application/json")


def check_body(body: Json, *, is_new_version: bool, may_end_with_assistant: bool = False) -> None:
    """Refuse what the API refuses in the body of POST /v1/messages."""
    _check_fields(body, is_new_version=is_new_version)
    _check_tools(body.get("tools", []))
    _check_system(body.get("system", []))
    messages = body["messages"]
    if not isinstance(messages, list) or not messages:
        raise invalid("messages: at least one message is required")
    for index, message in enumerate(messages):
        _check_message(index, message)
    _check_pairs(messages)
    if messages[-1]["role"] == "assistant" and not may_end_with_assistant:
        raise invalid("This model does not support assistant message prefill.")
    _check_cache_control(body)


def invalid(message: str) -> Refused:
    """The common refusal."""
    return Refused(400, "invalid_request_error", message)


def blocks(body: Json) -> Iterator[tuple[str, Json]]:
    """Every block of a request in the order in which it is read: (where, block)."""
    yield from (("tools", tool) for tool in body.get("tools", []))
    system = body.get("system", [])
    yield from (("system", block) for block in (_as_blocks(system) if system else []))
    for message in body["messages"]:
        yield from ((message["role"], block) for block in _as_blocks(message["content"]))


@dataclass(frozen=True)
class Prefix:
    """A request up to and with one of its blocks, whatever the cache marks are."""

    digest: str
    tokens: int  # plausible: four characters each


def prefixes(body: Json) -> list[Prefix]:
    """One for each block, in order."""
    digest = hashlib.sha256(str(body["model"]).encode())
    found, tokens = [], 0
    for where, block in blocks(body):
        plain = {key: value for key, value in block.items() if key != "cache_control"}
        text = json.dumps(plain)
        digest.update(f"{where}:{text}\n".encode())
        tokens += len(text) // 4 + 1
        found.append(Prefix(digest.hexdigest(), tokens))
    return found


def check_thinking(body: Json, known: Sequence[Prefix]) -> None:
    """Refuse a thinking block whose signature was made for another conversation.

    `known` are the prefixes of `body`.
    """
    before = hashlib.sha256(body["model"].encode()).hexdigest()
    previous = ""
    for (where, block), prefix in zip(blocks(body), known, strict=True):
        if where == "assistant" and previous != "assistant":
            start = before  # what the model was shown when it wrote this turn
        if block.get("type") == "thinking" and block.get("signature") != signature(
            start, block.get("thinking", "")
        ):
            raise invalid("Invalid `signature`: thinking is bound to a different conversation.")
        before, previous = prefix.digest, where


def signature(prefix_hash: str, thinking: str) -> str:
    """The signature of a thinking block in the turn that follows `prefix_hash`."""
    return hashlib.sha256(f"signed {prefix_hash} {thinking}".encode()).hexdigest()


def _check_fields(body: Json, *, is_new_version: bool) -> None:
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise invalid(f"{name}: Field required")
    sampling = SAMPLING & body.keys()
    if sampling and is_new_version:
        raise invalid(f"{sorted(sampling)[0]}: not supported")
    unknown = body.keys() - FIELDS - SAMPLING
    if unknown:
        raise invalid(f"{sorted(unknown)[0]}: Extra inputs are not permitted")
    most = body["max_tokens"]
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MOST_OUTPUT:
        raise invalid(f"max_tokens: must be from 1 to {MOST_OUTPUT}")
    if not str(body["model"]).startswith("claude-"):
        raise Refused(404, "not_found_error", f"model: {body['model']}")


def _check_tools(tools: Any) -> None:
    names = []
    for index, tool in enumerate(tools):
        where = f"tools.{index}"
        if not NAME.fullmatch(tool.get("name", "")):
            raise invalid(f"{where}.name: String should match pattern")
        extra = tool.keys() - {"name", "description", "input_schema", "cache_control", "type"}
        if extra:
            raise invalid(f"{where}.{sorted(extra)[0]}: Extra inputs are not permitted")
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise invalid(f"{where}.input_schema.type: Input should be 'object'")
        if not _is_schema(json.dumps(schema, sort_keys=True)):
            raise invalid(f"{where}.input_schema: JSON schema is invalid")
        names.append(tool["name"])
    if len(set(names)) != len(names):
        raise invalid("tools: Tool names must be unique.")


@lru_cache(maxsize=256)
def _is_schema(text: str) -> bool:
    """Return whether it is a JSON schema. Each request has the same nine, and a look takes 4 ms."""
    try:
        Draft202012Validator.check_schema(json.loads(text))
    except SchemaError:
        return False
    return True


def _check_system(system: Any) -> None:
    for index, block in enumerate(_as_blocks(system) if system else []):
        if block.get("type") != "text" or not block.get("text", "").strip():
            raise invalid(f"system.{index}: text content blocks must be non-empty")


def _check_message(index: int, message: Json) -> None:
    where = f"messages.{index}"
    if message.keys() != {"role", "content"}:
        raise invalid(f"{where}: must have role and content, and nothing else")
    role = message["role"]
    if role != ("user", "assistant")[index % 2]:
        raise invalid(f"{where}: roles must alternate, beginning with user")
    content = _as_blocks(message["content"])
    if not content:
        raise invalid(f"{where}: content must be non-empty")
    allowed = USER_BLOCKS if role == "user" else ASSISTANT_BLOCKS
    for number, block in enumerate(content):
        place = f"{where}.content.{number}"
        if block.get("type") not in allowed:
            raise invalid(f"{place}: {block.get('type')} is not allowed in a {role} message")
        if role == "user" and block["type"] == "text" and block.get("citations"):
            raise invalid(f"{place}.citations: not permitted")
        _check_block(place, block)
    if role == "assistant" and content[-1]["type"] in THINKING:
        raise invalid(f"{where}: the final block must not be thinking")


def _check_block(place: str, block: Json) -> None:
    kind = block["type"]
    if kind == "text":
        _check_text(place, block)
    elif kind == "tool_use":
        if not NAME.fullmatch(str(block.get("id"))) or not block.get("name"):
            raise invalid(f"{place}.tool_use.id: String should match pattern")
        if not isinstance(block.get("input"), dict):
            raise invalid(f"{place}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        _check_result(place, block)
    elif kind == "thinking" and not block.get("signature"):
        raise invalid(f"{place}.thinking.signature: Field required")


def _check_result(place: str, block: Json) -> None:
    inner = block.get("content", "")
    for number, part in enumerate(_as_blocks(inner) if inner else []):
        if part.get("type") == "text" and not isinstance(inner, str):
            _check_text(f"{place}.content.{number}", part)
    if not isinstance(block.get("is_error", False), bool):
        raise invalid(f"{place}.is_error: Input should be a valid boolean")


def _check_text(place: str, block: Json) -> None:
    text = block.get("text")
    if not isinstance(text, str) or not text.strip():
        raise invalid(f"{place}: text content blocks must contain non-whitespace text")


def _check_pairs(messages: list[Json]) -> None:
    """Each tool_use is answered in the very next message, first thing, and only once."""
    used: set[str] = set()
    asked: list[str] = []
    for number, message in enumerate(messages):
        content = _as_blocks(message["content"])
        if message["role"] == "user":
            _check_answers(f"messages.{number}", content, asked)
            asked = []
        else:
            asked = [block["id"] for block in content if block["type"] == "tool_use"]
            if used & set(asked) or len(set(asked)) != len(asked):
                raise invalid(f"messages.{number}: `tool_use` ids must be unique")
            used.update(asked)
    if asked:
        raise invalid("`tool_use` ids were found without `tool_result` blocks immediately after")


def _check_answers(where: str, content: list[Json], asked: list[str]) -> None:
    results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    if set(results) - set(asked):
        raise invalid(f"{where}: unexpected `tool_use_id` found in `tool_result`")
    if set(asked) - set(results):
        raise invalid(f"{where}: `tool_use` ids were found without `tool_result` blocks")
    if len(results) != len(set(results)):
        raise invalid(f"{where}: each tool_use must have a single result")
    if any(block["type"] != "tool_result" for block in content[: len(results)]):
        raise invalid(f"{where}: tool_result blocks must come first")


def _check_cache_control(body: Json) -> None:
    marked = [block for _, block in blocks(body) if block.get("cache_control")]
    if len(marked) > MOST_BREAKPOINTS:
        raise invalid(f"A maximum of 4 blocks with cache_control may be provided: {len(marked)}")
    for block in marked:
        if block.get("type") in THINKING:
            raise invalid("cache_control cannot be set for thinking blocks")
        if block.get("type") == "text" and not block["text"]:
            raise invalid("cache_control cannot be set for empty text blocks")
        if block["cache_control"].get("type") != "ephemeral":
            raise invalid("cache_control.type: Input should be 'ephemeral'")


def _as_blocks(content: Any) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content)
