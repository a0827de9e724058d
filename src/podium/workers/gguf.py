"""`gguf`: a model in a GGUF file, which llama.cpp's own server runs in a child process. No server has to be set up.

Workers of one pool that name the same file share one process (`gguf_servers`). It has as many slots as these workers
may have calls at once.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from podium.errors import ConfigError
from podium.trace import Reply
from podium.workers.base import Request, Worker
from podium.workers.chat.client import ChatClient
from podium.workers.connections import Connections
from podium.workers.gguf_servers import HUB, GgufServer, GgufServers, check_sha256
from podium.workers.openai import OpenAIWorker
from podium.workers.spec import GgufSpec
from podium.workers.traits import LOCAL_MODEL


class GgufWorker(Worker):
    """A model that a child process of Podium serves."""

    traits = replace(LOCAL_MODEL, takes_extra=True)

    def __init__(self, spec: GgufSpec, server: GgufServer, connections: Connections) -> None:
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback
        self._spec = spec
        self._server = server
        self._connections = connections
        self._endpoint: tuple[str, OpenAIWorker] | None = None
        self._closed = False
        # A file without a checksum is identified by its name, size and date.
        file = None if spec.file.startswith(HUB) or spec.sha256 else Path(spec.file).stat()
        self.identity = {
            "kind": "gguf",
            "model": Path(spec.file).stem,
            "file": spec.sha256 or spec.file,
            "made": None if file is None else [file.st_size, file.st_mtime_ns],
            "context": spec.context_tokens,
            "system": spec.system,
            "temperature": spec.temperature,
            "max_tokens": self.limits.max_tokens,
            "seed": spec.send_seed,
            "extra": spec.extra,
        }

    async def answer(self, request: Request) -> Reply:
        """Call the model once.

        Raises:
            WorkerError: the call failed, or the model cannot be fetched or served.
        """
        self._server.calls += 1
        try:
            address = await asyncio.to_thread(self._server.address)
            reply = await self._worker_at(address).answer(request)
        finally:
            self._server.calls -= 1
        return replace(reply, model=self._spec.file)

    async def close(self) -> None:
        """Close the connections. When the last worker of the file is closed, the file's process ends."""
        if self._endpoint is not None:
            await self._endpoint[1].close()
            self._endpoint = None
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._server.leave, self._spec)

    def _worker_at(self, address: str) -> OpenAIWorker:
        """The worker that asks the server at this address. A new server process has a new address."""
        if self._endpoint is None or self._endpoint[0] != address:
            client = ChatClient(f"{address}/v1", None, connections=self._connections)
            worker = OpenAIWorker(self._spec, client, Path(self._spec.file).stem)
            self._endpoint = address, worker
        return self._endpoint[1]


def build_gguf(spec: GgufSpec, folder: Path, servers: GgufServers, connections: Connections) -> GgufWorker:
    """The worker of a spec. No model is loaded yet.

    Raises:
        ConfigError: xllamacpp is not installed, or the file is missing or has another checksum.
    """
    if find_spec("xllamacpp") is None:
        raise ConfigError("the kind gguf needs xllamacpp; pip install 'podium-conductor[gguf]'.", ("kind",))
    if spec.file.startswith(HUB):
        return GgufWorker(spec, servers.of(spec, None), connections)
    file = (folder / spec.file).absolute()
    if not file.is_file():
        raise ConfigError(
            f"there is no file {file}; correct `file`, or name one of the hub as {HUB}OWNER/NAME/FILE.gguf.",
            ("file",),
        )
    here = spec.model_copy(update={"file": str(file)})
    check_sha256(here, file)
    return GgufWorker(here, servers.of(here, file), connections)
