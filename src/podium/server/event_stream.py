"""An answer of server-sent events, written while it is made.

Begins with the first write, so that what is refused before is an ordinary refusal. Knows nothing of what is told.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from podium.errors import APIError
from podium.server.attendance import GONE, attended

Write = Callable[[bytes], Awaitable[None]]
DONE = b"data: [DONE]\n\n"
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class EventStream(Response):
    """Runs `tell` with a function that writes; ends when it does, and cancels it when the caller goes away."""

    media_type = "text/event-stream"

    def __init__(
        self, tell: Callable[[Write], Awaitable[None]], headers: Mapping[str, str], status_code: int = 200
    ) -> None:
        # The framework reads the default status of a class of answers off its constructor.
        super().__init__(status_code=status_code, headers={**_HEADERS, **headers})
        del self.headers["content-length"]
        self._tell = tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def write(content: bytes) -> None:
            nonlocal begun
            if not begun:
                begun = True
                await send(
                    {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
                )
            await send({"type": "http.response.body", "body": content, "more_body": True})

        try:
            async with attended(receive):
                await self._tell(write)
        except APIError as complaint:
            if begun and complaint.status == GONE:
                return
            raise
        if not begun:
            await write(b"")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def event(payload: Mapping[str, Any], name: str | None = None) -> bytes:
    """One event; `name` where its kind is told besides."""
    data = json.dumps(payload, separators=(",", ":")).encode()
    return b"data: " + data + b"\n\n" if name is None else b"event: %b\ndata: %b\n\n" % (name.encode(), data)
