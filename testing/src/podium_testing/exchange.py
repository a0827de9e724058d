"""One request to the fault server: writes the reply or the fault, and records the request.

Uses aiohttp's request, and goes below HTTP only to cut the connection. It knows no particular fault and no rule.
"""

from __future__ import annotations

import socket
import struct
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiohttp import web

from podium.config import Settings
from podium_testing.completion import (
    DONE,
    Answer,
    AnswerFunction,
    AnswerLike,
    chunks,
    completion,
    content_text,
    encoded,
    event,
    make_answer,
)


@dataclass(frozen=True, slots=True)
class Received:
    """The record of one request at the moment when `FaultServer.requests` was read."""

    number: int
    """In order of arrival, from 0."""
    at: float
    """Seconds of `time.monotonic`, which is also the clock of asyncio's own event loop."""
    path: str
    model: str | None
    """The model that the body names, or None."""
    body: Mapping[str, Any]
    """As sent; empty if it is no JSON object."""
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case. They contain the API key, so do not print them."""
    fault: str | None
    """The kind of the rule's fault; "key", "model", "limit", "body" or "path" if the server refused without a rule;
    "down" if `down()` or the server's end cut the request. None for a good reply."""
    status: int | None
    """HTTP status of the reply. None if no reply was begun."""
    input_tokens: int
    output_tokens: int
    """0 until the model has answered."""
    ended_at: float | None
    """When the reply ended. None while it is in flight."""
    gone_at: float | None
    """When the client disconnected before the reply's end. None if it did not."""

    @property
    def in_flight(self) -> bool:
        """Whether the request has not ended yet."""
        return self.ended_at is None

    @property
    def went_away(self) -> bool:
        """Whether the client closed the connection before the reply's end."""
        return self.gone_at is not None

    @property
    def seconds(self) -> float | None:
        """Seconds from arrival to end. None while it is in flight."""
        return None if self.ended_at is None else self.ended_at - self.at

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def text(self) -> str:
        """The contents of all messages, joined by line breaks. `Rule.contains` searches this text."""
        messages = self.body.get("messages")
        return messages_text(messages) if isinstance(messages, list) else ""


class Minute(NamedTuple):
    """The most requests and the most tokens in any window of a minute. The two windows may differ."""

    requests: int
    tokens: int


def worst_minute(requests: Iterable[Received], seconds: float = 60.0) -> Minute:
    """The most requests, and the most tokens, that arrived in any window of `seconds`.

    Exact: it looks at every window [t, t + seconds). Limits are by model, so first select one model's requests.
    """
    window: deque[Received] = deque()
    tokens = most_requests = most_tokens = 0
    for request in sorted(requests, key=lambda each: each.at):
        window.append(request)
        tokens += request.tokens
        while request.at - window[0].at >= seconds:
            tokens -= window.popleft().tokens
        most_requests = max(most_requests, len(window))
        most_tokens = max(most_tokens, tokens)
    return Minute(most_requests, most_tokens)


def most_at_once(requests: Iterable[Received]) -> int:
    """The most requests that were in flight at one moment."""
    # If one request ends in the moment in which another begins, they do not overlap: ends are counted first.
    known = list(requests)
    moments = [(each.at, 1) for each in known]
    moments += [(each.ended_at, -1) for each in known if each.ended_at is not None]
    now = most = 0
    for _, change in sorted(moments):
        now += change
        most = max(most, now)
    return most


def messages_text(messages: Iterable[object]) -> str:
    """The contents of all messages, joined by line breaks."""
    return "\n".join(content_text(each.get("content")) for each in messages if isinstance(each, Mapping))


JSON = "application/json"
EVENTS = "text/event-stream"
_NO_LINGER = struct.pack("ii", 1, 0)


class Exchange:
    """One request while it is served. Times are of `time.monotonic`."""

    def __init__(self, request: web.BaseRequest, number: int) -> None:
        self.request = request
        self.number = number
        self.at = time.monotonic()
        self.body: dict[str, Any] = {}
        self.answer_source: AnswerLike | AnswerFunction = ""
        self.fault: str | None = None
        self.answered = False
        self.input_tokens = 0
        self.output_tokens = 0
        self.ended_at: float | None = None
        self.gone_at: float | None = None
        self.cut_by_us = False
        self.failure: Exception | None = None
        """The exception that the answer function raised."""
        self.response: web.StreamResponse | None = None

    @property
    def begun(self) -> bool:
        """Whether any of the reply was sent."""
        return self.response is not None and self.response.prepared

    @property
    def model(self) -> str | None:
        """The model that the request names, if any."""
        model = self.body.get("model")
        return model if isinstance(model, str) else None

    @property
    def streams(self) -> bool:
        """Whether the request wants a stream."""
        return self.body.get("stream") is True

    async def answer(self) -> Answer:
        """The model's answer. Its tokens are counted as the request's."""
        try:
            answer = await make_answer(self.answer_source, self.body)
        except Exception as problem:
            self.failure = problem
            raise
        self.answered = True
        self.input_tokens, self.output_tokens = answer.input_tokens or 0, answer.output_tokens or 0
        return answer

    async def reply(self, answer: Answer) -> None:
        """Send a whole good reply."""
        if self.streams:
            await self.send_events(self.chunks_of(answer))
        else:
            await self.send_json(completion(answer, self.number))

    async def completion(self) -> dict[str, Any]:
        """The answer as the JSON object of a whole reply."""
        return completion(await self.answer(), self.number)

    async def chunks(self) -> list[dict[str, Any]]:
        """The answer as the JSON objects of a stream's events."""
        return self.chunks_of(await self.answer())

    def chunks_of(self, answer: Answer) -> list[dict[str, Any]]:
        """An answer as the JSON objects of a stream's events; the last has the usage if include_usage is set."""
        options = self.body.get("stream_options")
        with_usage = isinstance(options, dict) and options.get("include_usage") is True
        return chunks(answer, self.number, with_usage=with_usage)

    async def send(
        self, content: bytes, kind: str = JSON, *, code: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send the whole reply at once."""
        response = web.Response(body=content, status=code, headers={"Content-Type": kind, **(headers or {})})
        self.response = response
        await response.prepare(self.request)
        await response.write_eof()

    async def send_json(
        self, payload: object, *, code: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a JSON object as the whole reply."""
        await self.send(encoded(payload), code=code, headers=headers)

    async def send_events(self, tables: Iterable[object]) -> None:
        """Send a whole stream without delays, with the closing `[DONE]`."""
        await self.begin(EVENTS)
        await self.write(b"".join(map(event, tables)) + DONE)
        await self.end()

    async def begin(
        self, kind: str, *, length: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send the headers of a reply that comes in pieces. `length` is their Content-Length, if they have one."""
        response = web.StreamResponse(headers={"Content-Type": kind, **(headers or {})})
        response.content_length = length
        self.response = response
        await response.prepare(self.request)

    async def write(self, content: bytes) -> None:
        """Send the next piece of a reply that was begun. Waits while the client does not read."""
        assert self.response is not None
        await self.response.write(content)

    async def end(self) -> None:
        """End a reply that was begun, as HTTP requires it."""
        assert self.response is not None
        await self.response.write_eof()

    def reset(self) -> None:
        """Cut the connection so that the client's system sees a reset (RST)."""
        if (transport := self.request.transport) is not None:
            if (socket_ := transport.get_extra_info("socket")) is not None:
                socket_.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.cut_by_us = True
            transport.abort()

    def hang_up(self) -> None:
        """Close the connection as if the reply were whole (FIN)."""
        if (transport := self.request.transport) is not None:
            self.cut_by_us = True
            transport.close()

    def record(self) -> Received:
        """The request's record at this moment."""
        return Received(
            number=self.number,
            at=self.at,
            path=self.request.path,
            model=self.model,
            body=self.body,
            headers={name.lower(): value for name, value in self.request.headers.items()},
            fault=self.fault,
            status=self.response.status if self.response is not None and self.begun else None,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            ended_at=self.ended_at,
            gone_at=self.gone_at,
        )


class Fault(Settings):
    """One way to fail: what the server sends instead of a good reply, or how it delays or spoils one."""

    kind: str
    """The fault's name in files and records."""

    @abstractmethod
    async def serve(self, exchange: Exchange) -> None:
        """Send the reply of this fault, if any. The server may cancel this at any await."""
