"""`gguf`: a model in a GGUF file, which llama.cpp's own server (`gguf_server`) runs in a child process.

Each file of a pool has one process, which its first call starts, with as many slots as the file's workers may have
calls at once. A crash of native code ends only this process, and the next call starts another. The process ends with
the last worker of its file, or with Podium. If workers share a machine's memory (`Limits.host`), it also ends when
another model needs its room.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from podium.concurrency.child_process import ChildEndedError, ChildProcess, ChildTimeoutError
from podium.errors import ConfigError, WorkerError
from podium.trace import Reply
from podium.workers.base import LOCAL_MODEL, Request
from podium.workers.chat.endpoint import Endpoint
from podium.workers.command import kept_environment
from podium.workers.connections import Connections
from podium.workers.openai import OpenAIWorker
from podium.workers.spec import GgufSpec

_HUB = "hub:"
"""The prefix of a file's name on the Hugging Face hub: hub:OWNER/NAME/FILE.gguf."""
_NOT_STARTED = "http://127.0.0.1/v1"
"""The address until the server is started."""
_START_S = 600.0
"""The longest time in which a model must be loaded."""
_DEVICE_PREFIXES = ("CUDA_", "GGML_", "HIP_", "LD_LIBRARY_PATH", "ROCR_", "VK_")
"""Prefixes of the variables that choose devices. The process gets only these and the usual variables."""
_PROGRAM = str(Path(__file__).with_name("gguf_server.py"))
"""The path of the program. It runs as a file, since running it as a module would load all of `podium.workers`."""


class GgufWorker(OpenAIWorker):
    """A model that a child process of Podium serves."""

    traits = replace(LOCAL_MODEL, takes_extra=True)

    def __init__(self, spec: GgufSpec, server: GgufServer, connections: Connections) -> None:
        super().__init__(spec, Endpoint(_NOT_STARTED, None, connections), Path(spec.file).stem)
        self._file = spec.file
        self._threads = spec.threads
        self._server = server
        self._leave = partial(server.leave, spec)
        self._closed = False
        # A file without a checksum is identified by its name, size and date.
        file = None if spec.file.startswith(_HUB) or spec.sha256 else Path(spec.file).stat()
        self.identity = {
            **(self.identity or {}),
            "kind": "gguf",
            "file": spec.sha256 or spec.file,
            "made": None if file is None else [file.st_size, file.st_mtime_ns],
            "context": spec.context_tokens,
        }

    @property
    def takes_all_cores(self) -> bool:
        return self._threads is None

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
    if spec.file.startswith(_HUB):
        return GgufWorker(spec, servers.of(spec, None), connections)
    file = (folder / spec.file).absolute()
    if not file.is_file():
        raise ConfigError(
            f"there is no file {file}; correct `file`, or name one of the hub as {_HUB}OWNER/NAME/FILE.gguf.",
            ("file",),
        )
    here = spec.model_copy(update={"file": str(file)})
    _check_sha256(here, file)
    return GgufWorker(here, servers.of(here, file), connections)


@dataclass(eq=False)
class _Machine:
    """The machine whose memory the models of some servers share."""

    loaded_at_once: int
    """How many models the memory holds."""
    servers: list[GgufServer] = field(default_factory=list)
    """The latest started comes last."""
    starting: Lock = field(default_factory=Lock)
    """A lock that the one starting server holds."""


@dataclass(eq=False)
class GgufServer:
    """The server of one file, for all workers that name it in one pool."""

    _file: Path | None
    """The file. None until it is downloaded."""
    _machine: _Machine
    calls: int = 0
    """Calls in flight, which the workers count."""
    specs: list[GgufSpec] = field(default_factory=list)
    """The specs of the workers that use this server. Their needs count from the server's next start."""
    _reading: Lock = field(default_factory=Lock)
    """A lock for the thread that reads from the child."""
    _child: ChildProcess | None = None
    _address: str = ""
    """The address of the child. It is empty until the child answers there."""

    def leave(self, spec: GgufSpec) -> None:
        """Remove a worker that is closed. If it was the last, the process ends."""
        self.specs.remove(spec)
        if not self.specs:
            self._end()

    def address(self) -> str:
        """The address of the server. If need be, the file is downloaded and the server started.

        Raises:
            WorkerError: the file cannot be fetched, or the server does not start.
        """
        if (address := self._running_at()) is None:
            with self._machine.starting:
                if (address := self._running_at()) is None:
                    self._make_room()
                    address = self._start()
        return address

    def _running_at(self) -> str | None:
        child = self._child
        return self._address or None if child is not None and child.alive else None

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.stop()  # After this, no thread reads from the child any more.
        with self._reading:  # A thread that is about to have a child ends it, once no worker is left.
            if child is not None:
                child.close()

    def _make_room(self) -> None:
        """End idle servers, the earliest started first, until one more model fits into the memory."""
        self._end()  # The child may have crashed.
        servers = self._machine.servers
        running = [server for server in servers if server._running_at() is not None]
        beyond = len(running) + 1 - self._machine.loaded_at_once
        for server in [server for server in running if server.calls == 0][: max(0, beyond)]:
            server._end()
        servers.remove(self)
        servers.append(self)

    def _start(self) -> str:
        specs = tuple(self.specs)
        if not specs:
            raise WorkerError(f"{self._file} is no longer served; its workers are closed.", kind="unready")
        if self._file is None:
            self._file = _download(specs)
        settings = {
            "file": str(self._file),
            "slots": sum(spec.limits.concurrency for spec in specs),
            "context": max(spec.context_tokens for spec in specs),
            "threads": max((spec.threads for spec in specs if spec.threads is not None), default=None),
        }
        self._address = ""
        with self._reading:
            devices = {name: value for name, value in os.environ.items() if name.startswith(_DEVICE_PREFIXES)}
            environment = kept_environment(os.environ) | devices
            child = self._child = ChildProcess((_PROGRAM, json.dumps(settings)), environment=environment)
            if not self.specs:
                child.stop()  # The last worker was closed during the download.
            try:
                self._address = address = child.read_line(_START_S).decode()
            except (ChildEndedError, ChildTimeoutError) as error:
                child.close()
                raise WorkerError(
                    f"llama.cpp does not serve {self._file}: it {str(error) or 'is still loading it'}.",
                    kind="unready",
                ) from None
        return address


@dataclass(frozen=True, slots=True)
class GgufServers:
    """The servers of one pool's files."""

    _servers: dict[str, GgufServer] = field(default_factory=dict)
    _machines: dict[str, _Machine] = field(default_factory=dict)
    """The machines that workers name (`Limits.host`). Any other server has one for itself."""

    def of(self, spec: GgufSpec, file: Path | None) -> GgufServer:
        """The server of a worker's file, with slots for all workers of the file, and memory for the longest context."""
        name = spec.file if file is None else str(file.resolve())
        server = self._servers.get(name)
        if server is None:
            machine = _Machine(spec.limits.loaded_at_once)
            if spec.limits.host is not None:
                machine = self._machines.setdefault(spec.limits.host, machine)
            server = self._servers[name] = GgufServer(file, machine)
            machine.servers.append(server)
        server.specs.append(spec)
        return server


def _download(specs: Sequence[GgufSpec]) -> Path:
    """Download a file of the hub, or find it in the hub's cache. A bar shows the progress.

    Raises:
        WorkerError: the file cannot be fetched, or has another checksum.
    """
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - an extra
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError  # noqa: PLC0415

    wanted = specs[0].file
    owner, _, rest = wanted.removeprefix(_HUB).partition("/")
    name, _, path = rest.partition("/")
    try:
        file = Path(hf_hub_download(f"{owner}/{name}", path))
        for spec in specs:
            _check_sha256(spec, file)
    except (OSError, HfHubHTTPError, HFValidationError, ConfigError) as error:
        raise WorkerError(f"{wanted} cannot be had: {error}", kind="unready") from None
    return file


def _check_sha256(spec: GgufSpec, file: Path) -> None:
    """Raise a `ConfigError` if the file has another checksum than the team file states."""
    if spec.sha256 is None:
        return
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != spec.sha256.lower():
        raise ConfigError(
            f"{file} has the SHA-256 {digest} and not {spec.sha256}; it is another file.",
            ("sha256",),
        )
