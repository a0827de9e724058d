"""Reads one response into a draft: whole or as a stream, within limits of size and of the first token's time.

Sits between the HTTP client and what was said. It tells failures from replies and builds no reply.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

from podium.workers.chat.draft import Draft
from podium.workers.chat.events import Events
from podium.workers.chat.failure import Failures
from podium.workers.chat.provider_error import complaint_in, read_complaint

_DONE = b"[DONE]"
_EVENTS = "text/event-stream"
_JSON = "application/json"
_MOST = 16 << 20
"""Bytes of a whole reply, of one event, and characters of a streamed text, when unpacked."""
_MOST_STREAMED = 256 << 20
"""Bytes of a stream. Each event repeats some 300 bytes around a token or so."""
_MOST_COMPLAINED = 64 << 10
_COMPLAINING_S = 2.0
"""For the body of a refusal: its status is worth more than its words."""
_CLOSING_S = 5.0
"""After finish_reason, for the counts and the end of the stream."""
_RELEASING_S = 0.1
"""After [DONE], for the end of the response: a connection that is read to its end can be used again."""


class Receiving:
    """One attempt's reply as it comes.

    Args:
        failures: makes the errors.
        streamed: whether events were asked for.
        first_token_timeout: seconds from now until a streamed reply must have begun; None: no limit.
        tell: given the text as it comes.
    """

    def __init__(
        self,
        failures: Failures,
        *,
        streamed: bool,
        first_token_timeout: float | None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.draft = Draft()
        self.first_token_s: float | None = None
        """Seconds until the first text or thought of a stream."""
        self.patience = asyncio.timeout(first_token_timeout)
        """To be entered around all of it: until the first token, and again from the finish_reason on."""
        self._failures = failures
        self._streamed = streamed
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()

    @property
    def complete(self) -> bool:
        """Whether the answer is whole, whatever may still be missing around it."""
        return self.draft.finish is not None

    async def read(self, response: aiohttp.ClientResponse) -> None:
        """Read `response` into the draft.

        Raises:
            WorkerError: it is not a reply.
            aiohttp.ClientError, OSError: the connection failed.
        """
        if 300 <= response.status < 400:
            raise self._failures.redirect(response.status, response.headers.get("Location", ""))
        if not 200 <= response.status < 300:
            content = await _complained(response)
            raise self._failures.status(response.status, response.headers, read_complaint(content))
        first = await response.content.readany()
        if self._is_streamed(response, first):
            await self._read_events(response, first)
        else:
            await self._read_whole(response, first)

    def _is_streamed(self, response: aiohttp.ClientResponse, first: bytes) -> bool:
        """Whether a body that begins so is a stream: not every server does as it is asked, or says what it does."""
        start = first.lstrip()[:1]
        if start == b"<":
            return False
        if response.content_type == _EVENTS:
            return True
        return self._streamed and start not in (b"{", b"[") and bool(start or response.content_type != _JSON)

    async def _read_whole(self, response: aiohttp.ClientResponse, first: bytes) -> None:
        self.patience.reschedule(None)
        pieces, size = [first], len(first)
        async for piece in response.content.iter_any():
            pieces.append(piece)
            size += len(piece)
            if size > _MOST:
                raise self._failures.too_big(_MOST)
        content = b"".join(pieces)
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            raise self._failures.garbled(content) from None
        self._check(body, response)
        self._add(body)
        if not self.draft.choices:
            said = content.decode("utf-8", "replace")
            raise self._failures.no_choices(
                said, retryable=body.get("choices") in ([], None) and "choices" in body
            )

    async def _read_events(self, response: aiohttp.ClientResponse, first: bytes) -> None:
        events, size, chunk = Events(), 0, first
        while chunk:
            size += len(chunk)
            for data in events.feed(chunk):
                if self._take(data, response):
                    await _release(response)
                    return self._check_stream()
            if events.held > _MOST or self.draft.length > _MOST or size > _MOST_STREAMED:
                raise self._failures.too_big(_MOST_STREAMED if size > _MOST_STREAMED else _MOST)
            chunk = await response.content.readany()
        for data in events.end():
            # Half an event says that the stream broke off, and nothing else.
            if _is_whole(data) and self._take(data, response):
                return self._check_stream()
        if not self.complete:
            raise self._failures.broken_off(self.draft)
        return self._check_stream()

    def _take(self, data: bytes, response: aiohttp.ClientResponse) -> bool:
        """One event; whether it says that there are no more."""
        data = data.strip()
        if data == _DONE:
            return True
        if not data:
            return False
        body = _parsed(data)
        if body is None:
            if self.complete:  # Only counts can be lost, and they are estimated.
                return False
            raise self._failures.garbled(data)
        self._check(body, response)
        before = self.draft.length, self.complete
        self._add(body)
        if self.draft.length and not before[0]:
            self.first_token_s = self._loop.time() - self._started
            self.patience.reschedule(None)
        if self.complete and not before[1]:
            self.patience.reschedule(self._loop.time() + _CLOSING_S)
        return False

    def _add(self, body: Mapping[str, Any]) -> None:
        text = self.draft.add(body)
        if text and self._tell is not None:
            self._tell(text)

    def _check(self, body: Any, response: aiohttp.ClientResponse) -> None:
        """Refuse what is no table, and what reports a failure."""
        if not isinstance(body, dict):
            raise self._failures.no_choices(json.dumps(body), retryable=False)
        complaint = complaint_in(body)
        if complaint is not None:
            raise self._failures.reported(response.headers, complaint, begun=bool(self.draft.length))

    def _check_stream(self) -> None:
        if not self.draft.choices:
            raise self._failures.no_choices("a stream without any", retryable=True)


def _parsed(data: bytes) -> Any:
    """The JSON of an event; None: it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _is_whole(data: bytes) -> bool:
    return data.strip() == _DONE or _parsed(data) is not None


async def _complained(response: aiohttp.ClientResponse) -> bytes:
    """As much of a refusal's body as comes soon."""
    pieces, size = [], 0
    try:
        async with asyncio.timeout(_COMPLAINING_S):
            async for piece in response.content.iter_any():
                pieces.append(piece)
                size += len(piece)
                if size > _MOST_COMPLAINED:
                    break
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    return b"".join(pieces)[:_MOST_COMPLAINED]


async def _release(response: aiohttp.ClientResponse) -> None:
    """Read what is left, if it comes at once."""
    try:
        async with asyncio.timeout(_RELEASING_S):
            while await response.content.readany():
                pass
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
