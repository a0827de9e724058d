"""The child processes that serve a pool's GGUF files: one for each file, started with its first call.

They run llama.cpp's own server (`gguf_server`). A crash of native code ends such a process alone, and the next call
starts another. They end with the last worker of their file, or with Podium.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from podium.child_process import ChildEndedError, ChildProcess, ChildSilentError
from podium.errors import ConfigError, WorkerError
from podium.workers.command import kept_environment
from podium.workers.spec import GgufSpec

HUB = "hub:"
"""The prefix of a file's name on the Hugging Face hub: hub:OWNER/NAME/FILE.gguf."""
_START_S = 600.0
"""Seconds for a model to be loaded."""
_DEVICES = ("CUDA_", "GGML_", "HIP_", "LD_LIBRARY_PATH", "ROCR_", "VK_")
"""Prefixes of the variables that choose devices. The process gets these and the usual variables alone."""
_PROGRAM = str(Path(__file__).with_name("gguf_server.py"))
"""The path of the program. It runs as a file, since a module would load all of `podium.workers` first."""


class GgufServer:
    """The server of one file, for all workers that name it in one pool."""

    def __init__(self, spec: GgufSpec, file: Path | None) -> None:
        self.spec = spec
        self._file = file
        self._slots = self._workers = 0
        self._lock = Lock()
        self._child: ChildProcess | None = None
        self._address = ""

    def join(self, spec: GgufSpec) -> None:
        """Add a worker that will use it. Its slots count from the next start on."""
        self._slots += spec.limits.concurrency
        self._workers += 1

    def leave(self) -> None:
        """Remove a worker that closes. After the last one the process ends."""
        self._workers -= 1
        if self._workers <= 0 and self._child is not None:
            self._child.close()
            self._child = None

    def address(self) -> str:
        """The address of the server, which is started, and its file downloaded, if need be.

        Raises:
            WorkerError: the file cannot be fetched, or the server does not start.
        """
        with self._lock:
            if self._child is None or not self._child.alive:
                if self._child is not None:
                    self._child.close()
                self._child = self._start()
            return self._address

    def _start(self) -> ChildProcess:
        if self._file is None:
            self._file = _download(self.spec)
        settings = {
            "file": str(self._file),
            "slots": self._slots,
            "context": self.spec.context_tokens,
            "threads": self.spec.threads,
        }
        child = ChildProcess((_PROGRAM, json.dumps(settings)), environment=_environment())
        try:
            self._address = child.read_line(_START_S).decode()
        except (ChildEndedError, ChildSilentError) as error:
            child.close()
            raise WorkerError(
                f"llama.cpp does not serve {self._file}: it {str(error) or 'is still loading it'}.",
                kind="unready",
            ) from None
        return child


@dataclass(frozen=True, slots=True)
class GgufServers:
    """The servers of one pool's files."""

    _servers: dict[tuple[str, int, int | None], GgufServer] = field(default_factory=dict)

    def of(self, spec: GgufSpec, file: Path | None) -> GgufServer:
        """The server of a worker; workers with the same file, context and threads have the same one."""
        key = (spec.file if file is None else str(file), spec.context_tokens, spec.threads)
        server = self._servers.setdefault(key, GgufServer(spec, file))
        server.join(spec)
        return server


def _environment() -> dict[str, str]:
    devices = {name: value for name, value in os.environ.items() if name.startswith(_DEVICES)}
    return kept_environment(os.environ) | devices


def _download(spec: GgufSpec) -> Path:
    """A file of the hub, from its cache if it is there; a bar shows the progress.

    Raises:
        WorkerError: it cannot be fetched, or has another checksum.
    """
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - an extra
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError  # noqa: PLC0415

    owner, _, rest = spec.file.removeprefix(HUB).partition("/")
    name, _, path = rest.partition("/")
    try:
        file = Path(hf_hub_download(f"{owner}/{name}", path))
        check_sha256(spec, file)
    except (OSError, HfHubHTTPError, HFValidationError, ConfigError) as error:
        raise WorkerError(f"{spec.file} cannot be had: {error}", kind="unready") from None
    return file


def check_sha256(spec: GgufSpec, file: Path) -> None:
    """Refuse a file with another checksum than the pool file states.

    Raises:
        ConfigError: it is another file.
    """
    if spec.sha256 is None:
        return
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != spec.sha256.lower():
        raise ConfigError(
            f"Worker {spec.name!r}: {file} has the SHA-256 {digest} and not {spec.sha256}; it is another file.",
            ("sha256",),
        )
