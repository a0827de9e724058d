"""Replies that end before they are whole, with or without the connection."""

from __future__ import annotations

import asyncio
import math
from typing import Literal

from podium.testing.completion import encoded, event
from podium.testing.exchange import EVENTS, JSON, Exchange
from podium.testing.faults.base import Fault
from podium.testing.faults.silences import begin_half

_UNTIL_READ = 0.02
"""Seconds that the half reply is given to be read: a reset throws away what the client has not read."""


class Reset(Fault):
    """The connection is reset (RST), as by a server that died or a proxy that gave up."""

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
    """The connection is closed (FIN) before the reply is whole."""

    kind: Literal["hang-up"] = "hang-up"
    when: Literal["before", "middle"] = "before"
    """Before the headers, or in the middle of the body or stream."""

    async def serve(self, exchange: Exchange) -> None:
        if self.when == "middle":
            await begin_half(exchange)
        exchange.hang_up()
        await asyncio.sleep(math.inf)


class TruncatedJson(Fault):
    """A 200 that is whole as HTTP has it, and half of the JSON: of its last event, where it is streamed."""

    kind: Literal["truncated-json"] = "truncated-json"

    async def serve(self, exchange: Exchange) -> None:
        if not exchange.streams:
            content = encoded(await exchange.completion())
            await exchange.send(content[: len(content) // 2], JSON)
            return
        *whole, last = [event(chunk) for chunk in await exchange.chunks()][:-1]
        await exchange.send(b"".join(whole) + last[: len(last) // 2] + b"\n\n", EVENTS)


class UnfinishedStream(Fault):
    """A stream that ends in good order before the model has: no finish reason, no usage, no `[DONE]`.

    What is not streamed is well.
    """

    kind: Literal["unfinished-stream"] = "unfinished-stream"

    async def serve(self, exchange: Exchange) -> None:
        if not exchange.streams:
            await exchange.send_json(await exchange.completion())
            return
        chunks = await exchange.chunks()
        await exchange.send(b"".join(map(event, chunks[: -(-len(chunks) // 2)])), EVENTS)
