"""A model behind /v1/chat/completions whose every reply, piece and pause the test decides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from chat_worker import ChatClient, chat_worker
from podium.types import Limits, Price, Profile
from podium.workers.openai import OpenAIWorker
from podium_testing.server import in_thread


@dataclass
class Say:
    """One reply."""

    text: str = ""
    """Streamed in the pieces between its bars, which are no part of it."""
    calls: Sequence[tuple[str, str, str]] = ()
    """Id, name and arguments of the calls that it wants made."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the message."""
    call_more: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of each call."""
    wait: Callable[[int], bool] = lambda number: True
    """Asked before each streamed piece, again and again, until it says yes."""
    break_after: int | None = None
    """Pieces after which the connection is cut."""
    status: int = 200
    finish: str = "stop"


@dataclass
class ChatModel:
    """Serves on a free port; `bodies` are those of the requests so far."""

    answer: Callable[[dict[str, Any]], Say]
    bodies: list[dict[str, Any]] = field(default_factory=list)
    input_tokens: int = 10
    """What it reports; where that cannot be, Podium counts its own estimate."""
    gone: int = 0
    """Requests whose caller went away."""
    url: str = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.bodies.append(body)
        said = self.answer(body)
        if said.status != 200:
            return web.json_response({"error": {"message": "no"}}, status=said.status)
        try:
            return await (self._stream if body.get("stream") else self._whole)(request, said)
        except (asyncio.CancelledError, ConnectionError):
            self.gone += 1
            raise

    async def _whole(self, request: web.Request, said: Say) -> web.Response:
        while not said.wait(0):  # noqa: ASYNC110 - the test's own thread decides
            await asyncio.sleep(0.005)
        message: dict[str, Any] = {"role": "assistant", "content": said.text.replace("|", "") or None}
        message |= said.more
        if said.calls:
            message["tool_calls"] = _calls(said)
        return web.json_response(
            {
                "id": "x",
                "object": "chat.completion",
                "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": _finish(said)}],
                "usage": self._usage,
            }
        )

    async def _stream(self, request: web.Request, said: Say) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)

        async def write(choices: list[dict[str, Any]], **more: Any) -> None:
            chunk = {"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": choices, **more}
            await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

        if said.more:
            await write([{"index": 0, "delta": dict(said.more), "finish_reason": None}])
        for number, piece in enumerate(said.text.split("|") if said.text else []):
            while not said.wait(number):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            if number == said.break_after:
                request.transport.abort()  # type: ignore[union-attr]
                return response
            await write([{"index": 0, "delta": {"content": piece}, "finish_reason": None}])
        for number, call in enumerate(_calls(said)):
            begun = {**call, "index": number, "function": {**call["function"], "arguments": ""}}
            await write([{"index": 0, "delta": {"tool_calls": [begun]}, "finish_reason": None}])
            rest = {"index": number, "function": {"arguments": call["function"]["arguments"]}}
            await write([{"index": 0, "delta": {"tool_calls": [rest]}, "finish_reason": None}])
        await write([{"index": 0, "delta": {}, "finish_reason": _finish(said)}])
        await write([], usage=self._usage)
        await response.write(b"data: [DONE]\n\n")
        return response

    @property
    def _usage(self) -> dict[str, Any]:
        total = self.input_tokens + _USAGE["completion_tokens"]
        return {**_USAGE, "prompt_tokens": self.input_tokens, "total_tokens": total}

    def worker(self, name: str = "wren", *, fallback: str | None = None, **told: Any) -> OpenAIWorker:
        """The worker that asks it."""
        stream, send_seed = told.pop("stream", False), told.pop("send_seed", False)
        profile = Profile(name=name, price=told.pop("price", Price(input=1.0, output=2.0)), **told)
        limits = Limits(timeout=20, retries=2)
        return chat_worker(
            profile,
            ChatClient(self.url),
            "m",
            limits=limits,
            fallback=fallback,
            stream=stream,
            send_seed=send_seed,
        )


_USAGE: dict[str, Any] = {
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


def _calls(said: Say) -> list[dict[str, Any]]:
    return [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}, **said.call_more}
        for id_, name, arguments in said.calls
    ]


def _finish(said: Say) -> str:
    return "tool_calls" if said.calls else said.finish


@contextmanager
def chat_model(answer: Callable[[dict[str, Any]], Say] | str) -> Iterator[ChatModel]:
    """A model that runs, in a thread of its own, until the block ends."""
    with in_thread(
        _serving(ChatModel((lambda body: Say(answer)) if isinstance(answer, str) else answer))
    ) as model:
        yield model


@asynccontextmanager
async def _serving(model: ChatModel) -> AsyncIterator[ChatModel]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", model.serve)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    model.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield model
    await runner.cleanup()
