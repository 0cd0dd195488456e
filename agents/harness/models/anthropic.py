"""A model behind the Messages API, by Anthropic's SDK or any server that speaks the same."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from agents.harness.costs import Prices
from agents.harness.errors import FailureKind, FatalError, TransientError
from agents.harness.models import caching, failures
from agents.harness.models.streams import Assembly
from agents.harness.ports import ModelRequest, Reply
from agents.harness.unicode import clean

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic._streaming import ServerSentEvent

# Who takes which: the newest API version with a bearer token, or the older one with x-api-key,
# which some compatible servers ask for.
HeaderForm = Literal["bearer", "x-api-key"]
OLDER_VERSION = "2023-06-01"
CONNECT_SECONDS = 5.0
# A small local server reads a long prompt for minutes before its first byte.
FIRST_EVENT_SECONDS = 600.0
IDLE_SECONDS = 120.0  # between two events; the API sends a ping at least every few seconds
WHOLE_REPLY_SECONDS = 3600.0


class AnthropicModel:
    """One model with one credential. Keep it, it holds the connections; one event loop only."""

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str | None = None,
        headers: HeaderForm = "bearer",
        is_cached: bool = True,
        extra: Mapping[str, Any] | None = None,
        prices: Prices | None = None,
        first_event_seconds: float = FIRST_EVENT_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """`extra` goes into each request as it is; `is_cached` sets the prompt-cache marks."""
        self._model = model
        self._api_key = api_key
        self._base_url = base_url
        self._headers = headers
        self._is_cached = is_cached
        self._extra = dict(extra or {})
        self._prices = prices or Prices.load()
        self._first_event_seconds = first_event_seconds
        self._idle_seconds = idle_seconds
        self._client: AsyncAnthropic | None = None
        self._connecting = asyncio.Lock()

    async def reply(self, request: ModelRequest, *, on_text: Callable[[str, str], None]) -> Reply:
        """See `Model.reply`. Nothing is retried here."""
        body = {
            **self._extra,
            "model": self._model,
            "stream": True,
            **caching.body(request, is_cached=self._is_cached),
        }
        assembly = Assembly(on_text)
        try:
            async with asyncio.timeout(WHOLE_REPLY_SECONDS), self._events(body) as events:
                await self._read(events, assembly)
        except TimeoutError as error:
            raise TransientError("The model's server has gone silent.") from error
        reply = assembly.reply()
        model = reply.model or self._model
        usage = self._prices.book(reply.usage, model)
        return Reply(clean(reply.content), reply.stop_reason, usage, model, reply.stop_details)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _read(self, events: "AsyncIterator[ServerSentEvent]", assembly: Assembly) -> None:
        seconds = self._first_event_seconds
        while True:
            async with asyncio.timeout(seconds):
                event = await anext(events, None)
            if event is None:
                return
            seconds = self._idle_seconds
            if event.event == "ping" or not event.data:
                continue
            try:
                assembly.feed(json.loads(event.data))
            except (ValueError, KeyError, TypeError) as error:
                raise TransientError("The model's server sent a broken event.") from error

    @asynccontextmanager
    async def _events(
        self, body: dict[str, Any]
    ) -> "AsyncIterator[AsyncIterator[ServerSentEvent]]":
        """Send the request and give the raw events of its answer, with every error translated."""
        client = await self._connected()
        # Already imported by _connected, in a thread; see there.
        import anthropic
        import httpx2

        try:
            stream = await client.post(
                "/v1/messages",
                # Bytes: the SDK would copy the whole history block by block.
                content=_encoded(body),
                options={"headers": {"content-type": "application/json"}},
                cast_to=object,
                stream=True,
                stream_cls=anthropic.AsyncStream[object],
            )
            async with stream:
                yield stream.raw_events(stream.response)
        except anthropic.APIStatusError as error:
            raise failures.from_status(
                error.status_code,
                self._safe(error.api_message or error.message),
                code=error.error_code or "",
                headers=error.response.headers,
            ) from error
        except (anthropic.APIConnectionError, httpx2.TransportError) as error:
            cause = error.__cause__ or error
            if isinstance(cause, httpx2.UnsupportedProtocol):
                raise _bad_address(self._base_url) from error
            raise TransientError(self._safe(f"No answer from the model: {cause!r}")) from error

    async def _connected(self) -> "AsyncAnthropic":
        async with self._connecting:
            if self._client is None:
                # The import takes about a second of CPU, which the event loop cannot spare.
                self._client = await asyncio.to_thread(self._connect)
            return self._client

    def _connect(self) -> "AsyncAnthropic":
        import httpx2
        from anthropic import AsyncAnthropic, Omit

        headers: dict[str, Any] = {}
        if self._headers == "x-api-key":
            headers = {
                "x-api-key": self._api_key,
                "anthropic-version": OLDER_VERSION,
                "Authorization": Omit(),
            }
        try:
            return AsyncAnthropic(
                api_key=self._api_key,
                base_url=self._base_url,
                max_retries=0,
                timeout=httpx2.Timeout(self._first_event_seconds, connect=CONNECT_SECONDS),
                default_headers=headers,
                open_telemetry=False,
            )
        except httpx2.InvalidURL as error:
            raise _bad_address(self._base_url) from error

    def _safe(self, text: str) -> str:
        return text.replace(self._api_key, "[redacted]") if self._api_key else text


def _encoded(body: dict[str, Any]) -> bytes:
    # Keys are sorted: PostgreSQL's jsonb does not keep their order, so a run that is continued
    # from the database would otherwise not repeat its earlier requests byte for byte.
    try:
        return json.dumps(body, ensure_ascii=False, sort_keys=True).encode()
    except UnicodeEncodeError:  # a lone surrogate in a note of somebody else
        return json.dumps(clean(body), ensure_ascii=False, sort_keys=True).encode()


def _bad_address(base_url: str | None) -> FatalError:
    return FatalError(
        f"The address of the model's server is not a URL with http or https: {base_url}",
        kind=FailureKind.INFRASTRUCTURE,
    )
