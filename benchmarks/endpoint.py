"""A chat endpoint that takes next to no time, for benchmarks of clients: python benchmarks/endpoint.py

It answers every POST with the same reply. A path that begins with seconds, as in /0.5/v1/chat/completions, delays the
reply by so many. It reads no body, and stands for no provider: `podium_testing` does that.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": " ".join(["word"] * 16)},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 100, "completion_tokens": 16, "total_tokens": 116},
}
_BODY = json.dumps(REPLY).encode()
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(_BODY),
    _BODY,
)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_DELAY = re.compile(rb"POST /(\d+(?:\.\d+)?)/")


class Exchange(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._received += data
        while (head := self._received.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._received, 0, head)
            end = head + 4 + (int(length[1]) if length else 0)
            if len(self._received) < end:
                return
            delay = _DELAY.match(self._received)
            self._received = self._received[end:]
            if delay is None:
                self._transport.write(_RESPONSE)
            else:
                asyncio.get_running_loop().call_later(float(delay[1]), self._transport.write, _RESPONSE)


async def serve() -> None:
    """Print the address, and serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Exchange, "127.0.0.1", 0, backlog=16_384)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


@contextmanager
def endpoint() -> Iterator[str]:
    """The address of an endpoint in a process of its own, without a path."""
    with subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def write_pool(path: Path, urls: list[str], limits: str = "concurrency = 10_000") -> None:
    """A team file with the workers w0, w1, ..., each at one address."""
    path.write_text(
        "".join(
            f'[[worker]]\nname = "w{number}"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\n'
            f"limits = {{ {limits} }}\n"
            for number, url in enumerate(urls)
        )
    )


if __name__ == "__main__":
    import uvloop  # the peers' environment, which imports this file, lacks it

    uvloop.run(serve())
