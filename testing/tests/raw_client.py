"""A client of sockets alone, so that what it sees is what was sent, and no library has mended it."""

import asyncio
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium_testing import FaultServer


@dataclass(frozen=True)
class Seen:
    """A reply, as far as it came."""

    status: int | None
    headers: Mapping[str, str]
    body: bytes
    """Without the marks of chunks."""
    whole: bool
    """Whether as much came as the headers promised."""
    ended: str
    """How the connection did: "closed", "reset" or "open"."""
    first_byte: float | None
    """Seconds until the first byte."""
    seconds: float
    reads: int

    @property
    def good(self) -> bool:
        """Whether it is a whole 200."""
        return self.status == 200 and self.whole

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The tables of a stream, without its `[DONE]`."""
        lines = [line[5:].strip() for line in self.body.split(b"\n") if line.startswith(b"data:")]
        return [json.loads(line) for line in lines if line != b"[DONE]"]

    @property
    def done(self) -> bool:
        return self.body.rstrip().endswith(b"[DONE]")

    @property
    def text(self) -> str:
        """What the model said."""
        if self.headers["content-type"] == "text/event-stream":
            choices = [choice for event in self.events for choice in event["choices"]]
            return "".join(choice["delta"].get("content") or "" for choice in choices)
        return str(self.json["choices"][0]["message"]["content"])

    @property
    def finish(self) -> str | None:
        if self.headers["content-type"] == "text/event-stream":
            told = [choice["finish_reason"] for event in self.events for choice in event["choices"]]
            return next((reason for reason in told if reason), None)
        return str(self.json["choices"][0]["finish_reason"])

    @property
    def usage(self) -> Any:
        if self.headers["content-type"] == "text/event-stream":
            return next((event["usage"] for event in self.events if event.get("usage")), None)
        return self.json.get("usage")


def question(text: str = "What is 2 + 2?", model: str = "m", *, stream: bool = False) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": text}]}
    return body | {"stream": True, "stream_options": {"include_usage": True}} if stream else body


async def ask(
    server: FaultServer,
    body: object | None = None,
    *,
    key: str = "a-key",
    method: str = "POST",
    path: str = "/v1/chat/completions",
    encryption: ssl.SSLContext | None = None,
    wait: float = 10.0,
) -> Seen:
    """Ask once, on a connection of its own; after `wait` seconds go away."""
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=encryption, limit=2**26)
    content = body if isinstance(body, bytes) else json.dumps(question() if body is None else body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    came, reads, first, ended = b"", 0, None, "open"
    try:
        async with asyncio.timeout(wait):
            writer.write(head.encode() + content)
            while piece := await reader.read(2**20):
                first = time.monotonic() - begun if first is None else first
                came, reads = came + piece, reads + 1
            ended = "closed"
    except ConnectionError:
        ended = "reset"
    except TimeoutError:
        pass
    finally:
        writer.transport.abort()
    return _read(came, ended, first, time.monotonic() - begun, reads)


def _read(came: bytes, ended: str, first: float | None, seconds: float, reads: int) -> Seen:
    if b"\r\n\r\n" not in came:
        return Seen(None, {}, came, False, ended, first, seconds, reads)
    head, _, rest = came.partition(b"\r\n\r\n")
    start, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body, whole = _without_chunks(rest)
    else:
        body, whole = rest, len(rest) == int(headers["content-length"])
    return Seen(int(start.split()[1]), headers, body, whole, ended, first, seconds, reads)


def _without_chunks(rest: bytes) -> tuple[bytes, bool]:
    body = []
    while b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return b"".join(body), True
        body.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    return b"".join(body), False
