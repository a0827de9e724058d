"""Messages between processes: four bytes of length, then the body. A body's first byte says what it is."""

from __future__ import annotations

import os

HEAD = 4
"""How many bytes hold the length."""
ORDER = b"O"
"""An order to a sandbox, as JSON."""
DATA = b"S"
"""A message of a conversation in either direction, byte for byte. What a program sends is never trusted."""
EXIT = b"E"
"""A sandbox's last message: why the program ended, a line break, and its output."""


def to_frame(body: bytes) -> bytes:
    """A body with its length in front."""
    return len(body).to_bytes(HEAD, "big") + body


def is_complete(received: bytes | bytearray) -> bool:
    """Whether a whole frame was received."""
    return len(received) >= HEAD and len(received) >= HEAD + int.from_bytes(received[:HEAD], "big")


def pop_frame(received: bytearray) -> bytes:
    """Remove the first frame from what was received, and return its body."""
    size = HEAD + int.from_bytes(received[:HEAD], "big")
    body = bytes(received[HEAD:size])
    del received[:size]
    return body


def write(file: int, body: bytes) -> None:
    """Write a frame to a blocking file descriptor."""
    rest = memoryview(to_frame(body))
    while rest:
        rest = rest[os.write(file, rest) :]


def read(file: int) -> bytes | None:
    """Read a frame. Returns None if the other side has closed the pipe."""
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
