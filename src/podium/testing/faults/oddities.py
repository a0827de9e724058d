"""Replies that are well formed and say something else than they should."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from podium.testing.completion import error, event
from podium.testing.exchange import EVENTS, Exchange
from podium.testing.faults.base import Fault


class EmptyChoices(Fault):
    """A 200 without any choice."""

    kind: Literal["empty-choices"] = "empty-choices"

    async def serve(self, exchange: Exchange) -> None:
        if exchange.streams:
            await exchange.send_events([chunk | {"choices": []} for chunk in (await exchange.chunks())[-1:]])
        else:
            await exchange.send_json(await exchange.completion() | {"choices": []})


class NullContent(Fault):
    """A choice whose content is null, as of a model that only thought; a stream has no piece of text."""

    kind: Literal["null-content"] = "null-content"

    async def serve(self, exchange: Exchange) -> None:
        if exchange.streams:
            await exchange.reply(replace(await exchange.answer(), text=""))
            return
        table = await exchange.completion()
        table["choices"][0]["message"]["content"] = None
        await exchange.send_json(table)


class MissingUsage(Fault):
    """A good reply that does not count its tokens."""

    kind: Literal["missing-usage"] = "missing-usage"

    async def serve(self, exchange: Exchange) -> None:
        if exchange.streams:
            await exchange.send_events(chunk for chunk in await exchange.chunks() if not chunk.get("usage"))
        else:
            table = await exchange.completion()
            del table["usage"]
            await exchange.send_json(table)


class WrongUsage(Fault):
    """A good reply whose count of tokens cannot be. A stream tells it if the client asked for usage."""

    kind: Literal["wrong-usage"] = "wrong-usage"
    usage: Any = Field(default={"prompt_tokens": -1000, "completion_tokens": "many", "total_tokens": None})
    """In the place of the counts."""

    async def serve(self, exchange: Exchange) -> None:
        if exchange.streams:
            await exchange.send_events(
                chunk | {"usage": self.usage} if chunk.get("usage") else chunk
                for chunk in await exchange.chunks()
            )
        else:
            await exchange.send_json(await exchange.completion() | {"usage": self.usage})


class ContentFilter(Fault):
    """The provider's filter keeps the answer."""

    kind: Literal["content-filter"] = "content-filter"
    as_error: bool = False
    """A 400, as Azure has it for a prompt; else a 200 without text whose finish reason says so."""

    async def serve(self, exchange: Exchange) -> None:
        if self.as_error:
            said = "The prompt was filtered due to triggering the content management policy."
            table = error(said, "invalid_request_error", "content_filter")
            await exchange.send_json(table, code=400)
        else:
            await exchange.reply(replace(await exchange.answer(), text="", finish_reason="content_filter"))


class Length(Fault):
    """Half of the answer: the limit of tokens was reached."""

    kind: Literal["length"] = "length"

    async def serve(self, exchange: Exchange) -> None:
        answer = await exchange.answer()
        half = answer.text[: len(answer.text) // 2]
        await exchange.reply(replace(answer, text=half, finish_reason="length"))


class WrongModel(Fault):
    """A good reply that names another model than was asked."""

    kind: Literal["wrong-model"] = "wrong-model"
    model: str = "another-model"

    async def serve(self, exchange: Exchange) -> None:
        await exchange.reply(replace(await exchange.answer(), model=self.model))


class ErrorInside(Fault):
    """An error inside a 200; where it is streamed, after the first pieces."""

    kind: Literal["error-inside"] = "error-inside"
    message: str = "The model is overloaded."
    code: str | int = 502
    """As the error's table has it."""

    async def serve(self, exchange: Exchange) -> None:
        table = error(self.message, "server_error", self.code)
        if exchange.streams:
            begun = (await exchange.chunks())[:2]
            await exchange.send(b"".join(map(event, [*begun, table])), EVENTS)
        else:
            await exchange.send_json(table)


class OddEvents(Fault):
    """A good stream in a dress that the rules of server-sent events allow and few expect.

    Comments, names and ids of events, line ends of two characters, no blank after the colon, and pieces that end
    in the middle of a line. What is not streamed is well.
    """

    kind: Literal["odd-events"] = "odd-events"
    size: int = Field(default=7, ge=1)
    """Bytes of a piece."""

    async def serve(self, exchange: Exchange) -> None:
        if not exchange.streams:
            await exchange.reply(await exchange.answer())
            return
        told = [event(chunk)[len(b"data: ") : -2] for chunk in await exchange.chunks()]
        lines = [
            b"event: message\r\nid: 1\r\ndata:" + each + b"\r\n\r\n: still here\r\n\r\n" for each in told
        ]
        content = b": hello\r\n\r\n" + b"".join(lines) + b"data:[DONE]\r\n\r\n"
        await exchange.begin(EVENTS)
        for start in range(0, len(content), self.size):
            await exchange.write(content[start : start + self.size])
        await exchange.end()
