"""Reads one HTTP response, whole or as server-sent events, within limits of size and of time to the first token.

It stands between the HTTP client and `reply_builder`. It removes secrets from streamed text before it passes it on, and
raises a `WorkerError` if the response is not a reply.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import aiohttp

from podium.workers.chat.failures import Failures, find_error, read_error_body
from podium.workers.chat.reply_builder import ReplyBuilder, encodable
from podium.workers.chat.text_tool_calls import TextToolCallParser
from podium.workers.redaction import Secrets

_DONE = b"[DONE]"
_EVENTS = "text/event-stream"
_JSON = "application/json"
_MAX_REPLY_BYTES = 8 << 20
"""The most bytes of a whole reply or of one event, after decompression."""
_MAX_JSON_VALUES = 1 << 18
"""The most values in the JSON of a reply or an event: five million empty objects take 7 s and 1.8 GB to parse."""
_VALUES = f"{_MAX_JSON_VALUES:,} values"
_MAX_TEXT_CHARS = 2 << 20
"""The most characters of a reply's text, reasoning and tool calls: four times what a model writes at most."""
_MAX_STREAM_BYTES = 256 << 20
"""The most bytes of a stream. An event has about one token, and some 300 bytes of JSON around it."""
_DECODED_BYTES = 16 << 10
"""Bytes of a stream that are decoded before other tasks run. They hold up to 2,000 events."""
_MAX_ERROR_BYTES = 64 << 10
_ERROR_BODY_S = 2.0
"""Time limit for the body of an error response; its status matters more."""
_CLOSING_S = 5.0
"""Time limit after finish_reason, for usage and the end of the stream."""
_RELEASING_S = 0.1
"""Time limit after [DONE], for the end of the response: a connection that was read to its end is reused."""


class ResponseReader:
    """Reads the response of one attempt.

    Args:
        streamed: whether the request was for a stream.
        timeout: seconds from now until the reply must be complete.
        first_token_timeout: seconds from now until a streamed reply must have begun, or None for no limit.
        listeners: who gets the text and who gets the reasoning, piece by piece.
    """

    def __init__(
        self,
        failures: Failures,
        *,
        streamed: bool,
        timeout: float,
        first_token_timeout: float | None,
        hold: bool | None,
        call_parser: TextToolCallParser,
        listeners: Sequence[StreamScrubber | None],
    ) -> None:
        self.builder = ReplyBuilder(hold=hold, call_parser=call_parser)
        self.first_token_s: float | None = None
        """Seconds until the first text or reasoning of a stream."""
        self.request_sent = False
        """Whether the request was sent; the worker says so."""
        self.unread = b""
        """What came of a whole reply that was cut off or cannot be parsed."""
        self._failures = failures
        self._streamed = streamed
        self._listeners = listeners
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._ends = self._started + timeout
        self.limit = self._whole = ("timeout", timeout)
        """The limit that holds now, by its key in a team file, and its seconds."""
        if first_token_timeout is not None and first_token_timeout < timeout:
            self.limit = ("first_token_timeout", first_token_timeout)
        self.deadline = asyncio.timeout_at(self._started + self.limit[1])
        """The timeout that the caller enters around the whole call. From the first token on, `timeout` alone holds;
        finish_reason sets a new limit of `_CLOSING_S`."""

    @property
    def complete(self) -> bool:
        """Whether the answer is complete; token counts and the end of the stream may still be missing."""
        return self.builder.finish is not None and not self.builder.went_on

    @property
    def may_be_billed(self) -> bool:
        """Whether a reply was begun, or token counts came."""
        begun = self.unread.lstrip()[:1] in (b"{", b"[")
        return bool(self.builder.usage or self.builder.choices or self.builder.length) or begun

    async def read(self, response: aiohttp.ClientResponse) -> None:
        """Read `response` into the builder.

        Raises:
            WorkerError: it is not a reply.
            aiohttp.ClientError, OSError: the connection failed.
        """
        if 300 <= response.status < 400:
            raise self._failures.redirect(response.status, response.headers.get("Location", ""))
        if not 200 <= response.status < 300:
            content = await _read_within(response, _ERROR_BODY_S)
            if isinstance(body := self._parsed(content), dict):
                self.builder.add_usage(body)
            raise self._failures.status(response.status, response.headers, read_error_body(content))
        first = await response.content.readany()
        if self._is_streamed(response, first):
            await self._read_events(response, first)
            self.check_stream()
        else:
            await self._read_whole(response, first)

    def _is_streamed(self, response: aiohttp.ClientResponse, first: bytes) -> bool:
        """Whether a body that begins with `first` is a stream. Servers may ignore `stream` or send a wrong content
        type."""
        start = first.lstrip()[:1]
        if start in (b"<", b"{", b"["):  # No event begins so.
            return False
        return response.content_type == _EVENTS or (
            self._streamed and bool(start or response.content_type != _JSON)
        )

    async def _read_whole(self, response: aiohttp.ClientResponse, first: bytes) -> None:
        self._begin()
        pieces: list[bytes] = []
        piece, size, values = first, 0, 0
        while piece:
            pieces.append(piece)
            size += len(piece)
            values += _count_values(piece)
            if size > _MAX_REPLY_BYTES:
                raise self._failures.too_big(f"{_MAX_REPLY_BYTES >> 20} MiB")
            if values > _MAX_JSON_VALUES:
                raise self._failures.too_big(_VALUES)
            try:
                piece = await response.content.readany()
            except BaseException:
                self.unread = b"".join(pieces)
                raise
        content = b"".join(pieces)
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            self.unread = content
            raise self._failures.malformed(content) from None
        self._check(body, response)
        self.add_reply(body)

    async def _read_events(self, response: aiohttp.ClientResponse, first: bytes) -> None:
        decoder, size, chunk = SSEDecoder(), 0, first
        while chunk:
            for start in range(0, len(chunk), _DECODED_BYTES):
                for data in decoder.feed(chunk[start : start + _DECODED_BYTES]):
                    if self._take(data, response):
                        await _read_within(response, _RELEASING_S)
                        return
                if start:
                    await asyncio.sleep(0)
            size += len(chunk)
            if size > _MAX_STREAM_BYTES or decoder.pending > _MAX_REPLY_BYTES:
                most = _MAX_STREAM_BYTES if size > _MAX_STREAM_BYTES else _MAX_REPLY_BYTES
                raise self._failures.too_big(f"{most >> 20} MiB")
            chunk = await response.content.readany()
        for data in decoder.end():
            # Half an event means that the stream broke off.
            whole = data.strip() == _DONE or self._parsed(data) is not None
            if whole and self._take(data, response):
                return
        if self.builder.finish is None:
            came = f"the stream broke off after {self.builder.length} characters, without finish_reason or [DONE]"
            raise self._failures.error(came, "connection", retryable=True)

    def add_reply(self, body: Mapping[str, Any]) -> None:
        """Add a whole reply. One without choices is a `WorkerError`."""
        self._add(body)
        if not self.builder.choices:
            retryable = body.get("choices") in ([], None) and "choices" in body
            raise self._failures.no_choices(json.dumps(body), retryable=retryable)

    def add_event(self, body: Mapping[str, Any]) -> None:
        """Add an event of a stream."""
        before = self.builder.length, self.complete
        self._add(body)
        if self.builder.length and not before[0]:
            self.first_token_s = self._loop.time() - self._started
            self._begin()
        if self.complete != before[1]:
            closing = min(self._ends, self._loop.time() + _CLOSING_S)
            self.deadline.reschedule(closing if self.complete else self._ends)

    def check_stream(self) -> None:
        """Raise a `WorkerError` if the stream, which has ended, had no choices."""
        if not self.builder.choices:
            raise self._failures.no_choices("a stream without any", retryable=True)

    def end(self) -> None:
        """Pass on the text that has waited: the reply has ended."""
        if self._listeners != (None, None):
            self._pass_on(self.builder.end())
            for listener in filter(None, self._listeners):
                listener.end()

    def _take(self, data: bytes, response: aiohttp.ClientResponse) -> bool:
        """Take one event; returns whether it ends the stream."""
        data = data.strip()
        if data == _DONE:
            return True
        if not data:
            return False
        body = self._parsed(data)
        if self._is_late_fault(body):  # Only usage can be lost; then it is estimated.
            self.builder.add_usage(body or {})
            return False
        if body is None:
            raise self._failures.malformed(data)
        self._check(body, response)
        self.add_event(body)
        return False

    def _is_late_fault(self, body: Any) -> bool:
        """Whether an event is no JSON or reports an error, although the answer is complete and was paid for."""
        if not self.complete or not isinstance(body, dict | None):
            return False
        return body is None or (
            find_error(body) is not None and self.builder.length > 0 and self.builder.finish != "error"
        )

    def _begin(self) -> None:
        if self.limit is not self._whole:
            self.limit = self._whole
            self.deadline.reschedule(self._ends)

    def _add(self, body: Mapping[str, Any]) -> None:
        pieces = self.builder.add(body)
        if self.builder.length > _MAX_TEXT_CHARS:
            raise self._failures.too_big(f"{_MAX_TEXT_CHARS:,} characters")
        self._pass_on(pieces)

    def _pass_on(self, pieces: tuple[str, str]) -> None:
        for piece, listener in zip(pieces, self._listeners, strict=True):
            if piece and listener is not None:
                listener.add(piece)

    def _check(self, body: Any, response: aiohttp.ClientResponse) -> None:
        if not isinstance(body, dict):
            raise self._failures.no_choices(json.dumps(body), retryable=False)
        provider_error = find_error(body)
        if provider_error is not None:
            self.builder.add_usage(body)
            raise self._failures.reported(response.headers, provider_error, begun=bool(self.builder.length))

    def _parsed(self, data: bytes) -> Any:
        """The JSON of an event; None if it is not JSON."""
        if len(data) > _MAX_JSON_VALUES and _count_values(data) > _MAX_JSON_VALUES:
            raise self._failures.too_big(_VALUES)
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return None


def _count_values(data: bytes) -> int:
    """The approximate number of values in JSON. Commas and brackets in strings count too, but never reach the limit."""
    return sum(map(data.count, (b",", b"[", b"{")))


async def _read_within(response: aiohttp.ClientResponse, seconds: float) -> bytes:
    """The part of a body, of at most `_MAX_ERROR_BYTES`, that arrives within a time."""
    received = bytearray()
    with suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(seconds):
            while len(received) <= _MAX_ERROR_BYTES and (piece := await response.content.readany()):
                received += piece
    return bytes(received[:_MAX_ERROR_BYTES])


_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_PIECE = 64
"""Python's overhead for each piece, in bytes (approximate)."""


class SSEDecoder:
    """Decodes one stream of server-sent events (WHATWG HTML, 9.2) into the data of each; event names are ignored.

    The bytes may come in any pieces. It accepts any end of line, comments between events, and a last event without its
    closing empty line.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._after_cr = False
        self._begun = False
        self._line_bytes = self._data_bytes = 0

    @property
    def pending(self) -> int:
        """Bytes of memory that the unfinished event takes (approximate)."""
        return self._line_bytes + self._data_bytes

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of the events that `chunk` completes."""
        if not chunk:
            return
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        start = 0
        for end in _LINE_END.finditer(chunk):
            yield from self._take(chunk[start : end.start()])
            start = end.end()
        if start < len(chunk):
            self._line.append(chunk[start:])
            self._line_bytes += len(chunk) - start + _PIECE

    def end(self) -> Iterator[bytes]:
        """The data of the last event, if the end of the stream completes it."""
        yield from self._take(b"")
        yield from self._take(b"")

    def _take(self, rest: bytes) -> Iterator[bytes]:
        """Take the last piece of a line, and return the event's data if the line ends the event."""
        line = b"".join(self._line) + rest
        self._line.clear()
        self._line_bytes = 0
        if not self._begun:
            self._begun, line = True, line.removeprefix(_BOM)
        if not line:
            data, self._data, self._data_bytes = self._data, [], 0
            if data:
                yield b"\n".join(data)
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
            self._data_bytes += len(value) + _PIECE


class StreamScrubber:
    """Removes secrets from streamed text. Text that may be the beginning of a secret waits until more text arrives."""

    def __init__(self, on_text: Callable[[str], None], secrets: Secrets) -> None:
        self._on_text = on_text
        self._secrets = secrets
        self._pending = ""

    def add(self, text: str) -> None:
        """Add the next piece of text."""
        self._pending += text
        end = self._secrets.partial_secret_start(self._pending)
        if end and "\ud800" <= self._pending[end - 1] <= "\udbff":
            end -= 1  # Half of a surrogate pair; the other half may follow.
        self._pass_on(end)

    def end(self) -> None:
        """Pass on the waiting text: no more follows."""
        self._pass_on(len(self._pending))

    def _pass_on(self, end: int) -> None:
        if ready := self._secrets.scrub(encodable(self._pending[:end])):
            self._pending = self._pending[end:]
            self._on_text(ready)
