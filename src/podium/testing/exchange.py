"""A request to the fault server and the reply to it, which a fault writes piece by piece or breaks.

Sits on aiohttp's request; goes below HTTP only to cut the connection. It knows no fault and no rule.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import web

from podium.testing.answer import Answer, Answering, Said, ask
from podium.testing.completion import DONE, chunks, completion, encoded, event
from podium.testing.received import Received

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
        self.answering: Said | Answering = ""
        self.fault: str | None = None
        self.answered = False
        self.input_tokens = 0
        self.output_tokens = 0
        self.ended_at: float | None = None
        self.gone_at: float | None = None
        self.cut_by_us = False
        self.failure: Exception | None = None
        """What the user's answer raised."""
        self.response: web.StreamResponse | None = None

    @property
    def begun(self) -> bool:
        """Whether any of the reply was sent."""
        return self.response is not None and self.response.prepared

    @property
    def model(self) -> str | None:
        """The model that was asked for, if the body names one."""
        model = self.body.get("model")
        return model if isinstance(model, str) else None

    @property
    def streams(self) -> bool:
        """Whether the client asked for events."""
        return self.body.get("stream") is True

    async def answer(self) -> Answer:
        """What the model says, counted."""
        try:
            answer = await ask(self.answering, self.body)
        except Exception as problem:
            self.failure = problem
            raise
        self.answered = True
        self.input_tokens, self.output_tokens = answer.input_tokens or 0, answer.output_tokens or 0
        return answer

    async def reply(self, answer: Answer) -> None:
        """The whole of a good reply."""
        if self.streams:
            await self.send_events(self.chunks_of(answer))
        else:
            await self.send_json(completion(answer, self.number))

    async def completion(self) -> dict[str, Any]:
        """The answer as one table."""
        return completion(await self.answer(), self.number)

    async def chunks(self) -> list[dict[str, Any]]:
        """The answer as the tables of events."""
        return self.chunks_of(await self.answer())

    def chunks_of(self, answer: Answer) -> list[dict[str, Any]]:
        """An answer as the tables of events, with a last one of usage if the client asked for it."""
        options = self.body.get("stream_options")
        with_usage = isinstance(options, dict) and options.get("include_usage") is True
        return chunks(answer, self.number, with_usage=with_usage)

    async def send(
        self, content: bytes, kind: str = JSON, *, code: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """The whole reply at once."""
        response = web.Response(body=content, status=code, headers={"Content-Type": kind, **(headers or {})})
        self.response = response
        await response.prepare(self.request)
        await response.write_eof()

    async def send_json(
        self, payload: object, *, code: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """A table, as the whole reply."""
        await self.send(encoded(payload), code=code, headers=headers)

    async def send_events(self, tables: Iterable[object]) -> None:
        """A whole stream, with its closing `[DONE]`, as fast as it goes."""
        await self.begin(EVENTS)
        await self.write(b"".join(map(event, tables)) + DONE)
        await self.end()

    async def begin(
        self, kind: str, *, length: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """The headers of a reply that comes in pieces; `length` is what they promise, None: no promise."""
        response = web.StreamResponse(headers={"Content-Type": kind, **(headers or {})})
        response.content_length = length
        self.response = response
        await response.prepare(self.request)

    async def write(self, content: bytes) -> None:
        """The next piece of a reply that was begun; waits for a client that does not read."""
        assert self.response is not None
        await self.response.write(content)

    async def end(self) -> None:
        """The orderly end of a reply that was begun."""
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
        """Close the connection as if all were said (FIN)."""
        if (transport := self.request.transport) is not None:
            self.cut_by_us = True
            transport.close()

    def record(self) -> Received:
        """What is known of it now."""
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
