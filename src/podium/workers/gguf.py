"""`gguf`: a model in a GGUF file, which llama.cpp's own server runs in a child process. No server has to be set up.

Workers of one pool that name the same file share one process (`gguf_servers`). It has as many slots as these workers
may have calls at once.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from podium.errors import ConfigError
from podium.trace import Reply
from podium.workers.base import Request
from podium.workers.chat.endpoint import Endpoint
from podium.workers.connections import Connections
from podium.workers.gguf_servers import HUB, GgufServer, GgufServers, check_sha256
from podium.workers.openai import OpenAIWorker
from podium.workers.spec import GgufSpec
from podium.workers.traits import LOCAL_MODEL

_NOT_STARTED = "http://127.0.0.1/v1"
"""The address until the server is started."""


class GgufWorker(OpenAIWorker):
    """A model that a child process of Podium serves."""

    traits = replace(LOCAL_MODEL, takes_extra=True)

    def __init__(self, spec: GgufSpec, server: GgufServer, connections: Connections) -> None:
        super().__init__(spec, Endpoint(_NOT_STARTED, None, connections), Path(spec.file).stem)
        self._file = spec.file
        self._server = server
        self._leave = partial(server.leave, spec)
        self._closed = False
        # A file without a checksum is identified by its name, size and date.
        file = None if spec.file.startswith(HUB) or spec.sha256 else Path(spec.file).stat()
        self.identity = {
            **(self.identity or {}),
            "kind": "gguf",
            "file": spec.sha256 or spec.file,
            "made": None if file is None else [file.st_size, file.st_mtime_ns],
            "context": spec.context_tokens,
        }

    async def answer(self, request: Request) -> Reply:
        """Call the model once.

        Raises:
            WorkerError: the call failed, or the model cannot be fetched or served.
        """
        self._server.calls += 1
        try:
            address = await asyncio.to_thread(self._server.address)
            if self._endpoint.base_url != f"{address}/v1":  # A new server process has a new address.
                self.call_at(Endpoint(f"{address}/v1", None, self._endpoint.connections))
            reply = await super().answer(request)
        finally:
            self._server.calls -= 1
        return replace(reply, model=self._file)

    async def close(self) -> None:
        """Close the connections. When the last worker of the file is closed, the file's process ends."""
        await super().close()
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._leave)


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
