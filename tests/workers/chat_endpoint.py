"""An endpoint on loopback that answers as it is told and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from traceback import format_exception
from typing import Any

import pytest
from aiohttp import web

from chat_worker import ChatClient, chat_worker
from podium.errors import WorkerError
from podium.trace import Reply
from podium.types import Limits, Message, Profile
from podium.workers.base import Request

KEY = "sk-hush-hush-0123456789"
MESSAGES = (Message(role="user", content="What is 2 + 2?"),)
GOOD = {
    "choices": [{"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
}


class Endpoint:
    """Serves /v1/chat/completions."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.headers: list[Any] = []
        self.queries: list[dict[str, str]] = []
        self.connections: set[object] = set()
        self.delay = 0.0
        self.asked = asyncio.Event()
        self.gone = asyncio.Event()
        """A client went away before it was answered."""
        self.url = ""
        self._reply: Callable[[web.Request], Awaitable[web.StreamResponse]]
        self.answer(GOOD)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.queries.append(dict(request.query))
        self.headers.append(request.headers)
        self.connections.add(request.transport)
        self.asked.set()
        try:
            await asyncio.sleep(self.delay)
            return await self._reply(request)
        except (asyncio.CancelledError, ConnectionResetError):
            self.gone.set()
            raise

    def answer(self, body: Any, status: int = 200, kind: str | None = None, **headers: str) -> None:
        """From now on with `body`, as JSON where it is neither text nor bytes."""
        content = (
            body
            if isinstance(body, bytes)
            else (body if isinstance(body, str) else json.dumps(body)).encode()
        )
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if kind is not None:
            named["Content-Type"] = kind

        async def reply(request: web.Request) -> web.StreamResponse:
            return web.Response(body=content, status=status, headers=named)

        self._reply = reply

    def stream(
        self,
        *pieces: bytes,
        kind: str = "text/event-stream",
        pause: float = 0.0,
        hang: bool = False,
        cut: bool = False,
    ) -> None:
        """From now on with `pieces`, each written for itself; then hang, or cut the connection."""

        async def reply(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": kind})
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece)
                await asyncio.sleep(pause)
            if hang:
                await asyncio.sleep(60)
            if cut and request.transport is not None:
                request.transport.close()
                return response
            await response.write_eof()
            return response

        self._reply = reply


async def started(endpoint: Endpoint) -> web.AppRunner:
    """The server of `endpoint`, to be cleaned up."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", endpoint.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    return runner


@asynccontextmanager
async def wire(reply: bytes, *, then_hang: bool = False, read: bool = True) -> AsyncIterator[int]:
    """A server that answers every request with these bytes, whatever they are, and hangs up; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if read:
                await reader.readuntil(b"\r\n\r\n")
            writer.write(reply)
            await writer.drain()
            if then_hang:
                await reader.read(-1)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


_OF_REQUEST = {field.name for field in fields(Request)}


async def ask(
    client: ChatClient,
    messages: Sequence[Message] = MESSAGES,
    *,
    model: str = "m",
    worker: str = "w",
    **settings: Any,
) -> Reply:
    """The reply to one call; `settings` are fields of the request, of the worker's limits, or keys of its table."""
    given = {name: value for name, value in settings.items() if name in _OF_REQUEST}
    limits = {name: value for name, value in settings.items() if name in Limits.model_fields}
    keys = {name: value for name, value in settings.items() if name not in given.keys() | limits.keys()}
    asked = chat_worker(Profile(name=worker), client, model, limits=Limits(**limits), **keys)
    return await asked.answer(Request(tuple(messages), **{"seed": "0", **given}))


async def failure(client: ChatClient, timeout: float = 5.0, **settings: Any) -> WorkerError:  # noqa: ASYNC109
    """The error of one call, which shows no key."""
    with pytest.raises(WorkerError) as caught:
        await ask(client, timeout=timeout, **settings)
    assert KEY not in "".join(format_exception(caught.value))
    return caught.value


def event(payload: object) -> bytes:
    """One server-sent event."""
    return b"data: " + (payload if isinstance(payload, bytes) else json.dumps(payload).encode()) + b"\n\n"


def delta(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a streamed reply."""
    said = {"content": text, **more} if text is not None else more
    return {"model": "m-1", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


USAGE = {"model": "m-1", "choices": [], "usage": GOOD["usage"]}
DONE = event(b"[DONE]")
