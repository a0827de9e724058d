"""Faults in time: replies that are slow, hang, or end before they are whole, with or without the connection."""

from __future__ import annotations

import asyncio
import math
from typing import Literal

from pydantic import Field

from podium_testing.completion import DONE, encoded, event
from podium_testing.exchange import EVENTS, JSON, Exchange, Fault


class Hang(Fault):
    """A reply that never ends, until the client disconnects or the server ends."""

    kind: Literal["hang"] = "hang"
    when: Literal["before", "middle"] = "before"
    """Before the headers, or in the middle of the body or stream."""

    async def serve(self, exchange: Exchange) -> None:
        if self.when == "middle":
            await begin_half(exchange)
        await asyncio.sleep(math.inf)


class SlowFirstByte(Fault):
    """Nothing for some seconds, then a good reply."""

    kind: Literal["slow-first-byte"] = "slow-first-byte"
    seconds: float = Field(ge=0)

    async def serve(self, exchange: Exchange) -> None:
        await asyncio.sleep(self.seconds)
        await exchange.reply(await exchange.answer())


class SlowFirstToken(Fault):
    """Headers at once, as from a gateway, then only comments for some seconds, then a good reply.

    Without streaming it sends blanks in place of the comments, because JSON may begin with blanks.
    """

    kind: Literal["slow-first-token"] = "slow-first-token"
    seconds: float = Field(ge=0)
    every: float = Field(default=0.1, gt=0)
    """Seconds between comments."""

    async def serve(self, exchange: Exchange) -> None:
        await exchange.begin(EVENTS if exchange.streams else JSON)
        for _ in range(int(self.seconds / self.every)):
            await exchange.write(b": WAITING\n\n" if exchange.streams else b" ")
            await asyncio.sleep(self.every)
        await asyncio.sleep(self.seconds % self.every)
        if exchange.streams:
            await exchange.write(b"".join(map(event, await exchange.chunks())) + DONE)
        else:
            await exchange.write(encoded(await exchange.completion()))
        await exchange.end()


class SlowDrip(Fault):
    """A good reply in slow pieces: events of a stream, or a few bytes each."""

    kind: Literal["slow-drip"] = "slow-drip"
    seconds: float = Field(ge=0)
    """Pause before each piece."""
    size: int = Field(default=64, ge=1)
    """Bytes of a piece, if the reply is not streamed."""

    async def serve(self, exchange: Exchange) -> None:
        if exchange.streams:
            pieces = [event(chunk) for chunk in await exchange.chunks()] + [DONE]
            await exchange.begin(EVENTS)
        else:
            content = encoded(await exchange.completion())
            pieces = [content[start : start + self.size] for start in range(0, len(content), self.size)]
            await exchange.begin(JSON, length=len(content))
        for piece in pieces:
            await asyncio.sleep(self.seconds)
            await exchange.write(piece)
        await exchange.end()


async def begin_half(exchange: Exchange) -> None:
    """Send the headers of a good reply and half of its body."""
    if exchange.streams:
        chunks = await exchange.chunks()
        await exchange.begin(EVENTS)
        await exchange.write(b"".join(map(event, chunks[: -(-len(chunks) // 2)])))
    else:
        content = encoded(await exchange.completion())
        await exchange.begin(JSON, length=len(content))
        await exchange.write(content[: len(content) // 2])


_UNTIL_READ = 0.02
"""Seconds for the client to read the half reply: a reset throws away what the client has not read."""


class Reset(Fault):
    """A reset connection (RST), as from a server that died or a proxy that gave up."""

    kind: Literal["reset"] = "reset"
    when: Literal["before", "middle"] = "before"
    """Before the headers, or in the middle of the body or stream."""

    async def serve(self, exchange: Exchange) -> None:
        if self.when == "middle":
            await begin_half(exchange)
            await asyncio.sleep(_UNTIL_READ)
        exchange.reset()
        await asyncio.sleep(math.inf)


class HangUp(Fault):
    """A connection that is closed properly (FIN) before the reply is complete."""

    kind: Literal["hang-up"] = "hang-up"
    when: Literal["before", "middle"] = "before"
    """Before the headers, or in the middle of the body or stream."""

    async def serve(self, exchange: Exchange) -> None:
        if self.when == "middle":
            await begin_half(exchange)
        exchange.hang_up()
        await asyncio.sleep(math.inf)


class TruncatedJson(Fault):
    """A 200 without an HTTP error whose JSON is cut in half; in a stream, the JSON of the last event."""

    kind: Literal["truncated-json"] = "truncated-json"

    async def serve(self, exchange: Exchange) -> None:
        if not exchange.streams:
            content = encoded(await exchange.completion())
            await exchange.send(content[: len(content) // 2], JSON)
            return
        *whole, last = [event(chunk) for chunk in await exchange.chunks()][:-1]
        await exchange.send(b"".join(whole) + last[: len(last) // 2] + b"\n\n", EVENTS)


class UnfinishedStream(Fault):
    """A stream that ends properly in the middle of the answer: no finish reason, no usage, no `[DONE]`.

    Without streaming the reply is good.
    """

    kind: Literal["unfinished-stream"] = "unfinished-stream"

    async def serve(self, exchange: Exchange) -> None:
        if not exchange.streams:
            await exchange.send_json(await exchange.completion())
            return
        chunks = await exchange.chunks()
        await exchange.send(b"".join(map(event, chunks[: -(-len(chunks) // 2)])), EVENTS)
