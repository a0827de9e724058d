"""Streaming: responses of server-sent events, the end of work whose client has gone, and text that is safe to send.

This module knows nothing about questions. A route decides the content of its stream.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from podium.errors import APIError, PodiumError
from podium.server.api_errors import answer_changed, to_api_error
from podium.team.events import ContinuedText

T = TypeVar("T")
Write = Callable[[bytes], Awaitable[None]]
DONE = b"data: [DONE]\n\n"
HEARTBEAT = b": still here\n\n"
"""A heartbeat that every reader of server-sent events skips."""
HEARTBEAT_S = 15.0
"""Seconds of silence after which a stream sends a heartbeat, since proxies cut connections that are silent for
long."""
_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
CLIENT_CLOSED_REQUEST = 499
"""The status in logs, as in nginx. The client sees no status."""
FAIL_KEY = "podium.fail"
"""The key of a request's scope under which a stream says how it ends with an error. Middleware that cancels the request
writes these events. None if the stream has no such events."""


class EventStream(Response):
    """A response that `produce` writes. If the client disconnects, `produce` is cancelled.

    The response begins with the first write, so an error before that is an ordinary error response. After each
    `HEARTBEAT_S` seconds of silence it writes a heartbeat, which also begins the response.

    Args:
        heartbeat: returns a heartbeat.
        fail: returns the events for an error that `produce` raises after a heartbeat has begun the response.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        produce: Callable[[Write], Awaitable[None]],
        headers: Mapping[str, str],
        status_code: int = 200,
        *,
        heartbeat: Callable[[], bytes] = lambda: HEARTBEAT,
        fail: Callable[[APIError], bytes] | None = None,
    ) -> None:
        # FastAPI reads a response class's default status from its constructor.
        super().__init__(status_code=status_code, headers={**_HEADERS, **headers})
        del self.headers["content-length"]
        self._produce = produce
        self._heartbeat = heartbeat
        self._fail = fail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[FAIL_KEY] = self._fail
        begun = False
        clock = asyncio.get_running_loop().time
        written_at = clock()
        writing = asyncio.Lock()

        async def write(content: bytes) -> None:
            nonlocal begun, written_at
            async with writing:
                if not begun:
                    begun = True
                    await send(
                        {
                            "type": "http.response.start",
                            "status": self.status_code,
                            "headers": self.raw_headers,
                        }
                    )
                await send({"type": "http.response.body", "body": content, "more_body": True})
                written_at = clock()

        async def stay_alive() -> None:
            while True:
                wait = written_at + HEARTBEAT_S - clock()
                # If it is locked, the client is slow to read, and there is no silence.
                if wait > 0 or writing.locked():
                    await asyncio.sleep(wait if wait > 0 else HEARTBEAT_S / 10)
                else:
                    await write(self._heartbeat())

        heartbeats = asyncio.create_task(stay_alive())
        try:
            await until_disconnect(receive, self._produce(write))
        except PodiumError as failure:
            error = to_api_error(failure)
            if begun and error.status == CLIENT_CLOSED_REQUEST:
                return
            if not begun or self._fail is None:
                raise
            await write(self._fail(error))
        finally:
            heartbeats.cancel()
        if not begun:
            await write(b"")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def sse_event(payload: Mapping[str, Any], name: str | None = None) -> bytes:
    """One server-sent event. `name` becomes its `event:` line."""
    data = json.dumps(payload, separators=(",", ":")).encode()
    return b"data: " + data + b"\n\n" if name is None else b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def client_disconnected() -> APIError:
    """The error that ends a request whose client has disconnected."""
    return APIError(CLIENT_CLOSED_REQUEST, "cancelled", "The caller went away.")


async def until_disconnect(receive: Receive, work: Awaitable[T]) -> T:
    """The result of `work`, which is cancelled when the client disconnects. The request body must have been read.

    Raises:
        APIError: 499, the work was cancelled.
    """
    task = asyncio.current_task()
    assert task is not None
    disconnected = False

    async def watch() -> None:
        nonlocal disconnected
        while (await receive())["type"] != "http.disconnect":
            pass
        disconnected = True
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if disconnected and not task.uncancel():
            raise client_disconnected() from None
        raise
    finally:
        watcher.cancel()


class StreamedText(ContinuedText):
    """The text of one answer that a client has received."""

    def finish(self, answer: str, trace_id: str) -> str:
        """The rest of the final answer.

        Raises:
            APIError: the answer does not begin with the text that was sent.
        """
        rest = self.continue_with(answer)
        if rest is not None:
            return rest
        if self.text.strip() != answer.strip():
            raise answer_changed(trace_id)
        return ""
