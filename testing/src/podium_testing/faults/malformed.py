"""Faults in the bytes of a reply: they are not what the headers say, not the JSON they should be, or far too many."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Literal

from pydantic import Field

from podium_testing.completion import DONE, completion, encoded, event
from podium_testing.exchange import EVENTS, JSON, Exchange, Fault
from podium_testing.faults.refusals import HTML

_MARK = "\x07MARK\x07"
_MARKED = encoded(_MARK)[1:-1]
_PIECE = 64 * 1024


class InvalidUtf8(Fault):
    """JSON with bytes in its text that are not UTF-8."""

    kind: Literal["invalid-utf8"] = "invalid-utf8"

    async def serve(self, exchange: Exchange) -> None:
        before, after = await _around_text(exchange)
        kind = EVENTS if exchange.streams else JSON
        await exchange.send(before + b"caf\xe9 \xff\xfe \xf0\x9f" + after, kind)


class WrongContentType(Fault):
    """A 200 with an HTML page, as from a proxy that wants a login."""

    kind: Literal["wrong-content-type"] = "wrong-content-type"

    async def serve(self, exchange: Exchange) -> None:
        await exchange.send(b"<!doctype html><title>Sign in</title><h1>Please sign in.</h1>", HTML)


class DeepJson(Fault):
    """Lists in lists, too deep for a recursive parser."""

    kind: Literal["deep-json"] = "deep-json"
    levels: int = Field(default=100_000, ge=1)

    async def serve(self, exchange: Exchange) -> None:
        content = b"[" * self.levels + b"]" * self.levels
        if exchange.streams:
            await exchange.send(b"data: " + content + b"\n\n" + DONE, EVENTS)
        else:
            await exchange.send(content, JSON)


class BadCompression(Fault):
    """A body that is not compressed, with a header that says gzip."""

    kind: Literal["bad-compression"] = "bad-compression"

    async def serve(self, exchange: Exchange) -> None:
        content = encoded(await exchange.completion())
        await exchange.send(
            content, EVENTS if exchange.streams else JSON, headers={"Content-Encoding": "gzip"}
        )


class GiantBody(Fault):
    """A good reply of a huge size, which no header announces. The server has only 64 KiB of it in memory."""

    kind: Literal["giant-body"] = "giant-body"
    size: int = Field(ge=1)
    """Bytes of the text."""
    compressed: bool = False
    """Whether it is sent with gzip, at a thousandth of its size."""
    one_event: bool = False
    """Whether a stream has it all in one event; else each event has 64 KiB."""

    async def serve(self, exchange: Exchange) -> None:
        before, after = await _around_text(exchange)
        between = (
            b""
            if not exchange.streams or self.one_event
            else after.split(b"\n\n")[0] + b"\n\n" + _event_start(before)
        )
        packer = zlib.compressobj(wbits=31) if self.compressed else None
        await exchange.begin(
            EVENTS if exchange.streams else JSON, headers={"Content-Encoding": "gzip"} if packer else None
        )

        async def write(content: bytes) -> None:
            packed = packer.compress(content) if packer else content
            if packed:
                await exchange.write(packed)

        await write(before)
        for start in range(0, self.size, _PIECE):
            await write((between if start else b"") + b"a" * min(_PIECE, self.size - start))
        await write(after)
        if packer:
            await exchange.write(packer.flush())
        await exchange.end()


class Verbatim(Fault):
    """Any reply that you write yourself, for what the other faults do not cover."""

    kind: Literal["verbatim"] = "verbatim"
    body: str
    content_type: str = JSON
    code: int = Field(default=200, ge=200, le=599)
    headers: dict[str, str] = Field(default_factory=dict)

    async def serve(self, exchange: Exchange) -> None:
        await exchange.send(self.body.encode(), self.content_type, code=self.code, headers=self.headers)


async def _around_text(exchange: Exchange) -> tuple[bytes, bytes]:
    """The bytes of a good reply before its text and after it."""
    answer = replace(await exchange.answer(), text=_MARK)
    if exchange.streams:
        content = b"".join(map(event, exchange.chunks_of(answer))) + DONE
    else:
        content = encoded(completion(answer, exchange.number))
    before, _, after = content.partition(_MARKED)
    return before, after


def _event_start(before: bytes) -> bytes:
    """The beginning of the event that `before` ends in."""
    return before[before.rindex(b"data: ") :]
