"""An endpoint on loopback, in a thread of its own, that embeds texts by a rule of the test's."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Vector = Sequence[float]


def reply(vectors: Sequence[Any]) -> dict[str, Any]:
    """A good body."""
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}


@dataclass
class EmbeddingServer:
    """Serves POST /v1/embeddings; `bodies` and `keys` are those of the requests so far."""

    answer: Callable[[list[str]], Any]
    """From texts to a body, as JSON or as a text; or to an HTTP status."""
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """All that it was asked for, in order."""
        return [text for body in self.bodies for text in body["input"]]

    async def serve(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        self.bodies.append(body)
        self.keys.append(request.headers.get("Authorization"))
        said = self.answer(body["input"])
        if isinstance(said, int):
            return web.json_response({"error": {"message": "Not today."}}, status=said)
        return web.Response(text=said if isinstance(said, str) else json.dumps(said))


@contextmanager
def embedding_server(answer: Callable[[list[str]], Any]) -> Iterator[EmbeddingServer]:
    """A running one."""
    server, started, loop = EmbeddingServer(answer), threading.Event(), asyncio.new_event_loop()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/v1/embeddings", server.serve)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        started.set()
        return runner

    def live() -> None:
        runner = loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
