"""Messages between processes: four bytes of length, then the body. A body's first byte says what it is."""

from __future__ import annotations

import os

HEAD = 4
"""Bytes that hold the length."""
ORDER = b"O"
"""To a sandbox: JSON, what to do."""
SAID = b"S"
"""Word for word what the program says or is told: never trusted."""
ENDED = b"E"
"""From a sandbox: JSON, how the program ended."""


def framed(body: bytes) -> bytes:
    """A body as it crosses a pipe."""
    return len(body).to_bytes(HEAD, "big") + body


def whole(received: bytes | bytearray) -> bool:
    """Whether a frame has come to its end."""
    return len(received) >= HEAD and len(received) >= HEAD + int.from_bytes(received[:HEAD], "big")


def taken(received: bytearray) -> bytes:
    """The body of the first frame, removed from what was received."""
    size = HEAD + int.from_bytes(received[:HEAD], "big")
    body = bytes(received[HEAD:size])
    del received[:size]
    return body


def write(file: int, body: bytes) -> None:
    """Write a frame to a blocking file descriptor."""
    rest = memoryview(framed(body))
    while rest:
        rest = rest[os.write(file, rest) :]


def read(file: int) -> bytes | None:
    """Read a frame; None: the other side has gone."""
    head = _exactly(file, HEAD)
    return None if head is None else _exactly(file, int.from_bytes(head, "big"))


def _exactly(file: int, size: int) -> bytes | None:
    parts = []
    while size:
        part = os.read(file, min(size, 2**20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
