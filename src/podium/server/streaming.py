"""An answer of server-sent events, written while it is made.

Begins with the first write, so that what is refused before is an ordinary refusal. Knows nothing of what is told.


@@Whether the caller still waits: one who goes away cancels what is done for them.

For work that runs in the request's own task.


@@The text of an answer while it is written: what of it may be sent already.

A try that breaks off and another that begins anew must not be read as one text: only what goes on from what was sent
is sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from podium.errors import APIError

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
            async with cancel_on_disconnect(receive):
                await self._tell(write)
        except APIError as error:
            if begun and error.status == CLIENT_CLOSED_REQUEST:
                return
            raise
        if not begun:
            await write(b"")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def sse_event(payload: Mapping[str, Any], name: str | None = None) -> bytes:
    """One event; `name` where its kind is told besides."""
    data = json.dumps(payload, separators=(",", ":")).encode()
    return b"data: " + data + b"\n\n" if name is None else b"event: %b\ndata: %b\n\n" % (name.encode(), data)


CLIENT_CLOSED_REQUEST = 499
"""The status that logs show; the caller sees none."""


def client_disconnected() -> APIError:
    """What ends a request whose caller went away."""
    return APIError(CLIENT_CLOSED_REQUEST, "cancelled", "The caller went away.")


@asynccontextmanager
async def cancel_on_disconnect(receive: Receive) -> AsyncIterator[None]:
    """Cancels the block when the caller goes away; the body has to be read before.

    Raises:
        APIError: 499, after the block was cancelled for it.
    """
    task = asyncio.current_task()
    assert task is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if gone and not task.uncancel():
            raise client_disconnected() from None
        raise
    finally:
        watcher.cancel()


class StreamedText:
    """The text that a caller has of one answer."""

    def __init__(self) -> None:
        self._tries: dict[int, list[str]] = {}
        self._sent: list[str] = []
        self._alone = True
        """Whether one try alone has written, all of which was sent."""

    @property
    def text(self) -> str:
        """All that was sent."""
        return "".join(self._sent)

    def add(self, attempt: int, piece: str) -> str:
        """The text to send now that try number `attempt` has written `piece`; often the piece."""
        written = self._tries.setdefault(attempt, [])
        written.append(piece)
        if len(self._tries) > 1:
            self._alone = False
        if self._alone:
            self._sent.append(piece)
            return piece
        return self._go_on("".join(written)) or ""

    def finish(self, answer: str) -> str | None:
        """The rest to send now that the answer is known; None: it is another than what was sent."""
        rest = self._go_on(answer)
        if rest is None and self.text.strip() == answer.strip():
            return ""
        return rest

    def _go_on(self, text: str) -> str | None:
        sent = self.text
        if not text.startswith(sent):
            return None
        rest = text[len(sent) :]
        self._sent = [text]
        return rest
