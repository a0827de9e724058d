"""One address for several GGUF files, of which only some are in memory, as llama.cpp's router and llama-swap have it.

Each file has a process with llama.cpp's own server, which is started for the first request that needs it, in the place
of another. Requests are served in the order in which they come: one for a file that is not loaded waits until those
before it are answered, and those after it wait for it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from socket import socket
from typing import Self

from aiohttp import ClientSession, ClientTimeout, web

sys.path.append(str(Path(__file__).parents[1] / "runs"))

from published_models import served

from podium.workers.connections import Connector

__all__ = ("SwappedServers", "free_port", "served")


def free_port() -> int:
    """A port that nobody listens to."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class SwappedServers:
    """An async context manager.

    Args:
        files: by the names of their models.
        loaded_at_once: how many are in memory.
    """

    def __init__(
        self, files: Mapping[str, Path], *, slots: int, context: int, threads: int, loaded_at_once: int = 1
    ) -> None:
        self.loads: list[str] = []
        """The models in the order in which they were loaded."""
        self._files = files
        self._settings = {"slots": slots, "context": context, "threads": threads}
        self._loaded_at_once = loaded_at_once
        self._running: dict[str, tuple[str, ExitStack]] = {}
        """Of each loaded model the address, and what ends its process."""
        self._in_flight: Counter[str] = Counter()
        self._turn = asyncio.Lock()
        self._ended = asyncio.Event()
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._client = await self._open.enter_async_context(
            ClientSession(connector=Connector(), timeout=ClientTimeout(None))
        )
        app = web.Application()
        app.router.add_post("/v1/{rest:.*}", self._pass_on)
        runner = web.AppRunner(app)
        await runner.setup()
        self._open.push_async_callback(runner.cleanup)
        port = free_port()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._open.aclose()
        for _, process in self._running.values():
            process.close()

    async def _pass_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        model = json.loads(body)["model"]
        async with self._turn:
            if model not in self._running:
                await self._load(model)
            self._in_flight[model] += 1
        try:
            url = f"{self._running[model][0]}/{request.match_info['rest']}"
            async with self._client.post(
                url, data=body, headers={"Content-Type": "application/json"}
            ) as reply:
                return web.Response(
                    body=await reply.read(), status=reply.status, content_type=reply.content_type
                )
        finally:
            self._in_flight[model] -= 1
            self._ended.set()

    async def _load(self, model: str) -> None:
        while len(self._running) >= self._loaded_at_once:
            idle = next((name for name in self._running if not self._in_flight[name]), None)
            if idle is not None:
                self._running.pop(idle)[1].close()
            else:
                self._ended.clear()
                await self._ended.wait()
        process = ExitStack()
        server = served(self._files[model], free_port(), model, **self._settings)
        url = await asyncio.to_thread(process.enter_context, server)
        self.loads.append(model)
        self._running[model] = url, process
